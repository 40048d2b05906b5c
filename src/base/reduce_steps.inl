// What is kept of one vector while the sources of a reduction go by. Third part of
// reduce_kernels.inl; see there. Also included by kernels of src/codec that add what they decode.

namespace uzip {
namespace {

struct Add {
  template <class V>
  static UZIP_INLINE V apply(V a, V b) {
    return a + b;
  }
};
struct Multiply {
  template <class V>
  static UZIP_INLINE V apply(V a, V b) {
    return a * b;
  }
};
struct Lesser {
  static constexpr bool kIsMaximum = false;
  template <class V>
  static UZIP_INLINE V apply(V a, V b) {
    return a < b ? a : b;
  }
};
struct Greater {
  static constexpr bool kIsMaximum = true;
  template <class V>
  static UZIP_INLINE V apply(V a, V b) {
    return a > b ? a : b;
  }
};

// Sums and products of floats in binary32.
template <class Format, class Combine, bool kDivide = false>
struct FloatStep {
  static constexpr size_t kRegistersUsed = Format::kParts;
  Floats parts[Format::kParts];

  UZIP_INLINE void first(Words words) { Format::widen(words, parts); }
  UZIP_INLINE void next(Words words) {
    Floats operand[Format::kParts];
    Format::widen(words, operand);
#pragma GCC unroll 4
    for (int i = 0; i < Format::kParts; ++i) parts[i] = Combine::apply(parts[i], operand[i]);
  }
  UZIP_INLINE Words result(size_t average_over) {
    if constexpr (kDivide) {
#pragma GCC unroll 4
      for (int i = 0; i < Format::kParts; ++i) parts[i] /= static_cast<float>(average_over);
    }
    return Format::round(parts);
  }
};

template <class Combine, bool kDivide = false>
struct DoubleStep {
  static constexpr size_t kRegistersUsed = 1;
  Lanes<double> value;

  UZIP_INLINE void first(Words words) { value = Lanes<double>(words); }
  UZIP_INLINE void next(Words words) { value = Combine::apply(value, Lanes<double>(words)); }
  UZIP_INLINE Words result(size_t average_over) {
    if constexpr (kDivide) value /= static_cast<double>(average_over);
    return Words(value == value ? value : Lanes<double>(all(uint64_t{0x7ff8} << 48)));
  }
};

// Rounds towards zero. Up to 32 bits the quotient as a binary64 is exact enough for every divisor,
// in every rounding mode: its error is less than the distance 1 / divisor of a fraction to the next
// integer. Beyond, the magnitudes are divided, because a divisor may exceed the signed type.
template <class T>
UZIP_INLINE T quotient(T value, size_t divisor) {
  if constexpr (sizeof(T) <= 4) {
    return static_cast<T>(static_cast<double>(value) / static_cast<double>(divisor));
  } else {
    const bool negative = value < 0;
    const uint64_t bits = static_cast<uint64_t>(value);
    const uint64_t result = (negative ? 0 - bits : bits) / divisor;
    return static_cast<T>(negative ? 0 - result : result);
  }
}

// Integers. Sums and products use the unsigned T of the same width, where wrapping is defined.
template <class T, class Combine, class Divided = void>
struct IntegerStep {
  static constexpr size_t kRegistersUsed = 1;
  Lanes<T> value;

  UZIP_INLINE void first(Words words) { value = Lanes<T>(words); }
  UZIP_INLINE void next(Words words) { value = Combine::apply(value, Lanes<T>(words)); }
  UZIP_INLINE Words result(size_t average_over) {
    if constexpr (!__is_same(Divided, void)) {
      Divided lanes[kVectorBytes / sizeof(T)];
      __builtin_memcpy(lanes, &value, kVectorBytes);
      for (Divided& lane : lanes) lane = quotient(lane, average_over);
      __builtin_memcpy(&value, lanes, kVectorBytes);
    }
    return Words(value);
  }
};

// Minimum and maximum of floats, as integers: with the magnitude of negative values inverted, the
// order of the bits as signed integers is that of the floats, -0 below +0. NaN becomes the winner
// of every comparison, which no number's bits can be. So denormals cannot be flushed, and no format
// needs to be widened.
template <class T, T kInfinity, T kNan, class Combine>
struct OrderStep {
  static constexpr size_t kRegistersUsed = 1;
  static constexpr T kMagnitude = static_cast<T>(~(T{1} << (8 * sizeof(T) - 1)));
  static constexpr T kWinner = Combine::kIsMaximum ? kMagnitude : static_cast<T>(~kMagnitude);
  Lanes<T> key;

  static UZIP_INLINE Lanes<T> flip_negative(Lanes<T> value) {
    return value < 0 ? value ^ kMagnitude : value;
  }
  static UZIP_INLINE Lanes<T> key_of(Words words) {
    const Lanes<T> value = Lanes<T>(words);
    return (value & kMagnitude) > kInfinity ? all(kWinner) : flip_negative(value);
  }
  UZIP_INLINE void first(Words words) { key = key_of(words); }
  UZIP_INLINE void next(Words words) { key = Combine::apply(key, key_of(words)); }
  UZIP_INLINE Words result(size_t) {
    return Words(key == kWinner ? all(kNan) : flip_negative(key));
  }
};

}  // namespace
}  // namespace uzip
