// Every bit pattern of the small types, and every exponent of the large ones, comes back. Alone
// they look random and would be sent raw, so they are mixed with what compresses.
#include "base/cpu.hpp"
#include "codec/codec_harness.hpp"
#include "codec/samples.hpp"
#include "support/long_tests.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace uzip {
namespace {

using Patterns = std::vector<uint64_t>;

/// All of an 8-bit type, often, or of a 16-bit type; of the others every sign and exponent with
/// mantissas of all kinds: 0, 1, all ones, quiet bit alone, and random ones.
Patterns patterns_of(const DataTypeInfo& info, size_t random_mantissas) {
  Patterns all;
  if (info.size <= 2) {
    all.resize(size_t{1} << 16);
    std::iota(all.begin(), all.end(), 0);
    if (info.size == 1)
      for (uint64_t& pattern : all) pattern &= 0xff;
    return all;
  }
  std::mt19937_64 random(info.type);
  const uint64_t mantissa_mask = (uint64_t{1} << info.mantissa_bits) - 1;
  const uint64_t quiet = uint64_t{1} << (info.mantissa_bits - 1);
  for (uint64_t top = 0; top < uint64_t{2} << info.exponent_bits; ++top) {
    auto add = [&](uint64_t mantissa) {
      all.push_back(top << info.mantissa_bits | (mantissa & mantissa_mask));
    };
    for (uint64_t mantissa : {uint64_t{0}, uint64_t{1}, mantissa_mask, quiet, quiet | 1, quiet - 1})
      add(mantissa);
    for (size_t i = 0; i < random_mantissas; ++i) add(random());
  }
  return all;
}

enum class Company { kNone, kOrdinary, kZeros, kEqual, kSorted };

const char* company_name(Company company) {
  switch (company) {
    case Company::kNone:
      return "alone";
    case Company::kOrdinary:
      return "among ordinary values";
    case Company::kZeros:
      return "among zeros";
    case Company::kEqual:
      return "among equal values";
    case Company::kSorted:
      return "sorted";
  }
  return "";
}

void put(std::vector<uint8_t>& elements, size_t i, uint64_t value, size_t size) {
  std::memcpy(&elements[i * size], &value, size);
}

/// Each pattern once, in random order, and seven others around each.
std::vector<uint8_t> arrange(const DataTypeInfo& info, Patterns patterns, Company company) {
  std::mt19937_64 random(7);
  std::shuffle(patterns.begin(), patterns.end(), random);
  if (company == Company::kSorted) std::sort(patterns.begin(), patterns.end());
  const size_t share = company == Company::kNone || company == Company::kSorted ? 1 : 8;
  const size_t count = patterns.size() * share;
  auto elements = company == Company::kOrdinary
                      ? make_sample(info.type, SampleKind::kGaussian, count)
                      : std::vector<uint8_t>(count * info.size);
  if (company == Company::kEqual)
    for (size_t i = 0; i < count; ++i) put(elements, i, 0x3e, info.size);
  for (size_t i = 0; i < patterns.size(); ++i)
    put(elements, i * share + random() % share, patterns[i], info.size);
  return elements;
}

/// Of the types that are coded.
std::vector<DataTypeInfo> float_types() {
  std::vector<DataTypeInfo> floats;
  for (const DataTypeInfo& info : datatypes())
    if (is_float(info.type)) floats.push_back(info);
  return floats;
}

class EveryPattern : public ::testing::TestWithParam<CpuTarget> {
 protected:
  void SetUp() override { ASSERT_TRUE(set_cpu_target(cpu_target_name(GetParam())).ok()); }
  void TearDown() override { ASSERT_TRUE(set_cpu_target("auto").ok()); }

  /// Coded as one frame. Returns whether it became smaller.
  bool survives(DataType type, CodecLevel level, std::span<const uint8_t> elements) {
    const EncodedFrame frame = harness_.encode(type, level, elements);
    EXPECT_EQ(harness_.check_round_trip(frame, elements), "");
    return frame.header.codec != kCodecRaw;
  }

