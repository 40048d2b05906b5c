// The reduction kernels. Compiled once for each CPU target by the reduce_kernels_*.cpp, which
// define UZIP_REDUCE_KERNELS, the name of the table at the end.
//
// Everything here is local to its file, and nothing of the standard library is called: an inline
// function compiled for a newer processor could otherwise be the copy that the linker keeps for
// all.
//
// The code is written with vectors of the compiler (vector_size), so that one source serves every
// width. A vector of memory is seen as 32-bit words, and the 8- and 16-bit floats in a word are
// widened in place, by shifts: their order does not matter, and no data moves between lanes.
#include "base/reduce_kernels.hpp"

#include <uzipcoll/uzipcoll.h>

#if defined(__SSE2__)
// GCC 12 takes the deliberately undefined registers in its own header for mistakes (its bug
// 105593).
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#pragma GCC diagnostic pop
#endif

namespace uzip {
namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

#if defined(__AVX512BW__)
constexpr size_t kVectorBytes = 64;
constexpr size_t kRegisters = 32;
#elif defined(__AVX2__)
constexpr size_t kVectorBytes = 32;
constexpr size_t kRegisters = 16;
#else
constexpr size_t kVectorBytes = 16;
constexpr size_t kRegisters = 16;
#endif

#define UZIP_INLINE inline __attribute__((always_inline))

template <class T>
struct LanesOf {
  typedef T Type __attribute__((vector_size(kVectorBytes)));
};
template <class T>
using Lanes = typename LanesOf<T>::Type;
using Words = Lanes<uint32_t>;
using Floats = Lanes<float>;

template <class T>
UZIP_INLINE Lanes<T> all(T value) {
  return value - Lanes<T>{};
}

// ---- Memory ---------------------------------------------------------------------------------------

UZIP_INLINE Words load(const void* src) {
  Words words;
  __builtin_memcpy(&words, src, kVectorBytes);
  return words;
}

UZIP_INLINE void store(void* dst, Words words) { __builtin_memcpy(dst, &words, kVectorBytes); }

// The first `bytes` < kVectorBytes of a vector; the rest is zero and harmless.
#if defined(__AVX512BW__)
UZIP_INLINE Words load_part(const void* src, size_t bytes) {
  return Words(_mm512_maskz_loadu_epi8((uint64_t{1} << bytes) - 1, src));
}

UZIP_INLINE void store_part(void* dst, Words words, size_t bytes) {
  _mm512_mask_storeu_epi8(dst, (uint64_t{1} << bytes) - 1, __m512i(words));
}
#else
// By way of registers: a vector read back from just stored pieces would wait for the stores.
template <class T>
UZIP_INLINE uint64_t load_as(const char* src) {
  T value;
  __builtin_memcpy(&value, src, sizeof value);
  return value;
}

template <class T>
UZIP_INLINE void store_as(char* dst, uint64_t bits) {
  const T value = static_cast<T>(bits);
  __builtin_memcpy(dst, &value, sizeof value);
}

// The first and the last sizeof(T) of `bytes` <= 2 * sizeof(T) bytes; where they overlap they are
// the same.
template <class T>
UZIP_INLINE uint64_t load_ends(const char* src, size_t bytes) {
  return load_as<T>(src) | load_as<T>(src + bytes - sizeof(T)) << (8 * (bytes - sizeof(T)));
}

template <class T>
UZIP_INLINE void store_ends(char* dst, uint64_t bits, size_t bytes) {
  store_as<T>(dst, bits);
  store_as<T>(dst + bytes - sizeof(T), bits >> (8 * (bytes - sizeof(T))));
}

// 0 < bytes < 8.
UZIP_INLINE uint64_t load_few(const char* src, size_t bytes) {
  if (bytes >= 4) return load_ends<uint32_t>(src, bytes);
  if (bytes >= 2) return load_ends<uint16_t>(src, bytes);
  return load_as<uint8_t>(src);
}

UZIP_INLINE void store_few(char* dst, uint64_t bits, size_t bytes) {
  if (bytes >= 4) {
    store_ends<uint32_t>(dst, bits, bytes);
  } else if (bytes >= 2) {
    store_ends<uint16_t>(dst, bits, bytes);
  } else {
    store_as<uint8_t>(dst, bits);
  }
}

[[gnu::noinline]] Words load_part(const void* src, size_t bytes) {
  const char* from = static_cast<const char*>(src);
  Lanes<uint64_t> lanes{};
#pragma GCC unroll 4
  for (size_t i = 0; i < kVectorBytes / 8; ++i) {
    if (bytes >= 8 * (i + 1)) {
      lanes[i] = load_as<uint64_t>(from + 8 * i);
    } else if (bytes > 8 * i) {
      lanes[i] = load_few(from + 8 * i, bytes - 8 * i);
    }
  }
  return Words(lanes);
}

[[gnu::noinline]] void store_part(void* dst, Words words, size_t bytes) {
  char* to = static_cast<char*>(dst);
  const Lanes<uint64_t> lanes = Lanes<uint64_t>(words);
#pragma GCC unroll 4
  for (size_t i = 0; i < kVectorBytes / 8; ++i) {
    if (bytes >= 8 * (i + 1)) {
      store_as<uint64_t>(to + 8 * i, lanes[i]);
    } else if (bytes > 8 * i) {
      store_few(to + 8 * i, lanes[i], bytes - 8 * i);
    }
  }
}
#endif

// ---- Widening and rounding of small floats ----------------------------------------------------------

// Sign 0, quiet, no payload.
UZIP_INLINE Floats canonical(Floats value) {
  return value == value ? value : Floats(all(uint32_t{0x7fc00000}));
}

// binary32: nothing to do.
struct Binary32 {
  static constexpr int kParts = 1;
  static UZIP_INLINE void widen(Words words, Floats* parts) { parts[0] = Floats(words); }
  static UZIP_INLINE Words round(const Floats* parts) { return Words(canonical(parts[0])); }
};

// bfloat16 is the upper half of a binary32.
struct Bfloat16 {
  static constexpr int kParts = 2;
  static UZIP_INLINE void widen(Words words, Floats* parts) {
    parts[0] = Floats(words << 16);
    parts[1] = Floats(words & 0xffff0000u);
  }
  // In the upper half; the lower one is garbage.
  static UZIP_INLINE Words round_one(Floats value) {
    const Words bits = Words(canonical(value));
    return bits + ((bits >> 16) & 1u) + 0x7fffu;
  }
  static UZIP_INLINE Words round(const Floats* parts) {
    return (round_one(parts[0]) >> 16) | (round_one(parts[1]) & 0xffff0000u);
  }
};

// Any other format with `kExponent` and `kMantissa` bits. With kHasInfinity it follows IEEE 754;
// without, only the largest magnitude is NaN, and what overflows becomes it.
template <int kExponent, int kMantissa, bool kHasInfinity>
struct SmallFloat {
  static constexpr int kBits = 1 + kExponent + kMantissa;
  static constexpr int kParts = 32 / kBits;
  static constexpr int kShift = 23 - kMantissa;
  static constexpr uint32_t kMagnitude = (1u << (kBits - 1)) - 1;
  static constexpr uint32_t kSpecial =
      kHasInfinity ? ((1u << kExponent) - 1) << kMantissa : kMagnitude;
  static constexpr uint32_t kNan = kHasInfinity ? kSpecial | 1u << (kMantissa - 1) : kMagnitude;
  static constexpr uint32_t kRebias = (128u - (1u << (kExponent - 1))) << 23;
  static constexpr uint32_t kLeastNormal = kRebias + (1u << 23);         ///< as a binary32
  static constexpr uint32_t kOverflow = kRebias + (kSpecial << kShift);  ///< rounds to kSpecial
  static constexpr uint32_t kSignificand = static_cast<uint32_t>(kShift) << 23;

