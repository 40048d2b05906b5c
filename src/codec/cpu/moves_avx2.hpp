// AVX2: the marked ones of some bytes or words to the front, and back. Shared by kernels that move
// escapes and those that take zeros out; like kernels_avx2.hpp for these files only.
#pragma once

#include "codec/cpu/kernels_avx2.hpp"
#include "codec/cpu/move_tables.hpp"

namespace uzip {
namespace {

constexpr MoveTable kCompressPairs = make_compress_table<4>(0);
constexpr MoveTable kExpandPairs = make_expand_table<4>();

/// Two words of eight bytes.
[[gnu::always_inline]] inline __m128i load_words(const uint8_t* lower, const uint8_t* upper) {
  const __m128 low = _mm_castsi128_ps(load_word(lower));
  return _mm_castps_si128(_mm_loadh_pi(low, reinterpret_cast<const __m64*>(upper)));
}
[[gnu::always_inline]] inline void store_upper_word(uint8_t* dst, __m128i v) {
  _mm_storeh_pi(reinterpret_cast<__m64*>(dst), _mm_castsi128_ps(v));
}
/// Sixteen of 64 bytes.
[[gnu::always_inline]] inline __m128i quarter(Bytes a, Bytes b, unsigned index) {
  const Bytes half = index < 2 ? a : b;
  return index % 2 == 0 ? _mm256_castsi256_si128(half) : _mm256_extracti128_si256(half, 1);
}
[[gnu::always_inline]] inline unsigned ones_of_byte(unsigned byte) {
  return static_cast<unsigned>(__builtin_popcount(byte));
}

/// Appends those of sixteen bytes that the mask marks.
[[gnu::always_inline]] inline uint8_t* append_quarter(__m128i bytes, unsigned mask, uint8_t* out) {
  const unsigned lower = mask & 0xff;
  const unsigned upper = mask >> 8;
  const __m128i order = load_words(kCompressLower.order[lower], kCompressUpper.order[upper]);
  const __m128i moved = _mm_shuffle_epi8(bytes, order);
  store_word(out, moved);
  out += ones_of_byte(lower);
  store_upper_word(out, moved);
  return out + ones_of_byte(upper);
}
/// The inverse: `bytes` go to the places that the mask marks, 0 to the others.
[[gnu::always_inline]] inline __m128i expand_quarter(__m128i bytes, unsigned mask) {
  const unsigned lower = mask & 0xff;
  const unsigned upper = mask >> 8;
  const __m128i order = _mm_add_epi8(load_words(kExpand.order[lower], kExpand.order[upper]),
                                     load_16(kAfter.add[ones_of_byte(lower)]));
  return _mm_shuffle_epi8(bytes, order);
}

}  // namespace
}  // namespace uzip
