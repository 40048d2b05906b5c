// A second, naive opinion on the element types, for checking results: no code is shared with src/.
#pragma once

#include <uzipcoll/uzipcoll.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace naive {

struct Format {
  int exponent_bits, mantissa_bits;
  bool has_infinity;
};

inline Format format_of(uzip_dtype_t type) {
  switch (type) {
    case UZIP_FP16: return {5, 10, true};
    case UZIP_BF16: return {8, 7, true};
    case UZIP_FP32: return {8, 23, true};
    case UZIP_FP64: return {11, 52, true};
    case UZIP_FP8_E4M3FN: return {4, 3, false};
    case UZIP_FP8_E5M2: return {5, 2, true};
    default: return {0, 0, false};
  }
}

inline bool is_float(uzip_dtype_t type) { return format_of(type).exponent_bits > 0; }

/// The bits of `value` rounded to nearest even in `format`; finite values in range only.
inline uint64_t float_bits(double value, Format format) {
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const uint64_t sign = std::signbit(value) ? uint64_t{1} << (format.exponent_bits + format.mantissa_bits) : 0;
  const double magnitude = std::fabs(value);
  if (magnitude == 0) return sign;
  int exponent;
  std::frexp(magnitude, &exponent);
  exponent = std::max(exponent - 1, 1 - bias);
  auto mantissa = static_cast<uint64_t>(std::nearbyint(std::ldexp(magnitude, format.mantissa_bits - exponent)));
  const uint64_t one = uint64_t{1} << format.mantissa_bits;
  if (mantissa >= 2 * one) {
    mantissa /= 2;
    ++exponent;
  }
  if (mantissa < one) return sign | mantissa;
  return sign | static_cast<uint64_t>(exponent + bias) << format.mantissa_bits | (mantissa - one);
}

/// Writes `value` as element `index` of an array of `type`.
inline void store(uzip_dtype_t type, void* array, size_t index, double value) {
  const size_t size = uzip_dtype_size(type);
  const uint64_t bits = is_float(type) ? float_bits(value, format_of(type))
                                       : static_cast<uint64_t>(static_cast<int64_t>(value));
  std::memcpy(static_cast<char*>(array) + index * size, &bits, size);
}

}  // namespace naive
