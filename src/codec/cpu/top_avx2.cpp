// AVX2: values of one or two bytes straight to a level. Decoding is left to the separate kernels:
// escapes have to be put in place in memory.
#include "codec/cpu/kernels.hpp"
#include "codec/cpu/kernels_avx2.hpp"
#include "codec/cpu/levels_avx2.hpp"

namespace uzip {
namespace {

/// 32 values of one byte: the rotated value is the top plane.
struct Values1 {
  static constexpr size_t kSize = 1;
  [[gnu::always_inline]] static Bytes read(const uint8_t* src, uint8_t*) {
    const Bytes v = load(src);
    const Bytes sign = _mm256_and_si256(_mm256_srli_epi16(v, 7), _mm256_set1_epi8(1));
    return _mm256_or_si256(_mm256_add_epi8(v, v), sign);
  }
};

/// 32 values of two bytes: the top plane, and the other one as it is.
struct Values2 {
  static constexpr size_t kSize = 2;
  [[gnu::always_inline]] static Bytes read(const uint8_t* src, uint8_t* other) {
    const Bytes low = _mm256_set1_epi16(0xff);
    const Bytes v0 = load(src);
    const Bytes v1 = load(src + 32);
    const Bytes a = _mm256_or_si256(_mm256_add_epi16(v0, v0), _mm256_srli_epi16(v0, 15));
    const Bytes b = _mm256_or_si256(_mm256_add_epi16(v1, v1), _mm256_srli_epi16(v1, 15));
    const Bytes lower = _mm256_packus_epi16(_mm256_and_si256(a, low), _mm256_and_si256(b, low));
    store(other, _mm256_permute4x64_epi64(lower, 0xd8));
    const Bytes upper = _mm256_packus_epi16(_mm256_srli_epi16(a, 8), _mm256_srli_epi16(b, 8));
    return _mm256_permute4x64_epi64(upper, 0xd8);
  }
};

template <class Values, unsigned W, bool kShifts, class Lookup>
[[gnu::always_inline]] inline size_t encode_with(const Lookup& lookup, const uint8_t* src,
                                                 size_t count, const uint8_t* codes_of,
                                                 const TopPlane& top, uint8_t* escapes) {
  const Bytes field_bits = _mm256_set1_epi8(static_cast<char>(0xffu >> top.shift));
  const __m128i by = _mm_cvtsi32_si128(static_cast<int>(top.shift));
  uint8_t* low_words = top.low_words;
  uint8_t* words = top.words;
  uint8_t* other = top.other;
  uint8_t* out = escapes;
  constexpr size_t kOther = Values::kSize - 1;
  for (; count >= 64;
       count -= 64, src += 64 * Values::kSize, other += 64 * kOther, words += 8 * W) {
#pragma GCC unroll 8
    for (size_t i = 0; i < Values::kSize; ++i) fetch_ahead(src + 64 * i);
    Bytes a = Values::read(src, other);
    Bytes b = Values::read(src + 32 * Values::kSize, other + 32 * kOther);
    if constexpr (kShifts) {
      for (unsigned bit = 0; bit < top.shift; ++bit, low_words += 8)
        put_word(low_words, bits_of(a, b, to_top(bit)));
      a = _mm256_and_si256(_mm256_srl_epi16(a, by), field_bits);
      b = _mm256_and_si256(_mm256_srl_epi16(b, by), field_bits);
    }
    out = encode_group<W>(lookup, a, b, words, out);
  }
  if (count > 0) {
    uint8_t plane[64];
    uint8_t* const planes[2] = {Values::kSize == 1 ? plane : other, plane};
    kScalarCodecKernels.split[Values::kSize - 1](src, count, 1, planes);
    if (top.shift > 0)
      kScalarCodecKernels.pack_bits(plane, count, (1u << top.shift) - 1, low_words);
    out += kScalarCodecKernels.encode_level[W](plane, count, top.shift, codes_of, words, out);
  }
  return static_cast<size_t>(out - escapes);
}

/// When codes are spread too far for a lookup: the same in steps, through a piece of the plane.
template <class Values, unsigned W>
size_t encode_in_steps(const uint8_t* src, size_t count, const uint8_t* codes_of,
                       const TopPlane& top, uint8_t* escapes) {
  constexpr size_t kPiece = 1024;
  uint8_t plane[kPiece];
  uint8_t* out = escapes;
  for (size_t at = 0; at < count; at += kPiece) {
    const size_t here = count - at < kPiece ? count - at : kPiece;
    uint8_t* const planes[2] = {Values::kSize == 1 ? plane : top.other + at, plane};
    kScalarCodecKernels.split[Values::kSize - 1](src + at * Values::kSize, here, 1, planes);
    if (top.shift > 0)
      kScalarCodecKernels.pack_bits(plane, here, (1u << top.shift) - 1,
                                    top.low_words + at / 8 * top.shift);
    out += kScalarCodecKernels.encode_level[W](plane, here, top.shift, codes_of,
                                               top.words + at / 8 * W, out);
  }
  return static_cast<size_t>(out - escapes);
}

template <class Values, unsigned W>
size_t encode(const uint8_t* src, size_t count, const uint8_t* codes_of, const TopPlane& top,
              uint8_t* escapes) {
  const CodeRange range(codes_of, (1u << W) - 1);
  if (!range.is_near()) return encode_in_steps<Values, W>(src, count, codes_of, top, escapes);
  return with_lookup<W>(
      range, codes_of, [&](const auto& lookup) __attribute__((always_inline)) {
        return top.shift == 0
                   ? encode_with<Values, W, false>(lookup, src, count, codes_of, top, escapes)
                   : encode_with<Values, W, true>(lookup, src, count, codes_of, top, escapes);
      });
}

}  // namespace

const TopKernels kAvx2TopKernels = {
    .encode = {{nullptr, encode<Values1, 1>, encode<Values1, 2>, encode<Values1, 3>,
                encode<Values1, 4>},
               {nullptr, encode<Values2, 1>, encode<Values2, 2>, encode<Values2, 3>,
                encode<Values2, 4>}},
    .decode = {},
};

}  // namespace uzip
