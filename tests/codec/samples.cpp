#include "codec/samples.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace uzip {
namespace {

struct KindRow {
  SampleKind kind;
  const char* name;
};
constexpr KindRow kKinds[] = {
    {SampleKind::kGaussian, "gaussian"},
    {SampleKind::kUniform, "uniform"},
    {SampleKind::kZeros, "zeros"},
    {SampleKind::kMinusZeros, "minus_zeros"},
    {SampleKind::kConstant, "constant"},
    {SampleKind::kRandomBits, "random_bits"},
    {SampleKind::kSpecials, "specials"},
    {SampleKind::kOddOne, "odd_one"},
    {SampleKind::kAlternating, "alternating"},
    {SampleKind::kAllRare, "all_rare"},
    {SampleKind::kTwoPeaks, "two_peaks"},
    {SampleKind::kRowScaled, "row_scaled"},
    {SampleKind::kSparse, "sparse"},
    {SampleKind::kNarrowed, "narrowed"},
    {SampleKind::kSmooth, "smooth"},
    {SampleKind::kMisleading, "misleading"},
};

/// splitmix64: small, and the same everywhere (the standard's distributions are not).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  uint64_t below(uint64_t limit) { return next() % limit; }
  /// In (-1, 1).
  double uniform() {
    return static_cast<double>(static_cast<int64_t>(next())) / 9223372036854775808.0;
  }
  /// Sum of twelve uniforms: variance 1, near enough to a Gaussian.
  double gaussian() {
    double sum = 0;
    for (int i = 0; i < 12; ++i) sum += uniform();
    return sum / 2;
  }

 private:
  uint64_t state_;
};

/// The value rounded towards zero to the type, by cutting the binary64 apart; integers: the value
/// scaled.
uint64_t narrow(const DataTypeInfo& info, double value) {
  if (info.kind != NumberKind::kFloat)
    return static_cast<uint64_t>(static_cast<int64_t>(value * 64));
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const uint64_t sign = bits >> 63;
  const int exponent =
      static_cast<int>(bits >> 52 & 2047) - 1023 + (1 << (info.exponent_bits - 1)) - 1;
  const uint64_t mantissa = (bits & ((uint64_t{1} << 52) - 1)) >> (52 - info.mantissa_bits);
  const int top = (1 << info.exponent_bits) - 2;
  const unsigned shift = info.exponent_bits + info.mantissa_bits;
  uint64_t magnitude = 0;
  if (exponent > top)
    magnitude = static_cast<uint64_t>(top) << info.mantissa_bits;
  else if (exponent > 0)
    magnitude = static_cast<uint64_t>(exponent) << info.mantissa_bits | mantissa;
  return sign << shift | magnitude;
}

class Maker {
 public:
  Maker(DataType type, size_t count, uint32_t seed)
      : info_(datatype_info(type)),
        count_(count),
        random_(seed * 7919u + type),
        bytes_(count * info_.size) {}

  std::vector<uint8_t> make(SampleKind kind) {
    for (size_t i = 0; i < count_; ++i) put(i, value(kind, i));
    if (kind == SampleKind::kOddOne && count_ > 0) {
      const uint64_t odd = random_.next();  // compilers differ in which of two arguments comes first
      put(random_.below(count_), odd);
    }
    return std::move(bytes_);
  }

 private:
  void put(size_t i, uint64_t value) { std::memcpy(&bytes_[i * info_.size], &value, info_.size); }
  uint64_t sign_bit() const { return uint64_t{1} << (8 * info_.size - 1); }
  uint64_t gaussian(double scale) { return narrow(info_, scale * random_.gaussian()); }

  uint64_t with_exponent(uint64_t exponent) {
    if (info_.exponent_bits == 0) return random_.next();
    const uint64_t mask = (uint64_t{1} << info_.exponent_bits) - 1;
    const uint64_t keep = ~(mask << info_.mantissa_bits);
    return (random_.next() & keep) | (exponent & mask) << info_.mantissa_bits;
  }

