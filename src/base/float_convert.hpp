// Conversions between binary32 and the 8- and 16-bit floats, one value at a time, by integer
// arithmetic alone: the result does not depend on the rounding mode or on flushed denormals. For
// checks, tools and scalar code; the reductions have their own vector code, which the tests compare
// with this one.
#pragma once

#include <bit>
#include <cstdint>

namespace uzip {

/// A float of at most 16 bits. With has_infinity it follows IEEE 754; without, all exponents are
/// numbers, only the largest magnitude is NaN, and what overflows becomes it.
struct SmallFloatFormat {
  int exponent_bits;
  int mantissa_bits;
  bool has_infinity;

  constexpr int bits() const { return 1 + exponent_bits + mantissa_bits; }
  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  constexpr uint32_t sign_bit() const { return 1u << (exponent_bits + mantissa_bits); }
  /// Least magnitude that is not a number: infinity, or the only NaN.
  constexpr uint32_t special() const {
    return has_infinity ? ((1u << exponent_bits) - 1) << mantissa_bits : sign_bit() - 1;
  }
  constexpr uint32_t canonical_nan() const {
    return has_infinity ? special() | 1u << (mantissa_bits - 1) : special();
  }
};

inline constexpr SmallFloatFormat kFp16Format{5, 10, true};
inline constexpr SmallFloatFormat kBf16Format{8, 7, true};
inline constexpr SmallFloatFormat kFp8E4m3fnFormat{4, 3, false};
inline constexpr SmallFloatFormat kFp8E5m2Format{5, 2, true};

/// The bits of the binary32 with the value of `bits`. Exact; NaNs keep sign and payload (in the
/// upper bits).
constexpr uint32_t to_binary32(SmallFloatFormat format, uint32_t bits) {
  const int shift = 23 - format.mantissa_bits;
  const uint32_t sign = (bits & format.sign_bit()) != 0 ? 0x80000000u : 0;
  const uint32_t magnitude = bits & (format.sign_bit() - 1);
  if (magnitude >= format.special()) return sign | 0x7f800000u | ((magnitude << shift) & 0x7fffffu);
  const uint32_t mantissa = magnitude & ((1u << format.mantissa_bits) - 1);
  uint32_t exponent = magnitude >> format.mantissa_bits;
  // bfloat16 has binary32's own exponents, denormals included.
  if (format.exponent_bits == 8) return sign | magnitude << shift;
  const auto rebias = static_cast<uint32_t>(127 - format.bias());
  if (exponent != 0) return sign | (exponent + rebias) << 23 | mantissa << shift;
  if (mantissa == 0) return sign;
  // A denormal: its highest set bit becomes the implicit one.
  const int up = std::countl_zero(mantissa) - (31 - format.mantissa_bits);
  exponent = rebias + 1 - static_cast<uint32_t>(up);
  return sign | exponent << 23 | ((mantissa << up) << shift & 0x7fffffu);
}

/// The nearest value of the format, ties to even; the canonical NaN for a NaN and, without
/// infinity, for what rounds beyond the largest number.
constexpr uint32_t from_binary32(SmallFloatFormat format, uint32_t binary32) {
  const uint32_t magnitude = binary32 & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return format.canonical_nan();
  const uint32_t sign = (binary32 & 0x80000000u) != 0 ? format.sign_bit() : 0;

  // The value is significand x 2^(exponent - 150); the result counts quanta of 2^(quantum - 150).
  const uint32_t field = magnitude >> 23;
  const int exponent = field == 0 ? 1 : static_cast<int>(field);
  const uint32_t significand = (magnitude & 0x7fffffu) | (field == 0 ? 0 : 0x800000u);
  const int shift = 23 - format.mantissa_bits;
  const int least =
      128 - format.bias() > 1 ? 128 - format.bias() : 1;  ///< exponent of the least normal
  const int scale = exponent > least ? exponent : least;
  const int dropped = shift + (scale - exponent);
  uint32_t quanta = 0;
  if (dropped <= 24) {
    const uint32_t half = 1u << (dropped - 1);
    const uint32_t odd = (significand >> dropped) & 1u;
    quanta = (significand + half - 1 + odd) >> dropped;
  }
  // The implicit bit, part of the quanta, adds one to the exponent.
  const uint32_t rounded = quanta + (static_cast<uint32_t>(scale - least) << format.mantissa_bits);
  if (rounded < format.special()) return sign | rounded;
  return format.has_infinity ? sign | format.special() : format.canonical_nan();
}

constexpr float fp16_to_float(uint16_t bits) {
  return std::bit_cast<float>(to_binary32(kFp16Format, bits));
}
constexpr float bf16_to_float(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }
constexpr float fp8_e4m3fn_to_float(uint8_t bits) {
  return std::bit_cast<float>(to_binary32(kFp8E4m3fnFormat, bits));
}
constexpr float fp8_e5m2_to_float(uint8_t bits) {
  return std::bit_cast<float>(to_binary32(kFp8E5m2Format, bits));
}

constexpr uint16_t float_to_fp16(float value) {
  return static_cast<uint16_t>(from_binary32(kFp16Format, std::bit_cast<uint32_t>(value)));
}
constexpr uint16_t float_to_bf16(float value) {
  return static_cast<uint16_t>(from_binary32(kBf16Format, std::bit_cast<uint32_t>(value)));
}
constexpr uint8_t float_to_fp8_e4m3fn(float value) {
  return static_cast<uint8_t>(from_binary32(kFp8E4m3fnFormat, std::bit_cast<uint32_t>(value)));
}
constexpr uint8_t float_to_fp8_e5m2(float value) {
  return static_cast<uint8_t>(from_binary32(kFp8E5m2Format, std::bit_cast<uint32_t>(value)));
}

}  // namespace uzip
