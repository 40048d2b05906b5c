// AVX2: sums of 8-bit floats by way of binary16, whose instructions know denormals. Part of reduce_kernels.inl; see
// there.
//
// A byte in the upper half of a word is a binary16 (e5m2); one bit farther down it is a binary16 of 2^-8 of its value
// (e4m3fn, whose NaN is a number there, so NaNs are noted apart). The sum is one of binary32, as everywhere. It is
// rounded as if it were a normal number: what is below the least normal number is a multiple of the least denormal, so
// nothing is lost there. After that binary16 has it, or overflows.
#if defined(__AVX2__) && defined(__F16C__) && !defined(__AVX512BW__)

namespace uzip {
namespace {

template <int kMantissa, bool kHasInfinity>
struct ByteSumStep {
  static constexpr size_t kRegistersUsed = 4;
  static constexpr int kLast = 23 - kMantissa;  ///< last bit that stays, as a binary32
  static constexpr int8_t kNan = kHasInfinity ? 0x7e : 0x7f;
  Floats parts[4];  ///< eight each: of the lower halves of both lanes, then of the upper ones
  __m256i nans;

  static UZIP_INLINE __m256i bytes(int8_t value) { return _mm256_set1_epi8(value); }

  UZIP_INLINE void widen(__m256i words, Floats* two) const {
    if constexpr (!kHasInfinity)
      words = _mm256_and_si256(_mm256_srai_epi16(words, 1), _mm256_set1_epi16(static_cast<int16_t>(0xbf80)));
    two[0] = Floats(_mm256_cvtph_ps(_mm256_castsi256_si128(words)));
    two[1] = Floats(_mm256_cvtph_ps(_mm256_extracti128_si256(words, 1)));
  }
  UZIP_INLINE void widen_all(__m256i values, Floats* all_parts) const {
    const __m256i zero = _mm256_setzero_si256();
    widen(_mm256_unpacklo_epi8(zero, values), all_parts);
    widen(_mm256_unpackhi_epi8(zero, values), all_parts + 2);
  }
  static UZIP_INLINE __m256i is_nan(__m256i values) {
    return _mm256_cmpeq_epi8(_mm256_and_si256(values, bytes(0x7f)), bytes(kNan));
  }
  UZIP_INLINE void first(Words words) {
    widen_all(__m256i(words), parts);
    if constexpr (!kHasInfinity) nans = is_nan(__m256i(words));
  }
  UZIP_INLINE void next(Words words) {
    Floats operand[4];
    widen_all(__m256i(words), operand);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) parts[i] += operand[i];
    if constexpr (!kHasInfinity) nans = _mm256_or_si256(nans, is_nan(__m256i(words)));
  }

  /// Infinity and the NaNs that there are stay.
  static UZIP_INLINE __m128i round_one(Floats value) {
    const Words bits = Words(value);
    const Words rounded = (bits + ((bits >> kLast) & 1u) + ((1u << (kLast - 1)) - 1)) & (0xffffffffu << kLast);
    return _mm256_cvtps_ph(__m256(rounded), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  static UZIP_INLINE __m256i round(const Floats* two) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(round_one(two[0])), round_one(two[1]), 1);
  }
  UZIP_INLINE Words result(size_t) const {
    const __m256i low = round(parts);
    const __m256i high = round(parts + 2);
    const __m256i magnitudes = bytes(0x7f);
    if constexpr (kHasInfinity) {
      const __m256i values = _mm256_packus_epi16(_mm256_srli_epi16(low, 8), _mm256_srli_epi16(high, 8));
      const __m256i nan = _mm256_cmpgt_epi8(_mm256_and_si256(values, magnitudes), bytes(0x7c));
      return Words(_mm256_blendv_epi8(values, bytes(kNan), nan));
    }
    const auto magnitude = [](__m256i words) __attribute__((always_inline)) {
      return _mm256_srli_epi16(_mm256_add_epi16(words, words), 8);
    };
    __m256i values = _mm256_packus_epi16(magnitude(low), magnitude(high));
    values = _mm256_or_si256(_mm256_min_epu8(values, magnitudes), _mm256_and_si256(nans, magnitudes));
    const __m256i signs = _mm256_andnot_si256(magnitudes, _mm256_packs_epi16(low, high));
    return Words(_mm256_or_si256(values, _mm256_andnot_si256(_mm256_cmpeq_epi8(values, bytes(kNan)), signs)));
  }
};

}  // namespace
}  // namespace uzip

#endif
