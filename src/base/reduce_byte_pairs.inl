// AVX-512: the sum of two 8-bit floats, rounded once, without widening them. Part of reduce_kernels.inl; see there.
//
// All 64 bytes of a vector stay bytes. A magnitude becomes a code in which denormals are normal numbers, so that the next
// number is always one code away, and a binade a fixed number of codes. The significand of the lesser operand is looked up
// shifted down to that of the greater, bits that fall off kept as a sticky one; their sum or difference has 8 bits, and a
// table says how many codes it lies from the greater operand's binade. The exact sum is rounded, to nearest even. That is
// also what binary32 gives: it holds the sum, or keeps enough of it.
#if defined(__AVX512BW__)

namespace uzip {
namespace {

template <int kMantissa, bool kHasInfinity>
struct BytePairTables {
  static constexpr int kBinade = 1 << kMantissa;   ///< codes of a binade
  static constexpr int kGuard = 6 - kMantissa;     ///< bits below a significand, which has its highest bit at 6
  static constexpr int kFarthest = 64;             ///< codes: what is as far below, or farther, changes nothing
  static constexpr int kGreatest = kHasInfinity ? 0x7b : 0x7e;
  static constexpr int kNan = kHasInfinity ? 0x7e : 0x7f;
  /// Code of magnitude m >= kBinade: m + kOffset. Zero has code 0 and is far below all others.
  static constexpr int kOffset = kFarthest + (kMantissa - 1) * kBinade;
  static constexpr int kInfinityCode = 254;
  static constexpr int kNanCode = 255;
  /// Added to a sum's code: how far a difference can lie below the code of the greater one's last in its binade. The
  /// least difference that isn't zero is half of the lowest bit.
  static constexpr int kBias = (kMantissa + 1) * kBinade + kBinade - 1;
  /// Biased code of the least denormal, less 1; and what then remains to be taken off normal numbers.
  static constexpr int kLeast = kOffset - (kMantissa - 1) * kBinade + kBias - 1;
  static constexpr int kNormal = (kMantissa - 1) * kBinade + 1;
  static_assert(kGreatest + kOffset + kBias < kInfinityCode);

  alignas(64) uint8_t code[128]{};        ///< of a magnitude
  alignas(64) uint8_t shifted[64]{};      ///< significand, by how far its code lies below the last of the greater's binade
  alignas(64) uint8_t step[256]{};        ///< from the last code of the greater's binade, biased, by sum
  alignas(64) uint8_t magnitude[64]{};    ///< by biased code less kLeast, if small

  static constexpr int code_of(int magnitude) {
    if (kHasInfinity && magnitude == kGreatest + 1) return kInfinityCode;
    if (magnitude > kGreatest) return kNanCode;
    if (magnitude == 0) return 0;
    int down = 0;  // codes
    for (; magnitude < kBinade; magnitude *= 2) down += kBinade;
    return magnitude - down + kOffset;
  }
  static constexpr int shifted_by(int distance) {
    const int significand = (2 * kBinade - 1 - distance % kBinade) << kGuard;
    const int down = distance / kBinade;
    if (down > 7) return 1;
    return significand >> down | ((significand & ((1 << down) - 1)) != 0 ? 1 : 0);
  }
  static constexpr int step_of(int sum) {
    if (sum < 1 << (kGuard - 1)) return 0;
    int top = 7;
    while (sum >> top == 0) --top;
    int rounded = sum << 8;  // to kMantissa bits below the highest one
    const int down = 8 + top - kMantissa;
    rounded = (rounded + (1 << (down - 1)) - 1 + (rounded >> down & 1)) >> down;
    return (top - 6) * kBinade + rounded - kBinade - (kBinade - 1) + kBias;
  }
  constexpr BytePairTables() {
    for (int m = 0; m < 128; ++m) code[m] = static_cast<uint8_t>(code_of(m));
    for (int d = 0; d < 64; ++d) shifted[d] = static_cast<uint8_t>(shifted_by(d));
    for (int s = 0; s < 256; ++s) step[s] = static_cast<uint8_t>(step_of(s));
    for (int i = kNormal; i < 64; ++i) magnitude[i] = static_cast<uint8_t>(i - kNormal);
    for (int m = 1; m < kBinade; ++m) magnitude[code_of(m) + kBias - kLeast] = static_cast<uint8_t>(m);
  }
};

template <int kMantissa, bool kHasInfinity>
struct BytePairStep {
  using Tables = BytePairTables<kMantissa, kHasInfinity>;
  static constexpr size_t kRegistersUsed = 4;
  static constexpr Tables kTables{};
  __m512i a;
  __m512i b;

