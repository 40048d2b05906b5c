// A slow second opinion on small floats and on reductions, for comparing with src/base: values are
// doubles, rounding searches a list of all numbers of the format. No code is shared with src/.
#pragma once

#include <uzipcoll/uzipcoll.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace reference {

struct Format {
  int exponent_bits;
  int mantissa_bits;
  bool has_infinity;
};

inline Format format_of(uzip_dtype_t type) {
  switch (type) {
    case UZIP_FP16:
      return {5, 10, true};
    case UZIP_BF16:
      return {8, 7, true};
    case UZIP_FP32:
      return {8, 23, true};
    case UZIP_FP64:
      return {11, 52, true};
    case UZIP_FP8_E4M3FN:
      return {4, 3, false};
    case UZIP_FP8_E5M2:
      return {5, 2, true};
    default:
      return {0, 0, false};
  }
}

inline bool is_float(uzip_dtype_t type) { return format_of(type).exponent_bits != 0; }

inline bool is_signed_integer(uzip_dtype_t type) {
  return type == UZIP_INT8 || type == UZIP_INT32 || type == UZIP_INT64;
}

inline size_t size_of(uzip_dtype_t type) {
  switch (type) {
    case UZIP_INT32:
    case UZIP_UINT32:
      return 4;
    case UZIP_INT64:
    case UZIP_UINT64:
      return 8;
    case UZIP_INT8:
    case UZIP_UINT8:
      return 1;
    default:
      return static_cast<size_t>(1 + format_of(type).exponent_bits +
                                 format_of(type).mantissa_bits) /
             8;
  }
}

/// The value of a bit pattern, from the definition of the format.
inline double decode(Format format, uint64_t bits) {
  const int width = 1 + format.exponent_bits + format.mantissa_bits;
  const bool negative = (bits >> (width - 1) & 1) != 0;
  const uint64_t exponent_mask = (uint64_t{1} << format.exponent_bits) - 1;
  const uint64_t mantissa_mask = (uint64_t{1} << format.mantissa_bits) - 1;
  const uint64_t exponent = bits >> format.mantissa_bits & exponent_mask;
  const uint64_t mantissa = bits & mantissa_mask;
  const int bias = static_cast<int>(exponent_mask >> 1);
  double value;
  if (format.has_infinity && exponent == exponent_mask) {
    value = mantissa == 0 ? INFINITY : NAN;
  } else if (!format.has_infinity && exponent == exponent_mask && mantissa == mantissa_mask) {
    value = NAN;
  } else if (exponent == 0) {
    value = std::ldexp(static_cast<double>(mantissa), 1 - bias - format.mantissa_bits);
  } else {
    value = std::ldexp(static_cast<double>(mantissa + mantissa_mask + 1),
                       static_cast<int>(exponent) - bias - format.mantissa_bits);
  }
  return negative ? -value : value;
}

inline uint64_t canonical_nan(Format format) {
  const uint64_t exponent_mask = ((uint64_t{1} << format.exponent_bits) - 1)
                                 << format.mantissa_bits;
  return format.has_infinity ? exponent_mask | uint64_t{1} << (format.mantissa_bits - 1)
                             : exponent_mask | ((uint64_t{1} << format.mantissa_bits) - 1);
}

/// Rounds to a format of at most 16 bits by searching its numbers.
class Rounder {
 public:
  explicit Rounder(Format format) : format_(format) {
    uint64_t bits = 0;
    for (; std::isfinite(decode(format, bits)); ++bits) numbers_.push_back(decode(format, bits));
    // Where the next number would be, had the format one more: what is nearer to it overflows.
    const size_t n = numbers_.size();
    numbers_.push_back(numbers_[n - 1] + (numbers_[n - 1] - numbers_[n - 2]));
  }

  uint64_t round(double value) const {
    if (std::isnan(value)) return canonical_nan(format_);
    const uint64_t sign =
        std::signbit(value) ? uint64_t{1} << (format_.exponent_bits + format_.mantissa_bits) : 0;
    const double magnitude = std::fabs(value);
    size_t above = static_cast<size_t>(
        std::lower_bound(numbers_.begin(), numbers_.end(), magnitude) - numbers_.begin());
    const size_t overflow = numbers_.size() - 1;
    size_t nearest = std::min(above, overflow);
    if (above > 0 && above <= overflow) {
      const double down = magnitude - numbers_[above - 1];
      const double up = numbers_[above] - magnitude;
      if (down < up || (down == up && (above - 1) % 2 == 0)) nearest = above - 1;
    }
    if (nearest < overflow) return sign | nearest;
    return format_.has_infinity ? sign | overflow : canonical_nan(format_);
  }