  // A field whose lowest bit is bit `from` of `value`, moved to bit `to`.
  static UZIP_INLINE Words field(Words value, int from, int to, uint32_t mask) {
    return (to >= from ? value << (to - from) : value >> (from - to)) & (mask << to);
  }

  static UZIP_INLINE Floats widen_one(Words words, int part) {
    const Words magnitude = field(words, part * kBits, kShift, kMagnitude);
    const Words sign = field(words, part * kBits + kBits - 1, 31, 1);
    const Words normal = magnitude + kRebias;
    // 1.m x least normal - 1.0 x least normal: exact, and no binary32 denormal is touched.
    const Floats denormal = Floats(magnitude + kLeastNormal) - Floats(all(kLeastNormal));
    Words bits = magnitude < (1u << 23) ? Words(denormal) : normal;
    bits = magnitude >= (kSpecial << kShift) ? bits | 0x7f800000u : bits;
    return Floats(bits | sign);
  }

  // Adding the power of two whose last place is the quantum of the result leaves, in the lowest
  // bits of the sum, the magnitude in quanta, rounded to nearest even. The quantum is that of the
  // value's own exponent or, below the least normal, of the denormals: so both take the same way,
  // and a carry goes into the exponent.
  static UZIP_INLINE Words round_one(Floats value) {
    const Words bits = Words(value);
    Words magnitude = bits & 0x7fffffffu;
    magnitude = magnitude < kOverflow ? magnitude : all(kOverflow);
    Words exponent = magnitude & 0x7f800000u;
    exponent = exponent > kLeastNormal ? exponent : all(kLeastNormal);
    const Words shifter = exponent + kSignificand;
    const Words quanta = Words(Floats(magnitude) + Floats(shifter)) - shifter;
    const Words rounded = quanta + ((exponent - kLeastNormal) >> kShift);
    const Words sign = field(bits, 31, kBits - 1, 1);
    if constexpr (kHasInfinity) {
      return value == value ? rounded | sign : all(kNan);
    } else {
      return rounded == kNan ? rounded : rounded | sign;
    }
  }

