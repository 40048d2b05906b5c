// What the AVX2 kernel files share. Included by them only: everything here is compiled for AVX2 and
// has internal linkage, so that no other object can pick it up.
#pragma once

#include "codec/cpu/kernels.hpp"

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace uzip {
namespace {

using Bytes = __m256i;

[[gnu::always_inline]] inline Bytes load(const uint8_t* src) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(src));
}
[[gnu::always_inline]] inline void store(uint8_t* dst, Bytes v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(dst), v);
}
/// Asks for a line that will be read.
[[gnu::always_inline]] inline void fetch_ahead(const uint8_t* src) {
  _mm_prefetch(src + kFarAhead, _MM_HINT_T1);
  _mm_prefetch(src + kNearAhead, _MM_HINT_T0);
}
[[gnu::always_inline]] inline __m128i load_word(const uint8_t* src) {
  return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(src));
}
[[gnu::always_inline]] inline __m128i load_16(const uint8_t* src) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(src));
}
/// Sixteen bytes for either half: what packs and unpacks within halves then keeps the order.
[[gnu::always_inline]] inline Bytes load_halves(const uint8_t* lower, const uint8_t* upper) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(load_16(lower)), load_16(upper), 1);
}
[[gnu::always_inline]] inline void store_16(uint8_t* dst, __m128i v) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(dst), v);
}
[[gnu::always_inline]] inline void store_word(uint8_t* dst, __m128i v) {
  _mm_storel_epi64(reinterpret_cast<__m128i*>(dst), v);
}

}  // namespace

void avx2_split_1(const uint8_t* src, size_t count, unsigned rotation, uint8_t* const* planes);
void avx2_split_2(const uint8_t* src, size_t count, unsigned rotation, uint8_t* const* planes);
void avx2_split_4(const uint8_t* src, size_t count, unsigned rotation, uint8_t* const* planes);
void avx2_split_8(const uint8_t* src, size_t count, unsigned rotation, uint8_t* const* planes);
void avx2_merge_1(const uint8_t* const* planes, size_t count, unsigned rotation,
                  const Output& dst);
void avx2_merge_2(const uint8_t* const* planes, size_t count, unsigned rotation,
                  const Output& dst);
void avx2_merge_4(const uint8_t* const* planes, size_t count, unsigned rotation,
                  const Output& dst);
void avx2_merge_8(const uint8_t* const* planes, size_t count, unsigned rotation,
                  const Output& dst);
void avx2_delta_4(const uint8_t* src, size_t count, uint64_t base, uint8_t* dst);
void avx2_delta_8(const uint8_t* src, size_t count, uint64_t base, uint8_t* dst);
uint64_t avx2_undelta_4(const uint8_t* src, size_t count, uint64_t base, const Output& dst);
uint64_t avx2_undelta_8(const uint8_t* src, size_t count, uint64_t base, const Output& dst);
size_t avx2_remove_zeros_1(const uint8_t* src, size_t count, uint8_t* dst, uint8_t* kept,
                           uint8_t* signs);
size_t avx2_remove_zeros_2(const uint8_t* src, size_t count, uint8_t* dst, uint8_t* kept,
                           uint8_t* signs);
size_t avx2_remove_zeros_4(const uint8_t* src, size_t count, uint8_t* dst, uint8_t* kept,
                           uint8_t* signs);
size_t avx2_remove_zeros_8(const uint8_t* src, size_t count, uint8_t* dst, uint8_t* kept,
                           uint8_t* signs);
void avx2_insert_zeros_1(const uint8_t* src, const uint8_t* kept, const uint8_t* signs,
                         size_t count, uint8_t* dst);
void avx2_insert_zeros_2(const uint8_t* src, const uint8_t* kept, const uint8_t* signs,
                         size_t count, uint8_t* dst);
void avx2_insert_zeros_4(const uint8_t* src, const uint8_t* kept, const uint8_t* signs,
                         size_t count, uint8_t* dst);
void avx2_insert_zeros_8(const uint8_t* src, const uint8_t* kept, const uint8_t* signs,
                         size_t count, uint8_t* dst);

}  // namespace uzip