 private:
  Format format_;
  std::vector<double> numbers_;  ///< magnitudes; the index is the bit pattern
};

inline const Rounder& rounder(uzip_dtype_t type) {
  static const Rounder fp16(format_of(UZIP_FP16));
  static const Rounder bf16(format_of(UZIP_BF16));
  static const Rounder fp8_e4m3fn(format_of(UZIP_FP8_E4M3FN));
  static const Rounder fp8_e5m2(format_of(UZIP_FP8_E5M2));
  return type == UZIP_FP16         ? fp16
         : type == UZIP_BF16       ? bf16
         : type == UZIP_FP8_E4M3FN ? fp8_e4m3fn
                                   : fp8_e5m2;
}

inline uint64_t bits_of(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

inline uint64_t encode(uzip_dtype_t type, double value) {
  if (type == UZIP_FP64) return std::isnan(value) ? canonical_nan(format_of(type)) : bits_of(value);
  if (type == UZIP_FP32) {
    if (std::isnan(value)) return canonical_nan(format_of(type));
    const auto narrow = static_cast<float>(value);
    uint32_t bits;
    std::memcpy(&bits, &narrow, sizeof bits);
    return bits;
  }
  return rounder(type).round(value);
}

/// One operation in the accumulator's type. In binary32 the exact or doubly rounded result of two
/// binary32 is right after one more rounding: binary64 has more than twice as many bits.
inline double apply(uzip_op_t op, uzip_dtype_t type, double a, double b) {
  const double result = op == UZIP_PROD ? a * b : a + b;
  return type == UZIP_FP64 ? result : static_cast<double>(static_cast<float>(result));
}

inline uint64_t reduce_floats(uzip_op_t op, uzip_dtype_t type,
                              const std::vector<uint64_t>& operands, size_t average_over) {
  const Format format = format_of(type);
  if (op == UZIP_MIN || op == UZIP_MAX) {
    uint64_t best = operands[0];
    for (uint64_t bits : operands) {
      const double value = decode(format, bits);
      const double best_value = decode(format, best);
      if (std::isnan(value) || std::isnan(best_value)) return canonical_nan(format);
      const bool less = value < best_value || (value == best_value && std::signbit(value));
      const bool greater = value > best_value || (value == best_value && !std::signbit(value));
      if (op == UZIP_MIN ? less : greater) best = bits;
    }
    return best;
  }
  double sum = decode(format, operands[0]);
  for (size_t i = 1; i < operands.size(); ++i)
    sum = apply(op, type, sum, decode(format, operands[i]));
  if (op == UZIP_AVG && average_over > 0) {
    if (type == UZIP_FP64) {
      sum /= static_cast<double>(average_over);
    } else {
      sum = static_cast<float>(sum / static_cast<double>(static_cast<float>(average_over)));
    }
  }
  return encode(type, sum);
}

inline uint64_t reduce_integers(uzip_op_t op, uzip_dtype_t type,
                                const std::vector<uint64_t>& operands, size_t average_over) {
  const int width = static_cast<int>(8 * size_of(type));
  const uint64_t mask = width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
  const auto value_of = [&](uint64_t bits) -> __int128 {
    bits &= mask;
    const bool negative = is_signed_integer(type) && (bits >> (width - 1) & 1) != 0;
    return static_cast<__int128>(bits) - (negative ? static_cast<__int128>(mask) + 1 : 0);
  };
  __int128 result = value_of(operands[0]);
  for (size_t i = 1; i < operands.size(); ++i) {
    const __int128 operand = value_of(operands[i]);
    switch (op) {
      case UZIP_PROD:
        result = value_of(static_cast<uint64_t>(result) * static_cast<uint64_t>(operand));
        break;
      case UZIP_MIN:
        result = std::min(result, operand);
        break;
      case UZIP_MAX:
        result = std::max(result, operand);
        break;
      default:
        result = value_of(static_cast<uint64_t>(result + operand));
    }
  }
  if (op == UZIP_AVG && average_over > 0) result /= static_cast<__int128>(average_over);
  return static_cast<uint64_t>(result) & mask;
}

/// The bits of the reduction of `operands`, as the contract of reduce() has it.
inline uint64_t reduce(uzip_op_t op, uzip_dtype_t type, const std::vector<uint64_t>& operands,
                       size_t average_over) {
  if (operands.size() == 1 && (op != UZIP_AVG || average_over == 0)) return operands[0];
  return is_float(type) ? reduce_floats(op, type, operands, average_over)
                        : reduce_integers(op, type, operands, average_over);
}

}  // namespace reference