  uint64_t special() {
    const uint64_t infinity = ((uint64_t{1} << info_.exponent_bits) - 1) << info_.mantissa_bits;
    const uint64_t choices[] = {0,
                                sign_bit(),
                                infinity,
                                infinity | sign_bit(),
                                infinity | 1,
                                infinity | sign_bit() | (random_.next() & 3),
                                ~uint64_t{0},
                                1,
                                sign_bit() | 1,
                                random_.next() & 3};
    return choices[random_.below(std::size(choices))];
  }

  uint64_t value(SampleKind kind, size_t i) {
    switch (kind) {
      case SampleKind::kGaussian:
        return gaussian(0.02);
      case SampleKind::kUniform:
        return narrow(info_, random_.uniform());
      case SampleKind::kZeros:
      case SampleKind::kOddOne:
        return 0;
      case SampleKind::kMinusZeros:
        return sign_bit();
      case SampleKind::kConstant:
        return narrow(info_, 0.37);
      case SampleKind::kRandomBits:
        return random_.next();
      case SampleKind::kSpecials:
        return random_.below(4) == 0 ? special() : gaussian(1);
      case SampleKind::kAlternating:
        return with_exponent(i % 2 == 0 ? 1 : 14);
      case SampleKind::kAllRare:
        return with_exponent(i * 257 / 3);
      case SampleKind::kTwoPeaks:
        return gaussian(random_.below(2) == 0 ? 1e-3 : 1);
      case SampleKind::kRowScaled:
        return gaussian(1.0 / static_cast<double>(1u << (i / 4096 * 5 % 13)));
      case SampleKind::kSparse:
        return random_.below(10) != 0 ? (random_.below(3) == 0 ? sign_bit() : 0) : gaussian(1);
      case SampleKind::kNarrowed:
        return gaussian(0.02) & ~((uint64_t{1} << (info_.mantissa_bits / 2)) - 1);
      case SampleKind::kSmooth: {
        const double x = static_cast<double>(i % 4096) / 4096 - 0.5;
        return narrow(info_, 1.0 - x * x + 1e-6 * random_.uniform());
      }
      case SampleKind::kMisleading:
        return i % 16 < 15 ? random_.next() : gaussian(1);
    }
    return 0;
  }

  const DataTypeInfo& info_;
  size_t count_;
  Random random_;
  std::vector<uint8_t> bytes_;
};

DataType type_of_name(const std::string& name) {
  const DataTypeInfo* best = nullptr;
  for (const DataTypeInfo& info : datatypes())
    if (name.ends_with(std::string("_") + info.name)) best = &info;
  if (best == nullptr) std::abort();
  return best->type;
}

}  // namespace

std::span<const SampleKind> sample_kinds() {
  static const auto kinds = [] {
    std::array<SampleKind, std::size(kKinds)> result;
    for (size_t i = 0; i < result.size(); ++i) result[i] = kKinds[i].kind;
    return result;
  }();
  return kinds;
}

const char* sample_kind_name(SampleKind kind) { return kKinds[static_cast<size_t>(kind)].name; }

std::vector<uint8_t> make_sample(DataType type, SampleKind kind, size_t count, uint32_t seed) {
  return Maker(type, count, seed).make(kind);
}

const std::vector<TensorSample>& tensor_samples() {
  static const auto samples = [] {
    std::vector<TensorSample> result;
    const char* top = std::getenv("top_srcdir");
    const auto folder = std::filesystem::path(top != nullptr ? top : ".") / "tests/data/tensors";
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() != ".bin") continue;
      std::ifstream file(entry.path(), std::ios::binary);
      TensorSample sample;
      sample.name = entry.path().stem();
      sample.type = type_of_name(sample.name);
      sample.bytes.assign(std::istreambuf_iterator<char>(file), {});
      result.push_back(std::move(sample));
    }
    std::sort(result.begin(), result.end(),
              [](const TensorSample& a, const TensorSample& b) { return a.name < b.name; });
    return result;
  }();
  return samples;
}

}  // namespace uzip
