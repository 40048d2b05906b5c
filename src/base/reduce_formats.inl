// Widening the elements of a vector to binary32, and rounding them back. Second part of
// reduce_kernels.inl; see there.

namespace uzip {
namespace {

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
    constexpr int32_t kLargest = static_cast<int32_t>((kSpecial << kShift) - 1);
    Words bits = Ints(magnitude) < int32_t{1} << 23 ? Words(denormal) : normal;
    bits = Ints(magnitude) > kLargest ? bits | 0x7f800000u : bits;
    return Floats(bits | sign);
  }

  // Adding the power of two whose last place is the quantum of the result leaves, in the lowest
  // bits of the sum, the magnitude in quanta, rounded to nearest even. The quantum is that of the
  // value's own exponent or, below the least normal, of the denormals: so both take the same way,
  // and a carry goes into the exponent.
  static UZIP_INLINE Words round_one(Floats value) {
    const Words bits = Words(value);
    Ints clamped = Ints(bits & 0x7fffffffu);
    clamped = clamped < all(int32_t{kOverflow}) ? clamped : all(int32_t{kOverflow});
    const Words magnitude = Words(clamped);
    clamped = Ints(magnitude & 0x7f800000u);
    clamped = clamped > all(int32_t{kLeastNormal}) ? clamped : all(int32_t{kLeastNormal});
    const Words exponent = Words(clamped);
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

#if defined(__AVX512BW__)
// bfloat16 on processors with AVX512_BF16, which the target's other features don't promise: ask runs_here(). Their
// instruction flushes denormals and keeps the payload of NaNs, so a vector that has any goes the other way.
struct NativeBfloat16 : Bfloat16 {
  static bool runs_here() { return __builtin_cpu_supports("avx512bf16") != 0; }
  [[gnu::noinline, gnu::cold]] static Words round_any(Floats low, Floats high) {
    const Floats parts[] = {low, high};
    return Bfloat16::round(parts);
  }
  static UZIP_INLINE Words round(const Floats* parts) {
    constexpr int kDenormalOrNan = 0xa1;
    const __mmask16 low = _mm512_fpclass_ps_mask(__m512(parts[0]), kDenormalOrNan);
    const __mmask16 high = _mm512_fpclass_ps_mask(__m512(parts[1]), kDenormalOrNan);
    if (__builtin_expect(_kortestz_mask16_u8(low, high) == 0, 0)) return round_any(parts[0], parts[1]);
    __m512i halves;  // those of parts[0], then those of parts[1]
    asm("vcvtne2ps2bf16 %2, %1, %0" : "=v"(halves) : "v"(parts[1]), "v"(parts[0]));
    const __m512i in_turns = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                                              21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    return Words(_mm512_permutexvar_epi16(in_turns, halves));
  }
};

// The instructions round as SmallFloat does and ignore flush-to-zero.
struct Binary16 {
  static constexpr int kParts = 2;
  static UZIP_INLINE void widen(Words words, Floats* parts) {
    parts[0] = Floats(_mm512_cvtph_ps(_mm512_castsi512_si256(__m512i(words))));
    parts[1] = Floats(_mm512_cvtph_ps(_mm512_extracti64x4_epi64(__m512i(words), 1)));
  }
  static UZIP_INLINE Words round_numbers(Floats low, Floats high) {
    constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    const __m512i halves = _mm512_castsi256_si512(_mm512_cvtps_ph(__m512(low), kNearest));
    return Words(_mm512_inserti64x4(halves, _mm512_cvtps_ph(__m512(high), kNearest), 1));
  }
  [[gnu::noinline, gnu::cold]] static Words round_any(Floats low, Floats high) {
    return round_numbers(canonical(low), canonical(high));
  }
  static UZIP_INLINE Words round(const Floats* parts) {
    const __mmask16 nans = _mm512_cmp_ps_mask(__m512(parts[0]), __m512(parts[1]), _CMP_UNORD_Q);
    if (__builtin_expect(nans != 0, 0)) return round_any(parts[0], parts[1]);
    return round_numbers(parts[0], parts[1]);
  }
};

// The 8-bit formats by way of bfloat16, which has all their values. Widening looks up the two bytes of a magnitude. On the
// way back a binary32 is first rounded to odd, to 16 bits: truncated, and the last bit set if something was lost. After
// that, rounding to fewer bits gives what rounding at once would have. 2.5 times as fast as SmallFloat.
template <int kMantissa, bool kHasInfinity>
struct ByteFloat {
  static constexpr int kParts = 4;  ///< of the halves of all 16-byte lanes: even, odd, and the same of the other halves
  static constexpr int kExponentOfOne = kHasInfinity ? 15 : 7;
  static constexpr int kLeastNormal = 128 - kExponentOfOne;  ///< exponent as in bfloat16
  static constexpr unsigned kSpecial = kHasInfinity ? 0x7c : 0x7f;
  static constexpr unsigned kNan = kHasInfinity ? 0x7e : 0x7f;
  /// Denormals are looked up by exponent, from half of the least one on, and four bits of the fraction.
  static constexpr int kTiny = kLeastNormal - kMantissa - 1;
  static constexpr int kTinyCount = (kMantissa + 1) * 16;

  struct Tables {
    alignas(64) uint8_t low[128];
    alignas(64) uint8_t high[128];
    alignas(64) uint8_t tiny[64];
  };
  static constexpr unsigned as_bfloat16(unsigned magnitude) {
    if (magnitude > kSpecial || magnitude == kNan) return 0x7fc0;
    if (kHasInfinity && magnitude == kSpecial) return 0x7f80;
    int exponent = static_cast<int>(magnitude >> kMantissa);
    unsigned fraction = magnitude & ((1u << kMantissa) - 1);
    if (exponent > 0) return static_cast<unsigned>(exponent + kLeastNormal - 1) << 7 | fraction << (7 - kMantissa);
    if (fraction == 0) return 0;
    for (exponent = kLeastNormal; fraction >> kMantissa == 0; --exponent) fraction <<= 1;
    return static_cast<unsigned>(exponent) << 7 | (fraction << (7 - kMantissa) & 0x7f);
  }
  static constexpr Tables make_tables() {
    Tables tables{};
    for (unsigned i = 0; i < 128; ++i) {
      tables.low[i] = static_cast<uint8_t>(as_bfloat16(i));
      tables.high[i] = static_cast<uint8_t>(as_bfloat16(i) >> 8);
    }
    for (int i = 0; i < kTinyCount; ++i) {
      const int down = 5 - i / 16;
      const int significand = 16 + i % 16;
      const int quanta = significand >> down;
      tables.tiny[i] = static_cast<uint8_t>((significand + (1 << (down - 1)) - 1 + (quanta & 1)) >> down);
    }
    return tables;
  }
  static constexpr Tables kTables = make_tables();

  static UZIP_INLINE __m512i look_up(const uint8_t (&table)[128], __m512i magnitudes) {
    return _mm512_permutex2var_epi8(_mm512_load_si512(table), magnitudes, _mm512_load_si512(table + 64));
  }
  static UZIP_INLINE void widen(Words words, Floats* parts) {
    const __m512i bytes = __m512i(words);
    const __m512i low = look_up(kTables.low, bytes);
    const __m512i high = look_up(kTables.high, bytes) | (bytes & _mm512_set1_epi8(int8_t{-128}));
    Bfloat16::widen(Words(_mm512_unpacklo_epi8(low, high)), parts);
    Bfloat16::widen(Words(_mm512_unpackhi_epi8(low, high)), parts + 2);
  }

  static UZIP_INLINE __m512i to_odd(const Floats* parts) {
    const Words even = Words(parts[0]);
    const Words odd = Words(parts[1]);
    const __m512i upper = __m512i(even >> 16 | (odd & 0xffff0000u));
    const __m512i lost = __m512i((even & 0xffffu) | odd << 16);
    return upper | _mm512_min_epu16(lost, _mm512_set1_epi16(1));
  }
  // Rounds to nearest even, with exponents below those of normal numbers as if there were any; may be too large.
  static UZIP_INLINE __m512i round_normal(__m512i magnitude) {
    constexpr int kDown = 7 - kMantissa;
    // An average adds both and one more, and halves the sum.
    const __m512i odd = _mm512_srli_epi16(magnitude, kDown) & _mm512_set1_epi16(1);
    const __m512i half = odd | _mm512_set1_epi16((1 << (kDown - 1)) - 2);
    const __m512i rounded = _mm512_srli_epi16(_mm512_avg_epu16(magnitude, half), kDown - 1);
    return _mm512_subs_epu16(rounded, _mm512_set1_epi16((kLeastNormal - 1) << kMantissa));
  }
  // Exponent and four bits of the fraction, of which the last stands for all beyond, too.
  static UZIP_INLINE __m512i tiny_index(__m512i magnitude) {
    const __m512i beyond = _mm512_min_epu16(magnitude & _mm512_set1_epi16(7), _mm512_set1_epi16(1));
    return _mm512_subs_epu16(_mm512_srli_epi16(magnitude, 3) | beyond, _mm512_set1_epi16(kTiny * 16));
  }
  static UZIP_INLINE Words round(const Floats* parts) {
    const __m512i a = to_odd(parts);
    const __m512i b = to_odd(parts + 2);
    const __m512i magnitude_a = a & _mm512_set1_epi16(0x7fff);
    const __m512i magnitude_b = b & _mm512_set1_epi16(0x7fff);
    const __m512i normal = _mm512_packus_epi16(round_normal(magnitude_a), round_normal(magnitude_b));
    const __m512i index = _mm512_packus_epi16(tiny_index(magnitude_a), tiny_index(magnitude_b));
    const __mmask64 tiny = _mm512_cmplt_epu8_mask(index, _mm512_set1_epi8(kTinyCount));
    const __m512i some = _mm512_mask_permutexvar_epi8(normal, tiny, index, _mm512_load_si512(kTables.tiny));
    const __m512i magnitude = _mm512_min_epu8(some, _mm512_set1_epi8(kSpecial));
    const __m512i tops = _mm512_packs_epi16(_mm512_srai_epi16(a, 8), _mm512_srai_epi16(b, 8));
    const __m512i signed_ones = magnitude | (tops & _mm512_set1_epi8(int8_t{-128}));
    const __m512i nan = _mm512_set1_epi8(kNan);
    if constexpr (!kHasInfinity)
      return Words(_mm512_mask_mov_epi8(signed_ones, _mm512_cmpeq_epi8_mask(magnitude, nan), nan));
    const __m512i infinity = _mm512_set1_epi16(0x7f80);
    const __m512i above =
        _mm512_packus_epi16(_mm512_subs_epu16(magnitude_a, infinity), _mm512_subs_epu16(magnitude_b, infinity));
    return Words(_mm512_mask_mov_epi8(signed_ones, _mm512_test_epi8_mask(above, above), nan));
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

#if defined(__AVX512BW__)
using Fp8E4m3fn = ByteFloat<3, false>;
using Fp8E5m2 = ByteFloat<2, true>;
#else
using Fp8E4m3fn = SmallFloat<4, 3, false>;
using Fp8E5m2 = SmallFloat<5, 2, true>;
#endif

}  // namespace
}  // namespace uzip
