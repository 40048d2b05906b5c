// Every pattern of the small floats widens to its value; binary32 rounds to the nearest one, which
// a search in the list of all numbers finds.
#include "base/float_convert.hpp"

#include "base/float_reference.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace uzip {
namespace {

struct Case {
  const char* name;
  uzip_dtype_t type;
  SmallFloatFormat format;
};

class FloatConvertTest : public testing::TestWithParam<Case> {
 protected:
  SmallFloatFormat format() const { return GetParam().format; }
  reference::Format slow_format() const { return reference::format_of(GetParam().type); }

  // "" or what is wrong with the rounding of one binary32.
  std::string check_rounding(uint32_t bits) const {
    const uint32_t rounded = from_binary32(format(), bits);
    const uint64_t expected = reference::rounder(GetParam().type).round(std::bit_cast<float>(bits));
    if (rounded == expected) return "";
    char text[80];
    std::snprintf(text, sizeof text, "%#x rounds to %#x, not %#jx", bits, rounded,
                  uintmax_t{expected});
    return text;
  }
};

INSTANTIATE_TEST_SUITE_P(Formats, FloatConvertTest,
                         testing::Values(Case{"fp16", UZIP_FP16, kFp16Format},
                                         Case{"bf16", UZIP_BF16, kBf16Format},
                                         Case{"fp8_e4m3fn", UZIP_FP8_E4M3FN, kFp8E4m3fnFormat},
                                         Case{"fp8_e5m2", UZIP_FP8_E5M2, kFp8E5m2Format}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(FloatConvertTest, EveryPatternWidensToItsValue) {
  for (uint32_t bits = 0; bits < 1u << format().bits(); ++bits) {
    const double expected = reference::decode(slow_format(), bits);
    const uint32_t wide = to_binary32(format(), bits);
    const float value = std::bit_cast<float>(wide);
    ASSERT_EQ(std::signbit(value), std::signbit(expected)) << std::hex << bits;
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value)) << std::hex << bits;
      const uint32_t payload = bits & ((1u << format().mantissa_bits) - 1);
      ASSERT_EQ(wide >> (23 - format().mantissa_bits) & ((1u << format().mantissa_bits) - 1),
                payload);
    } else {
      ASSERT_EQ(value, expected) << std::hex << bits;
    }
  }
}

TEST_P(FloatConvertTest, EveryNumberRoundsToItself) {
  for (uint32_t bits = 0; bits < 1u << format().bits(); ++bits) {
    const bool nan = std::isnan(reference::decode(slow_format(), bits));
    const uint32_t back = from_binary32(format(), to_binary32(format(), bits));
    ASSERT_EQ(back, nan ? reference::canonical_nan(slow_format()) : bits) << std::hex << bits;
  }
}

// Between every two neighbours: the middle, and the binary32 on both sides of it.
TEST_P(FloatConvertTest, TiesGoToEvenAndTheirNeighboursDoNot) {
  const uint32_t half_range = 1u << (format().bits() - 1);
  for (uint32_t bits = 0; bits + 1 < half_range; ++bits) {
    const double low = reference::decode(slow_format(), bits);
    const double high = reference::decode(slow_format(), bits + 1);
    if (!std::isfinite(low)) break;
    const double middle = std::isfinite(high) ? (low + high) / 2 : low * (1 + 1e-9);
    const uint32_t wide = std::bit_cast<uint32_t>(static_cast<float>(middle));
    for (uint32_t near : {wide - 2, wide - 1, wide, wide + 1, wide + 2}) {
      ASSERT_EQ(check_rounding(near & 0x7fffffffu), "");
      ASSERT_EQ(check_rounding(near | 0x80000000u), "");
    }
  }
}

TEST_P(FloatConvertTest, AroundTheOverflow) {
  const double largest = reference::decode(slow_format(), format().special() - 1);
  const uint32_t bits = std::bit_cast<uint32_t>(static_cast<float>(largest));
  const uint32_t unit = 1u << (23 - format().mantissa_bits);
  for (uint32_t step = 0; step <= 3 * unit && bits + step <= 0x7f800000u;
       step += (unit > 64 ? unit / 64 : 1)) {
    for (uint32_t near : {bits + step - 1, bits + step, bits + step + 1}) {
      ASSERT_EQ(check_rounding(near), "");
      ASSERT_EQ(check_rounding(near | 0x80000000u), "");
    }
  }
}

TEST_P(FloatConvertTest, RandomAndSpecialPatternsRoundToTheNearest) {
  for (uint32_t bits :
       {0u, 1u, 0x7fffffu, 0x800000u, 0x7f7fffffu, 0x7f800000u, 0x7f800001u, 0x7fffffffu}) {
    ASSERT_EQ(check_rounding(bits), "");
    ASSERT_EQ(check_rounding(bits | 0x80000000u), "");
  }
  std::mt19937 random(1);
  for (int i = 0; i < 400000; ++i) ASSERT_EQ(check_rounding(static_cast<uint32_t>(random())), "");
}

#if defined(__SSE2__)

TEST_P(FloatConvertTest, FloatingPointSettingsDoNotMatter) {
  std::mt19937 random(2);
  for (int i = 0; i < 20000; ++i) {
    const auto bits = static_cast<uint32_t>(random());
    const uint32_t normally = from_binary32(format(), bits);
    const uint32_t widened = to_binary32(format(), bits & ((1u << format().bits()) - 1));
    const unsigned saved = _mm_getcsr();
    _mm_setcsr(saved | _MM_FLUSH_ZERO_ON | 0x40u /* DAZ */ | _MM_ROUND_UP);
    const uint32_t hostile = from_binary32(format(), bits);
    const uint32_t hostile_widened = to_binary32(format(), bits & ((1u << format().bits()) - 1));
    _mm_setcsr(saved);
    ASSERT_EQ(hostile, normally);
    ASSERT_EQ(hostile_widened, widened);
  }
}

#endif

// Known values, at compile time.
static_assert(float_to_bf16(1.0f) == 0x3f80);
static_assert(float_to_fp16(65504.0f) == 0x7bff);
static_assert(float_to_fp16(65520.0f) == 0x7c00);
static_assert(float_to_fp16(5.9604645e-8f) == 0x0001);
static_assert(float_to_fp8_e4m3fn(448.0f) == 0x7e);
static_assert(float_to_fp8_e4m3fn(464.0f) == 0x7e);
static_assert(float_to_fp8_e4m3fn(-465.0f) == 0x7f);
static_assert(float_to_fp8_e5m2(57344.0f) == 0x7b);
static_assert(float_to_fp8_e5m2(-61440.0f) == 0xfc);
static_assert(fp16_to_float(0x0001) == 5.9604645e-8f);
static_assert(bf16_to_float(0xc000) == -2.0f);
static_assert(fp8_e4m3fn_to_float(0x08) == 0.015625f);
static_assert(fp8_e5m2_to_float(0x01) == 1.52587890625e-5f);

}  // namespace
}  // namespace uzip
