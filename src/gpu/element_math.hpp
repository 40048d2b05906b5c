// Reductions of single elements, with the bits of base/reduce.hpp: accumulation in binary32 for
// small floats, one rounding at the end, a canonical NaN. Used by the decode and reduce kernels.
#pragma once

#include "base/float_convert.hpp"
#include "gpu/platform.hpp"

#include <uzipcoll/uzipcoll.h>

namespace uzip::gpu {

// ---- Formats: bits of an element to its accumulator's type and back ------------------------------

struct Bf16Element {
  using Bits = uint16_t;
  using Key = int32_t;
  using Number = float;
  static constexpr Key kInfinity = 0x7f80;
  static constexpr uint32_t kNan = 0x7fc0;
  static UZIP_DEVICE float widen(uint32_t bits) { return bits_to_float(bits << 16); }
  static UZIP_DEVICE uint32_t round(float value) {
    const uint32_t bits = float_to_bits(value);
    return value == value ? (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16 : kNan;
  }
};

struct Fp16Element {
  using Bits = uint16_t;
  using Key = int32_t;
  using Number = float;
  static constexpr Key kInfinity = 0x7c00;
  static constexpr uint32_t kNan = 0x7e00;
  static UZIP_DEVICE float widen(uint32_t bits) {
    return half_to_float(static_cast<uint16_t>(bits));
  }
  static UZIP_DEVICE uint32_t round(float value) {
    return value == value ? float_to_half(value) : kNan;
  }
};

template <int kExponentBits, int kMantissaBits, bool kHasInfinity>
struct Fp8Element {
  using Bits = uint8_t;
  using Key = int32_t;
  using Number = float;
  static constexpr SmallFloatFormat kFormat{kExponentBits, kMantissaBits, kHasInfinity};
  static constexpr uint32_t kNan = kFormat.canonical_nan();
  // Without infinity the largest magnitude that is a number.
  static constexpr Key kInfinity = static_cast<Key>(kFormat.special()) - (kHasInfinity ? 0 : 1);
  static UZIP_DEVICE float widen(uint32_t bits) {
    constexpr uint32_t kSpecial = kFormat.special();
    constexpr uint32_t kRebias = 127u - static_cast<uint32_t>(kFormat.bias());
    constexpr int kShift = 23 - kMantissaBits;
    const uint32_t sign = (bits & 0x80u) << 24;
    const uint32_t magnitude = bits & 0x7fu;
    if (magnitude >= kSpecial)
      return bits_to_float(sign | 0x7f800000u | (magnitude << kShift & 0x7fffffu));
    // A denormal counts quanta, the last place of the least normal.
    if (magnitude >> kMantissaBits == 0)
      return static_cast<float>(magnitude) *
             bits_to_float(sign | (kRebias + 1u - kMantissaBits) << 23);
    return bits_to_float(sign | ((magnitude << kShift) + (kRebias << 23)));
  }
  static UZIP_DEVICE uint32_t round(float value) {
    return from_binary32(kFormat, float_to_bits(value));
  }
};

struct Fp32Element {
  using Bits = uint32_t;
  using Key = int32_t;
  using Number = float;
  static constexpr Key kInfinity = 0x7f800000;
  static constexpr uint32_t kNan = 0x7fc00000;
  static UZIP_DEVICE float widen(uint32_t bits) { return bits_to_float(bits); }
  static UZIP_DEVICE uint32_t round(float value) {
    return value == value ? float_to_bits(value) : kNan;
  }
};

struct Fp64Element {
  using Bits = uint64_t;
  using Key = int64_t;
  using Number = double;
  static constexpr Key kInfinity = Key{0x7ff0} << 48;
  static constexpr uint64_t kNan = uint64_t{0x7ff8} << 48;
  static UZIP_DEVICE double widen(uint64_t bits) { return bits_to_double(bits); }
  static UZIP_DEVICE uint64_t round(double value) {
    return value == value ? double_to_bits(value) : kNan;
  }
};

// ---- Accumulators --------------------------------------------------------------------------------

/// Sums and products as numbers; minimum and maximum as integers whose order is that of the floats,
/// with a NaN as the winner of every comparison.
template <class Element>
class FloatAccumulator {
 public:
  using Bits = typename Element::Bits;

  UZIP_DEVICE FloatAccumulator(uint32_t op, Bits bits)
      : op_(op), value_(orders() ? 0 : Element::widen(bits)), key_(orders() ? key_of(bits) : 0) {}

