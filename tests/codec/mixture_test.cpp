// Elements that nobody has tuned a codec for: random pieces of random distributions, one behind the
// other. Each target's frame is decoded by each other.
#include "base/cpu.hpp"
#include "codec/codec_harness.hpp"
#include "codec/samples.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace uzip {
namespace {

/// Appends a piece to elements of one type. Everything about it is drawn at random.
class MixtureMaker {
 public:
  MixtureMaker(const DataTypeInfo& info, uint64_t seed) : info_(info), random_(seed) {}

  std::vector<uint8_t> make(size_t count) {
    std::vector<uint8_t> elements(count * info_.size);
    for (size_t at = 0; at < count;) {
      const size_t length = std::min(count - at, size_t{1} << below(15));
      const auto piece = std::span(elements).subspan(at * info_.size, length * info_.size);
      add_piece(piece, length);
      at += length;
    }
    return elements;
  }

 private:
  uint64_t below(uint64_t limit) { return random_() % limit; }
  uint64_t exponents() const { return uint64_t{1} << info_.exponent_bits; }

  uint64_t with_exponent(uint64_t exponent) {
    const uint64_t mask = (exponents() - 1) << info_.mantissa_bits;
    return (random_() & ~mask) | (exponent << info_.mantissa_bits & mask);
  }

  void put(std::span<uint8_t> piece, size_t i, uint64_t value) {
    std::memcpy(&piece[i * info_.size], &value, info_.size);
  }

  void add_piece(std::span<uint8_t> piece, size_t length) {
    switch (below(8)) {
      case 0: {  // one of the ordinary kinds
        const SampleKind kind = sample_kinds()[below(sample_kinds().size())];
        const auto sample =
            make_sample(info_.type, kind, length, static_cast<uint32_t>(below(1000)));
        std::copy(sample.begin(), sample.end(), piece.begin());
        break;
      }
      case 1: {  // an exponent of its own for each value, as long as there are some
        const uint64_t first = random_();
        for (size_t i = 0; i < length; ++i) put(piece, i, with_exponent(first + i));
        break;
      }
      case 2: {  // as many exponents as a level has codes, or one more, each equally often
        const uint64_t choices = (uint64_t{1} << (1 + below(5))) - below(2);
        const uint64_t stride = 1 + below(7);
        for (size_t i = 0; i < length; ++i) put(piece, i, with_exponent(below(choices) * stride));
        break;
      }
      case 3: {  // two peaks, far apart, of unequal weight
        const uint64_t share = 1 + below(100);
        const uint64_t peaks[] = {below(exponents()), below(exponents())};
        for (size_t i = 0; i < length; ++i)
          put(piece, i, with_exponent(peaks[below(share) == 0] + below(3)));
        break;
      }
      case 4: {  // sparse, with zeros of either sign
        const uint64_t one_in = 1 + below(200);
        const bool minus = below(2) == 0;
        for (size_t i = 0; i < length; ++i) {
          const uint64_t sign = minus ? random_() & uint64_t{1} << (8 * info_.size - 1) : 0;
          put(piece, i, below(one_in) == 0 ? random_() : sign);
        }
        break;
      }
      case 5: {  // bits that never vary
        const uint64_t fixed = random_() & random_();
        const uint64_t value = random_();
        for (size_t i = 0; i < length; ++i) put(piece, i, (random_() & ~fixed) | (value & fixed));
        break;
      }
      case 6: {  // a walk with steps of some bits
        uint64_t value = random_();
        const unsigned bits = static_cast<unsigned>(below(8 * info_.size));
        for (size_t i = 0; i < length; ++i) {
          value += (random_() & ((uint64_t{1} << bits) - 1)) - (uint64_t{1} << bits) / 2;
          put(piece, i, value);
        }
        break;
      }
      default: {  // the same few values again and again
        std::vector<uint64_t> values(1 + below(40));
        for (uint64_t& value : values) value = random_();
        for (size_t i = 0; i < length; ++i) put(piece, i, values[below(values.size())]);
      }
    }
  }

  const DataTypeInfo& info_;
  std::mt19937_64 random_;
};

class Mixture : public ::testing::Test {
 protected:
  void TearDown() override { ASSERT_TRUE(set_cpu_target("auto").ok()); }
  static void use(CpuTarget target) { ASSERT_TRUE(set_cpu_target(cpu_target_name(target)).ok()); }
};

TEST_F(Mixture, ComesBackFromEachTargetOnEachTarget) {
  constexpr uint64_t kSeeds = 40;
  CodecHarness harness(*find_codec("lev"));
  size_t coded = 0;
  size_t frames = 0;
  for (const DataTypeInfo& info : datatypes()) {
    if (!is_float(info.type)) continue;
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      const auto elements = MixtureMaker(info, seed).make(1000 + seed * seed * 41);
      const CodecLevel level = kCodecLevels[seed % 3];
      SCOPED_TRACE(std::string(info.name) + ", seed " + std::to_string(seed));
      std::vector<EncodedFrame> made;
      for (CpuTarget from : available_cpu_targets()) {
        use(from);
        made.push_back(harness.encode(info.type, level, elements));
        ASSERT_LE(made.back().body_bytes(), elements.size());
        ASSERT_TRUE(made.back() == made.front()) << cpu_target_name(from);
        for (CpuTarget to : available_cpu_targets()) {
          use(to);
          ASSERT_EQ(harness.check_round_trip(made.back(), elements), "") << cpu_target_name(to);
        }
        use(from);
        const EncodedFrame staged = harness.encode_staged(info.type, level, elements);
        ASSERT_EQ(harness.check_round_trip(staged, elements), "");
        // FORMAT.md, "Sizes".
        ASSERT_LE(staged.body_bytes(),
                  elements.size() + elements.size() / 500 + 64 * (1 + info.size));
      }
      ++frames;
      coded += made[0].header.codec != kCodecRaw;
    }
  }
  EXPECT_GT(coded * 2, frames);
}

/// What is added to a compressible frame costs what it is worth, and no more: pieces are planned
/// apart.
TEST_F(Mixture, RandomBitsInTheMiddleDoNotSpoilTheRest) {
  CodecHarness harness(*find_codec("lev"));
  for (const DataTypeInfo& info : datatypes()) {
    if (!is_float(info.type)) continue;
    const size_t count = size_t{1} << 17;
    std::vector<uint8_t> elements(count / 2 * info.size);
    const auto noise = make_sample(info.type, SampleKind::kRandomBits, count / 2);
    elements.insert(elements.end(), noise.begin(), noise.end());
    for (CodecLevel level : kCodecLevels) {
      const EncodedFrame frame = harness.encode(info.type, level, elements);
      EXPECT_EQ(harness.check_round_trip(frame, elements), "");
      EXPECT_LE(frame.body_bytes(), elements.size() * 52 / 100) << info.name;
    }
  }
}

}  // namespace
}  // namespace uzip
