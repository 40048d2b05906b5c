// AVX2: values of one or two bytes straight to a level. Decoding is left to the separate kernels:
// escapes have to be put in place in memory.
#include "codec/cpu/bit_stream.hpp"
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
    const Bytes v0 = load_halves(src, src + 32);
    const Bytes v1 = load_halves(src + 16, src + 48);
    const Bytes a = _mm256_or_si256(_mm256_add_epi16(v0, v0), _mm256_srli_epi16(v0, 15));
    const Bytes b = _mm256_or_si256(_mm256_add_epi16(v1, v1), _mm256_srli_epi16(v1, 15));
    store(other, _mm256_packus_epi16(_mm256_and_si256(a, low), _mm256_and_si256(b, low)));
    return _mm256_packus_epi16(_mm256_srli_epi16(a, 8), _mm256_srli_epi16(b, 8));
  }
};

template <class Values, unsigned W, unsigned kShift, class Codes>
[[gnu::always_inline]] inline size_t encode_with(const Codes& codes, const uint8_t* src,
                                                 size_t count, const TopPlane& top,
                                                 uint8_t* escapes) {
  const Bytes field_bits = _mm256_set1_epi8(static_cast<char>(0xffu >> kShift));
  uint8_t* low_words = top.low_words;
  uint8_t* words = top.words;
  uint8_t* out = escapes;
  const auto group = [&](const uint8_t* values, uint8_t* other, uint64_t valid)
                         __attribute__((always_inline)) {
    Bytes a = Values::read(values, other);
    Bytes b = Values::read(values + 32 * Values::kSize, other + 32 * (Values::kSize - 1));
    if constexpr (kShift > 0) {
      uint64_t low[kShift];
      take_bits<kShift>(_mm256_slli_epi16(a, 8 - kShift), _mm256_slli_epi16(b, 8 - kShift), low);
#pragma GCC unroll 4
      for (unsigned bit = 0; bit < kShift; ++bit, low_words += 8) put_word(low_words, low[bit]);
      a = _mm256_and_si256(_mm256_srli_epi16(a, kShift), field_bits);
      b = _mm256_and_si256(_mm256_srli_epi16(b, kShift), field_bits);
    }
    out = encode_group<W>(codes, a, b, words, out, valid);
    words += 8 * W;
  };
  uint8_t* other = top.other;
  for (; count >= 64; count -= 64) {
#pragma GCC unroll 8
    for (size_t i = 0; i < Values::kSize; ++i) fetch_ahead(src + 64 * i);
    group(src, other, ~uint64_t{0});
    src += 64 * Values::kSize;
    other += 64 * (Values::kSize - 1);
  }
  if (count > 0) {
    alignas(32) uint8_t values[64 * Values::kSize] = {};
    alignas(32) uint8_t others[64 * Values::kSize];
    __builtin_memcpy(values, src, count * Values::kSize);
    group(values, others, lowest_bits(count));
    if constexpr (Values::kSize > 1) __builtin_memcpy(other, others, count);
  }
  return static_cast<size_t>(out - escapes);
}

template <class Values, unsigned W>
size_t encode(const uint8_t* src, size_t count, const uint8_t* codes_of, const TopPlane& top,
              uint8_t* escapes) {
  return with_codes<W>(
      codes_of, top.shift, [&](const auto& codes) __attribute__((always_inline)) {
        if constexpr (Values::kSize == 2) {
          if (top.shift == 0) return encode_with<Values, W, 0>(codes, src, count, top, escapes);
        } else {
          if (top.shift == 2) return encode_with<Values, W, 2>(codes, src, count, top, escapes);
        }
        return encode_with<Values, W, 3>(codes, src, count, top, escapes);
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
