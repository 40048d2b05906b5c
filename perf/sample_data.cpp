#include "sample_data.hpp"

#include "failure.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <numbers>

namespace perf {
namespace {

// Primes. The longest is far more than any block over which a codec gathers statistics or
// repetitions; the shorter ones save time where only small messages are measured.
constexpr size_t kPeriods[] = {65537, 524309, 4194319};

/// Bytes of one kind in a row in mixed data.
constexpr size_t kMixedRun = 64 << 10;

enum Stream : uint64_t { kRadius = 100, kAngle, kUniformStream, kBits };

// Uniform in (0, 1].
double unit(uint64_t stream, uint64_t index) {
  return static_cast<double>((mix(stream, index) >> 11) + 1) * 0x1p-53;
}

// Normal, mean 0, standard deviation 1 (Box and Muller's method).
double gauss(uint64_t index) {
  const double radius = std::sqrt(-2 * std::log(unit(kRadius, index / 2)));
  const double angle = 2 * std::numbers::pi * unit(kAngle, index / 2);
  return radius * (index % 2 == 0 ? std::cos(angle) : std::sin(angle));
}

// Integers have the same distribution, with a standard deviation of 16 (int8, uint8) or 1000.
uint64_t encode(const ElementType& type, double value) {
  if (type.is_float()) return encode_float(type, value);
  const double scaled = std::nearbyint(value * (type.size == 1 ? 16 : 1000));
  return static_cast<uint64_t>(static_cast<int64_t>(type.is_signed ? scaled : std::fabs(scaled)));
}

uint64_t element(DataKind kind, const ElementType& type, size_t index) {
  switch (kind) {
    case DataKind::kGauss:
      return encode(type, gauss(index));
    case DataKind::kUniform:
      return encode(type, 2 * unit(kUniformStream, index) - 1);
    case DataKind::kRandom:
      return mix(kBits, index);
    case DataKind::kMixed:
      return index * type.size / kMixedRun % 2 == 0 ? encode(type, gauss(index)) : mix(kBits, index);
    case DataKind::kZeros:
    case DataKind::kFile:
      break;
  }
  return 0;
}

[[noreturn]] void fail_file(const std::string& path, const std::string& what) {
  throw Failure(kExitUsage, "--data file:" + path + ": " + what);
}

// The whole file, or its first gibibyte.
Pattern read_pattern(const std::string& path, const ElementType& type) {
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file) fail_file(path, std::strerror(errno));
  if (std::fseek(file.get(), 0, SEEK_END) != 0) fail_file(path, std::strerror(errno));
  const long bytes = std::ftell(file.get());
  std::rewind(file.get());
  const size_t elements = bytes < 0 ? 0 : static_cast<size_t>(bytes) / type.size;
  if (elements == 0) {
    fail_file(path, "holds no whole element of type " + std::string(type.name) + " (" +
                        std::to_string(type.size) + " bytes)");
  }
  Pattern pattern(type, std::min(elements, (size_t{1} << 30) / type.size));
  if (std::fread(pattern.data(), type.size, pattern.period(), file.get()) != pattern.period()) {
    fail_file(path, "could not be read to its end");
  }
  return pattern;
}

}  // namespace

std::string to_string(const DataSource& source) {
  switch (source.kind) {
    case DataKind::kGauss:
      return "gauss";
    case DataKind::kUniform:
      return "uniform";
    case DataKind::kZeros:
      return "zeros";
    case DataKind::kRandom:
      return "random";
    case DataKind::kMixed:
      return "mixed";
    case DataKind::kFile:
      break;
  }
  return "file:" + source.path;
}

std::optional<DataSource> find_data_source(std::string_view text) {
  constexpr std::string_view kFilePrefix = "file:";
  if (text.starts_with(kFilePrefix) && text.size() > kFilePrefix.size())
    return DataSource{DataKind::kFile, std::string(text.substr(kFilePrefix.size()))};
  for (DataKind kind : {DataKind::kGauss, DataKind::kUniform, DataKind::kZeros, DataKind::kRandom, DataKind::kMixed})
    if (text == to_string({kind, ""})) return DataSource{kind, ""};
  return std::nullopt;
}

std::string describe(const DataSource& source) {
  switch (source.kind) {
    case DataKind::kGauss:
      return "gauss (normal, mean 0, standard deviation 1)";
    case DataKind::kUniform:
      return "uniform (between -1 and 1)";
    case DataKind::kZeros:
      return "zeros";
    case DataKind::kRandom:
      return "random (every bit; cannot be compressed)";
    case DataKind::kMixed:
      return "mixed (64 KiB of gauss, 64 KiB of random, and so on)";
    case DataKind::kFile:
      break;
  }
  return "file " + source.path + ", repeated";
}

Pattern sample_pattern(const DataSource& source, const ElementType& type, size_t wanted) {
  if (source.kind == DataKind::kFile) return read_pattern(source.path, type);
  const auto* period = std::ranges::find_if(kPeriods, [=](size_t p) { return p >= wanted; });
  Pattern pattern(type, period == std::end(kPeriods) ? *std::rbegin(kPeriods) : *period);
  for (size_t i = 0; i < pattern.period(); ++i) pattern.set(i, element(source.kind, type, i));
  return pattern;
}

}  // namespace perf