  static UZIP_INLINE __m512i bytes(int value) { return _mm512_set1_epi8(static_cast<char>(value)); }
  static UZIP_INLINE __m512i look_up(const uint8_t* table, __m512i index) {
    return _mm512_permutex2var_epi8(_mm512_load_si512(table), index, _mm512_load_si512(table + 64));
  }

  UZIP_INLINE void first(Words words) {
    a = __m512i(words);
    b = __m512i{};  // there is a second one, but the compiler doesn't know
  }
  UZIP_INLINE void next(Words words) { b = __m512i(words); }
  UZIP_INLINE Words result(size_t) const {
    const __m512i code_a = look_up(kTables.code, a);
    const __m512i code_b = look_up(kTables.code, b);
    const __m512i greater = _mm512_max_epu8(code_a, code_b);
    const __m512i last = greater | bytes(Tables::kBinade - 1);
    const __m512i distance = _mm512_min_epu8(_mm512_sub_epi8(last, _mm512_min_epu8(code_a, code_b)), bytes(Tables::kFarthest - 1));
    const __m512i lesser = _mm512_permutexvar_epi8(distance, _mm512_load_si512(kTables.shifted));
    // The fraction of the greater one below its highest bit: (shifted & mask) | bit.
    const __m512i significand =
        _mm512_ternarylogic_epi32(_mm512_slli_epi16(greater, Tables::kGuard),
                                  bytes((Tables::kBinade - 1) << Tables::kGuard), bytes(64), 0xea);
    const __m512i differing = a ^ b;
    const __m512i sum = _mm512_mask_sub_epi8(_mm512_add_epi8(significand, lesser), _mm512_movepi8_mask(differing),
                                             significand, lesser);
    const __m512i step = _mm512_mask_mov_epi8(look_up(kTables.step, sum), _mm512_movepi8_mask(sum),
                                              look_up(kTables.step + 128, sum));
    const __m512i index = _mm512_subs_epu8(_mm512_adds_epu8(last, step), bytes(Tables::kLeast));
    // A greater index looks up too small a magnitude.
    const __m512i magnitude =
        _mm512_max_epu8(_mm512_subs_epu8(index, bytes(Tables::kNormal)),
                        _mm512_permutexvar_epi8(index, _mm512_load_si512(kTables.magnitude)));
    const __m512i sign = _mm512_mask_mov_epi8(b, _mm512_cmpge_epu8_mask(code_a, code_b), a) & bytes(0x80);
    const __mmask64 cancels = _mm512_cmpeq_epi8_mask(differing, bytes(0x80));
    const __m512i nan = bytes(Tables::kNan);
    if constexpr (kHasInfinity) {
      const __m512i bounded = _mm512_min_epu8(magnitude, bytes(Tables::kGreatest + 1));
      const __mmask64 nans = _mm512_cmpeq_epi8_mask(greater, bytes(Tables::kNanCode)) |
                             _mm512_mask_cmpge_epu8_mask(cancels, greater, bytes(Tables::kInfinityCode));
      return Words(_mm512_mask_mov_epi8(_mm512_maskz_add_epi8(~cancels, bounded, sign), nans, nan));
    } else {
      const __mmask64 nans = _mm512_cmpge_epu8_mask(magnitude, nan);
      return Words(_mm512_mask_mov_epi8(_mm512_maskz_add_epi8(~cancels, magnitude, sign), nans, nan));
    }
  }
};

}  // namespace
}  // namespace uzip

#endif