 private:
  CodecHarness harness_{*find_codec("lev"), size_t{8} << 20};
};

TEST_P(EveryPattern, Survives) {
  for (const DataTypeInfo& info : float_types()) {
    const Patterns patterns = patterns_of(info, info.size == 4 ? 60 : 10);
    for (Company company :
         {Company::kNone, Company::kOrdinary, Company::kZeros, Company::kEqual, Company::kSorted}) {
      const auto elements = arrange(info, patterns, company);
      for (CodecLevel level : kCodecLevels) {
        SCOPED_TRACE(std::string(info.name) + " " + company_name(company));
        const bool coded = survives(info.type, level, elements);
        // Else this proves nothing.
        const bool must = company == Company::kOrdinary || company == Company::kZeros;
        EXPECT_TRUE(coded || !must);
      }
    }
  }
}

/// One kind of special value in turn, dense enough to get codes of its own.
TEST_P(EveryPattern, SpecialValuesSurviveWhereTheyAreFrequent) {
  for (const DataTypeInfo& info : float_types()) {
    const uint64_t sign = uint64_t{1} << (8 * info.size - 1);
    const uint64_t infinity = ((uint64_t{1} << info.exponent_bits) - 1) << info.mantissa_bits;
    const uint64_t payloads = (uint64_t{1} << info.mantissa_bits) - 1;
    std::mt19937_64 random(info.type);
    const std::pair<const char*, uint64_t (*)(uint64_t, uint64_t, uint64_t, uint64_t)> kinds[] = {
        {"NaNs with payloads",
         [](uint64_t s, uint64_t inf, uint64_t m, uint64_t r) {
           return (r & s) | inf | std::max<uint64_t>(1, r & m);
         }},
        {"denormals",
         [](uint64_t s, uint64_t, uint64_t m, uint64_t r) { return (r & s) | (r & m); }},
        {"infinities",
         [](uint64_t s, uint64_t inf, uint64_t, uint64_t r) { return (r & s) | inf; }},
        {"zeros", [](uint64_t s, uint64_t, uint64_t, uint64_t r) { return r & s; }},
    };
    for (const auto& [name, kind] : kinds) {
      auto elements = make_sample(info.type, SampleKind::kGaussian, 20000);
      for (size_t i = 0; i < 20000; ++i)
        if (random() % 2 == 0)
          put(elements, i, kind(sign, infinity, payloads, random()), info.size);
      for (CodecLevel level : kCodecLevels) {
        SCOPED_TRACE(std::string(info.name) + " " + name);
        survives(info.type, level, elements);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, EveryPattern,
                         ::testing::ValuesIn(available_cpu_targets().begin(),
                                             available_cpu_targets().end()),
                         [](const auto& test) { return cpu_target_name(test.param); });

/// All 2^32 patterns of fp32, 2^19 in each frame, in an order that leaves something to compress:
/// all low halves below a few upper halves.
TEST(AllOfFp32, Survives) {
  const uint32_t step = long_tests() ? 1 : 257;
  CodecHarness harness(*find_codec("lev"), size_t{4} << 20);
  std::vector<uint32_t> values(size_t{1} << 19);
  size_t coded = 0;
  for (uint32_t upper = 0; upper < 65536; upper += 8 * step) {
    for (uint32_t i = 0; i < values.size(); ++i) {
      // An odd factor reaches every low half, in an order that looks random.
      const uint32_t low = i / 8 * 40503u & 0xffff;
      values[i] = ((upper + i % 8) & 0xffff) << 16 | low;
    }
    const std::span elements(reinterpret_cast<const uint8_t*>(values.data()), 4 * values.size());
    const EncodedFrame frame = harness.encode(UZIP_FP32, kCodecLevels[upper / 8 % 3], elements);
    ASSERT_EQ(harness.check_round_trip(frame, elements), "") << upper;
    coded += frame.header.codec != kCodecRaw;
  }
  EXPECT_GT(coded, 30u);
}

}  // namespace
}  // namespace uzip