  static UZIP_INLINE void widen(Words words, Floats* parts) {
#pragma GCC unroll 4
    for (int i = 0; i < kParts; ++i) parts[i] = widen_one(words, i);
  }

  static UZIP_INLINE Words round(const Floats* parts) {
    Words words = round_one(parts[0]);
#pragma GCC unroll 4
    for (int i = 1; i < kParts; ++i) words |= round_one(parts[i]) << (i * kBits);
    return words;
  }
};

using Fp8E4m3fn = SmallFloat<4, 3, false>;
using Fp8E5m2 = SmallFloat<5, 2, true>;

#if defined(__AVX512BW__)
// The instructions round as SmallFloat does and ignore flush-to-zero.
struct Binary16 {
  static constexpr int kParts = 2;
  static UZIP_INLINE void widen(Words words, Floats* parts) {
    parts[0] = Floats(_mm512_cvtph_ps(_mm512_castsi512_si256(__m512i(words))));
    parts[1] = Floats(_mm512_cvtph_ps(_mm512_extracti64x4_epi64(__m512i(words), 1)));
  }
  static UZIP_INLINE __m256i round_one(Floats value) {
    return _mm512_cvtps_ph(__m512(canonical(value)), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  static UZIP_INLINE Words round(const Floats* parts) {
    const __m512i low = _mm512_castsi256_si512(round_one(parts[0]));
    return Words(_mm512_inserti64x4(low, round_one(parts[1]), 1));
  }
};
#elif defined(__AVX2__) && defined(__F16C__)
struct Binary16 {
  static constexpr int kParts = 2;
  static UZIP_INLINE void widen(Words words, Floats* parts) {
    parts[0] = Floats(_mm256_cvtph_ps(_mm256_castsi256_si128(__m256i(words))));
    parts[1] = Floats(_mm256_cvtph_ps(_mm256_extracti128_si256(__m256i(words), 1)));
  }
  static UZIP_INLINE __m128i round_one(Floats value) {
    return _mm256_cvtps_ph(__m256(canonical(value)), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  static UZIP_INLINE Words round(const Floats* parts) {
    const __m256i low = _mm256_castsi128_si256(round_one(parts[0]));
    return Words(_mm256_inserti128_si256(low, round_one(parts[1]), 1));
  }
};
#else
using Binary16 = SmallFloat<5, 10, true>;
#endif

// ---- Steps: what is kept of one vector while the sources go by -------------------------------------

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

// ---- The loop --------------------------------------------------------------------------------------

// Vectors that are in work at a time: enough to hide the latency of loads, as few as fit into the
// registers.
constexpr int vectors_at_a_time(size_t registers_used) {
  const size_t fitting = kRegisters / 4 / registers_used;
  return fitting > 4 ? 4 : fitting > 1 ? static_cast<int>(fitting) : 1;
}

// The processor's own prefetching stops at pages and lags behind a loop with many instructions a
// line.
constexpr size_t kPrefetchBytes = 4096;

template <class Step, int kVectors>
UZIP_INLINE void first_vectors(Step (&steps)[kVectors], const char* src) {
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    __builtin_prefetch(src + v * kVectorBytes + kPrefetchBytes);
    steps[v].first(load(src + v * kVectorBytes));
  }
}

template <class Step, int kVectors>
UZIP_INLINE void next_vectors(Step (&steps)[kVectors], const char* src) {
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    __builtin_prefetch(src + v * kVectorBytes + kPrefetchBytes);
    steps[v].next(load(src + v * kVectorBytes));
  }
}

template <class Step, int kVectors>
UZIP_INLINE void reduce_vectors(Step (&steps)[kVectors], const char* const* sources,
                                size_t source_count, size_t offset) {
  first_vectors(steps, sources[0] + offset);
  for (size_t s = 1; s < source_count; ++s) next_vectors(steps, sources[s] + offset);
}

template <class Step>
void reduce_bytes(void* dst, const void* const* source_list, size_t source_count, size_t bytes,
                  size_t average_over) {
  char* const out = static_cast<char*>(dst);
  const char* const* const sources = reinterpret_cast<const char* const*>(source_list);
  if (bytes < kVectorBytes) {
    Step step;
    step.first(load_part(sources[0], bytes));
    for (size_t s = 1; s < source_count; ++s) step.next(load_part(sources[s], bytes));
    store_part(out, step.result(average_over), bytes);
    return;
  }
  // The last vector overlaps the one before. It is computed first and stored last, because its
  // sources may be overwritten on the way.
  const size_t last = bytes - kVectorBytes;
  Step last_step[1];
  reduce_vectors(last_step, sources, source_count, last);
  const Words last_words = last_step[0].result(average_over);

  constexpr int kVectors = vectors_at_a_time(Step::kRegistersUsed);
  constexpr size_t kBlock = kVectors * kVectorBytes;
  size_t offset = 0;
  if constexpr (kVectors > 1) {
    for (; offset + kBlock <= last; offset += kBlock) {
      Step steps[kVectors];
      reduce_vectors(steps, sources, source_count, offset);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        store(out + offset + v * kVectorBytes, steps[v].result(average_over));
      }
    }
  }
  for (; offset < last; offset += kVectorBytes) {
    Step step[1];
    reduce_vectors(step, sources, source_count, offset);
    store(out + offset, step[0].result(average_over));
  }
  store(out + last, last_words);
}

// ---- The table -------------------------------------------------------------------------------------

struct Row {
  ReduceKernel kernels[kReduceOps];
};

template <class SumStep, class ProductStep, class MinimumStep, class MaximumStep, class AverageStep>
constexpr Row row() {
  Row kernels{};
  kernels.kernels[UZIP_SUM] = reduce_bytes<SumStep>;
  kernels.kernels[UZIP_PROD] = reduce_bytes<ProductStep>;
  kernels.kernels[UZIP_MIN] = reduce_bytes<MinimumStep>;
  kernels.kernels[UZIP_MAX] = reduce_bytes<MaximumStep>;
  kernels.kernels[UZIP_AVG] = reduce_bytes<AverageStep>;
  return kernels;
}

template <class T, class Unsigned>
constexpr Row integer_row() {
  return row<IntegerStep<Unsigned, Add>, IntegerStep<Unsigned, Multiply>, IntegerStep<T, Lesser>,
             IntegerStep<T, Greater>, IntegerStep<Unsigned, Add, T>>();
}

template <class Format, class Bits, Bits kInfinity, Bits kNan>
constexpr Row float_row() {
  return row<FloatStep<Format, Add>, FloatStep<Format, Multiply>,
             OrderStep<Bits, kInfinity, kNan, Lesser>, OrderStep<Bits, kInfinity, kNan, Greater>,
             FloatStep<Format, Add, true>>();
}

constexpr int64_t kInfinity64 = int64_t{0x7ff0} << 48;
constexpr int64_t kNan64 = int64_t{0x7ff8} << 48;

constexpr ReduceKernels make_table() {
  ReduceKernels table{};
  const auto set = [&table](uzip_dtype_t type, const Row& kernels) {
    for (size_t op = 0; op < kReduceOps; ++op) table.kernels[type][op] = kernels.kernels[op];
  };
  set(UZIP_INT8, integer_row<int8_t, uint8_t>());
  set(UZIP_UINT8, integer_row<uint8_t, uint8_t>());
  set(UZIP_INT32, integer_row<int32_t, uint32_t>());
  set(UZIP_UINT32, integer_row<uint32_t, uint32_t>());
  set(UZIP_INT64, integer_row<int64_t, uint64_t>());
  set(UZIP_UINT64, integer_row<uint64_t, uint64_t>());
  set(UZIP_FP16, float_row<Binary16, int16_t, 0x7c00, 0x7e00>());
  set(UZIP_BF16, float_row<Bfloat16, int16_t, 0x7f80, 0x7fc0>());
  set(UZIP_FP32, float_row<Binary32, int32_t, 0x7f800000, 0x7fc00000>());
  set(UZIP_FP64,
      row<DoubleStep<Add>, DoubleStep<Multiply>, OrderStep<int64_t, kInfinity64, kNan64, Lesser>,
          OrderStep<int64_t, kInfinity64, kNan64, Greater>, DoubleStep<Add, true>>());
  set(UZIP_FP8_E4M3FN, float_row<Fp8E4m3fn, int8_t, 0x7e, 0x7f>());
  set(UZIP_FP8_E5M2, float_row<Fp8E5m2, int8_t, 0x7c, 0x7e>());
  return table;
}

#undef UZIP_INLINE

}  // namespace

extern constexpr ReduceKernels UZIP_REDUCE_KERNELS = make_table();

}  // namespace uzip