  UZIP_DEVICE void next(Bits bits) {
    if (orders()) {
      const Key other = key_of(bits);
      const bool less = other < key_;
      key_ = less == (op_ == UZIP_MIN) ? other : key_;
    } else if (op_ == UZIP_PROD) {
      value_ *= Element::widen(bits);
    } else {
      value_ += Element::widen(bits);
    }
  }

  UZIP_DEVICE Bits result(uint64_t average_over) const {
    if (orders())
      return static_cast<Bits>(key_ == winner() ? static_cast<Key>(Element::kNan) : flip(key_));
    if (op_ == UZIP_AVG && average_over > 0)
      return static_cast<Bits>(Element::round(value_ / static_cast<Number>(average_over)));
    return static_cast<Bits>(Element::round(value_));
  }

 private:
  using Key = typename Element::Key;
  using Number = typename Element::Number;
  static constexpr unsigned kUnused = 8 * (sizeof(Key) - sizeof(Bits));
  static constexpr Key kMagnitude =
      static_cast<Key>((uint64_t{1} << (8 * sizeof(Bits) - 1)) - 1);

  UZIP_DEVICE bool orders() const { return op_ == UZIP_MIN || op_ == UZIP_MAX; }
  UZIP_DEVICE Key winner() const { return op_ == UZIP_MAX ? kMagnitude : ~kMagnitude; }
  static UZIP_DEVICE Key flip(Key key) { return key < 0 ? key ^ kMagnitude : key; }
  UZIP_DEVICE Key key_of(Bits bits) const {
    const Key value = static_cast<Key>(static_cast<Key>(bits) << kUnused) >> kUnused;
    return (value & kMagnitude) > Element::kInfinity ? winner() : flip(value);
  }

  uint32_t op_;
  Number value_;
  Key key_;
};

template <class T>
class IntegerAccumulator {
 public:
  using Bits = T;
  UZIP_DEVICE IntegerAccumulator(uint32_t op, T value) : op_(op), value_(value) {}

  UZIP_DEVICE void next(T value) {
    const auto a = static_cast<uint64_t>(value_);
    const auto b = static_cast<uint64_t>(value);
    if (op_ == UZIP_MIN)
      value_ = value < value_ ? value : value_;
    else if (op_ == UZIP_MAX)
      value_ = value > value_ ? value : value_;
    else
      value_ = static_cast<T>(op_ == UZIP_PROD ? a * b : a + b);
  }

  /// Divisions round towards zero.
  UZIP_DEVICE T result(uint64_t average_over) const {
    if (op_ != UZIP_AVG || average_over == 0) return value_;
    const bool negative = static_cast<int64_t>(value_) < 0 && T(-1) < T(1);
    const auto bits = static_cast<uint64_t>(static_cast<int64_t>(value_));
    const uint64_t magnitude =
        (negative ? 0 - bits : static_cast<uint64_t>(value_)) / average_over;
    return static_cast<T>(negative ? 0 - magnitude : magnitude);
  }

 private:
  uint32_t op_;
  T value_;
};

// ---- Types ---------------------------------------------------------------------------------------

template <int kType>
struct AccumulatorOf;
template <>
struct AccumulatorOf<UZIP_INT8> {
  using Type = IntegerAccumulator<int8_t>;
};
template <>
struct AccumulatorOf<UZIP_UINT8> {
  using Type = IntegerAccumulator<uint8_t>;
};
template <>
struct AccumulatorOf<UZIP_INT32> {
  using Type = IntegerAccumulator<int32_t>;
};
template <>
struct AccumulatorOf<UZIP_UINT32> {
  using Type = IntegerAccumulator<uint32_t>;
};
template <>
struct AccumulatorOf<UZIP_INT64> {
  using Type = IntegerAccumulator<int64_t>;
};
template <>
struct AccumulatorOf<UZIP_UINT64> {
  using Type = IntegerAccumulator<uint64_t>;
};
template <>
struct AccumulatorOf<UZIP_FP16> {
  using Type = FloatAccumulator<Fp16Element>;
};
template <>
struct AccumulatorOf<UZIP_BF16> {
  using Type = FloatAccumulator<Bf16Element>;
};
template <>
struct AccumulatorOf<UZIP_FP32> {
  using Type = FloatAccumulator<Fp32Element>;
};
template <>
struct AccumulatorOf<UZIP_FP64> {
  using Type = FloatAccumulator<Fp64Element>;
};
template <>
struct AccumulatorOf<UZIP_FP8_E4M3FN> {
  using Type = FloatAccumulator<Fp8Element<4, 3, false>>;
};
template <>
struct AccumulatorOf<UZIP_FP8_E5M2> {
  using Type = FloatAccumulator<Fp8Element<5, 2, true>>;
};

}  // namespace uzip::gpu
