// AVX-512: values to byte planes and back, 64 values at a time. The shuffles are what limits these
// loops (one a cycle), so bytes are moved in as few of them as there are known ways.
#include "codec/cpu/kernels.hpp"
#include "codec/cpu/kernels_avx512.hpp"
#include "codec/cpu/sums_avx512.hpp"

namespace uzip {
namespace {

/// Byte rotation as a bit matrix: bit i of the result is bit i - rotation.
Bytes rotation_matrix(unsigned rotation) {
  uint64_t matrix = 0;
#pragma GCC unroll 8
  for (unsigned i = 0; i < 8; ++i) matrix |= uint64_t{1} << ((i - rotation) & 7) << (8 * (7 - i));
  return _mm512_set1_epi64(static_cast<int64_t>(matrix));
}

/// Byte indices: element i of group g takes byte i * size + g, so that a vector falls into `size`
/// runs.
template <size_t kSize>
Bytes group_by_plane() {
  alignas(64) uint8_t index[64];
#pragma GCC unroll 8
  for (size_t p = 0; p < kSize; ++p)
    for (size_t i = 0; i < 64 / kSize; ++i)
      index[p * (64 / kSize) + i] = static_cast<uint8_t>(i * kSize + p);
  return load(index);
}
/// The inverse of group_by_plane.
template <size_t kSize>
Bytes group_by_value() {
  alignas(64) uint8_t index[64];
#pragma GCC unroll 8
  for (size_t p = 0; p < kSize; ++p)
    for (size_t i = 0; i < 64 / kSize; ++i)
      index[i * kSize + p] = static_cast<uint8_t>(p * (64 / kSize) + i);
  return load(index);
}

/// Rows and columns of four vectors of four 16-byte lanes change places.
[[gnu::always_inline]] inline void transpose_lanes(Bytes (&v)[4]) {
  const Bytes a = _mm512_shuffle_i64x2(v[0], v[1], 0x44);
  const Bytes b = _mm512_shuffle_i64x2(v[2], v[3], 0x44);
  const Bytes c = _mm512_shuffle_i64x2(v[0], v[1], 0xee);
  const Bytes d = _mm512_shuffle_i64x2(v[2], v[3], 0xee);
  v[0] = _mm512_shuffle_i64x2(a, b, 0x88);
  v[1] = _mm512_shuffle_i64x2(a, b, 0xdd);
  v[2] = _mm512_shuffle_i64x2(c, d, 0x88);
  v[3] = _mm512_shuffle_i64x2(c, d, 0xdd);
}

/// The same with eight vectors of eight 8-byte words.
[[gnu::always_inline]] inline void transpose_words(Bytes (&v)[8]) {
  Bytes pairs[8];
#pragma GCC unroll 8
  for (int i = 0; i < 4; ++i) {
    pairs[i] = _mm512_unpacklo_epi64(v[2 * i], v[2 * i + 1]);
    pairs[i + 4] = _mm512_unpackhi_epi64(v[2 * i], v[2 * i + 1]);
  }
#pragma GCC unroll 8
  for (int half = 0; half < 2; ++half) {
    Bytes lanes[4] = {pairs[4 * half], pairs[4 * half + 1], pairs[4 * half + 2],
                      pairs[4 * half + 3]};
    transpose_lanes(lanes);
#pragma GCC unroll 8
    for (int i = 0; i < 4; ++i) v[2 * i + half] = lanes[i];
  }
}

template <size_t kSize>
[[gnu::always_inline]] inline Bytes rotate_left(Bytes v, Bytes by) {
  if constexpr (kSize == 2) return _mm512_shldv_epi16(v, v, by);
  if constexpr (kSize == 4) return _mm512_rolv_epi32(v, by);
  return _mm512_rolv_epi64(v, by);
}
template <size_t kSize>
[[gnu::always_inline]] inline Bytes rotate_right(Bytes v, Bytes by) {
  if constexpr (kSize == 2) return _mm512_shrdv_epi16(v, v, by);
  if constexpr (kSize == 4) return _mm512_rorv_epi32(v, by);
  return _mm512_rorv_epi64(v, by);
}
template <size_t kSize>
Bytes broadcast(unsigned value) {
  if constexpr (kSize == 2) return _mm512_set1_epi16(static_cast<int16_t>(value));
  if constexpr (kSize == 4) return _mm512_set1_epi32(static_cast<int>(value));
  return _mm512_set1_epi64(value);
}

/// 64 values in kSize vectors become kSize planes of 64 bytes.
template <size_t kSize>
[[gnu::always_inline]] inline void to_planes(Bytes (&v)[kSize], Bytes group) {
  if constexpr (kSize == 2) {
    // Each vector: low bytes, then high bytes; the second the other way round, so that a blend
    // joins them.
    const Bytes a = _mm512_permutexvar_epi8(group, v[0]);
    const Bytes b = _mm512_permutexvar_epi8(_mm512_xor_si512(group, _mm512_set1_epi8(1)), v[1]);
    v[0] = _mm512_mask_blend_epi64(0xf0, a, b);
    const Bytes high = _mm512_mask_blend_epi64(0xf0, b, a);
    v[1] = _mm512_shuffle_i64x2(high, high, 0x4e);
  } else {
#pragma GCC unroll 8
    for (size_t i = 0; i < kSize; ++i) v[i] = _mm512_permutexvar_epi8(group, v[i]);
    if constexpr (kSize == 4) transpose_lanes(v);
    if constexpr (kSize == 8) transpose_words(v);
  }
}
template <size_t kSize>
[[gnu::always_inline]] inline void to_values(Bytes (&v)[kSize], Bytes group) {
  if constexpr (kSize == 2) {
    const Bytes order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
    const Bytes low = _mm512_permutexvar_epi64(order, v[0]);
    const Bytes high = _mm512_permutexvar_epi64(order, v[1]);
    v[0] = _mm512_unpacklo_epi8(low, high);
    v[1] = _mm512_unpackhi_epi8(low, high);
  } else {
    if constexpr (kSize == 4) transpose_lanes(v);
    if constexpr (kSize == 8) transpose_words(v);
#pragma GCC unroll 8
    for (size_t i = 0; i < kSize; ++i) v[i] = _mm512_permutexvar_epi8(group, v[i]);
  }
}

template <size_t kSize>
void split_all(const uint8_t* src, size_t count, unsigned rotation, uint8_t* const* planes) {
  const Bytes group = group_by_plane<kSize>();
  const Bytes by = broadcast<kSize>(rotation % (8 * kSize));
  const size_t whole = count & ~size_t{63};
  Bytes v[kSize];
  size_t at = 0;
  for (; at < whole; at += 64, src += 64 * kSize) {
#pragma GCC unroll 8
    for (size_t i = 0; i < kSize; ++i) {
      fetch_ahead(src + 64 * i);
      v[i] = rotate_left<kSize>(load(src + 64 * i), by);
    }
    to_planes<kSize>(v, group);
#pragma GCC unroll 8
    for (size_t p = 0; p < kSize; ++p)
      if (planes[p] != nullptr) store(planes[p] + at, v[p]);
  }
  if (at == count) return;
  const size_t rest = (count - at) * kSize;
#pragma GCC unroll 8
  for (size_t i = 0; i < kSize; ++i)
    v[i] = rotate_left<kSize>(load_some(src + 64 * i, part_mask(rest, i)), by);
  to_planes<kSize>(v, group);
#pragma GCC unroll 8
  for (size_t p = 0; p < kSize; ++p)
    if (planes[p] != nullptr) store_some(planes[p] + at, low_bits(count - at), v[p]);
}

/// Byte `plane` of 64 values only.
template <size_t kSize>
[[gnu::always_inline]] inline Bytes one_plane(Bytes (&v)[kSize], Bytes shift) {
  if constexpr (kSize == 2) {
    const Bytes low = _mm512_set1_epi16(0xff);
#pragma GCC unroll 8
    for (Bytes& x : v) x = _mm512_and_si512(_mm512_srlv_epi16(x, shift), low);
    return _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7),
                                    _mm512_packus_epi16(v[0], v[1]));
  } else if constexpr (kSize == 4) {
    const Bytes low = _mm512_set1_epi32(0xff);
#pragma GCC unroll 8
    for (Bytes& x : v) x = _mm512_and_si512(_mm512_srlv_epi32(x, shift), low);
    const Bytes packed =
        _mm512_packus_epi16(_mm512_packus_epi32(v[0], v[1]), _mm512_packus_epi32(v[2], v[3]));
    return _mm512_permutexvar_epi32(
        _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), packed);
  } else {
    Bytes result = _mm512_setzero_si512();
    alignas(64) uint8_t words[64];
#pragma GCC unroll 8
    for (size_t i = 0; i < kSize; ++i)
      _mm_storel_epi64(reinterpret_cast<__m128i*>(words + 8 * i),
                       _mm512_cvtepi64_epi8(_mm512_srlv_epi64(v[i], shift)));
    result = load(words);
    return result;
  }
}

template <size_t kSize>
void split_one(const uint8_t* src, size_t count, unsigned rotation, size_t plane, uint8_t* dst) {
  const Bytes by = broadcast<kSize>(rotation % (8 * kSize));
  const Bytes shift = broadcast<kSize>(8 * static_cast<unsigned>(plane));
  Bytes v[kSize];
  size_t at = 0;
  for (; at + 64 <= count; at += 64, src += 64 * kSize) {
#pragma GCC unroll 8
    for (size_t i = 0; i < kSize; ++i) {
      fetch_ahead(src + 64 * i);
      v[i] = rotate_left<kSize>(load(src + 64 * i), by);
    }
    store(dst + at, one_plane<kSize>(v, shift));
  }
  if (at == count) return;
  const size_t rest = (count - at) * kSize;
#pragma GCC unroll 8
  for (size_t i = 0; i < kSize; ++i)
    v[i] = rotate_left<kSize>(load_some(src + 64 * i, part_mask(rest, i)), by);
  store_some(dst + at, low_bits(count - at), one_plane<kSize>(v, shift));
}

template <size_t kSize>
[[gnu::always_inline]] inline void split(const uint8_t* src, size_t count, unsigned rotation,
                                         uint8_t* const* planes) {
  size_t wanted = 0;
  size_t last = 0;
#pragma GCC unroll 8
  for (size_t p = 0; p < kSize; ++p) {
    if (planes[p] == nullptr) continue;
    ++wanted;
    last = p;
  }
  if (wanted == 1) return split_one<kSize>(src, count, rotation, last, planes[last]);
  split_all<kSize>(src, count, rotation, planes);
}

template <size_t kSize, class Sink>
[[gnu::always_inline]] inline void merge_to(const uint8_t* const* planes, size_t count,
                                            unsigned rotation, const Output& output) {
  const Bytes group = group_by_value<kSize>();
  Sink sink(output);
  const Bytes by = broadcast<kSize>(rotation % (8 * kSize));
  Bytes v[kSize];
  size_t at = 0;
  for (; at + 64 <= count; at += 64) {
#pragma GCC unroll 8
    for (size_t p = 0; p < kSize; ++p) v[p] = load(planes[p] + at);
    to_values<kSize>(v, group);
#pragma GCC unroll 8
    for (size_t i = 0; i < kSize; ++i) sink.put(rotate_right<kSize>(v[i], by));
  }
  uint8_t* const dst = sink.finish();
  if (at == count) return;
#pragma GCC unroll 8
  for (size_t p = 0; p < kSize; ++p) v[p] = load_some(planes[p] + at, low_bits(count - at));
  to_values<kSize>(v, group);
  const size_t rest = (count - at) * kSize;
#pragma GCC unroll 8
  for (size_t i = 0; i < kSize; ++i)
    store_some(dst + 64 * i, part_mask(rest, i), rotate_right<kSize>(v[i], by));
}

template <size_t kSize>
[[gnu::always_inline]] inline void merge(const uint8_t* const* planes, size_t count,
                                         unsigned rotation, const Output& output) {
  if (output.streams)
    merge_to<kSize, StreamSink>(planes, count, rotation, output);
  else
    merge_to<kSize, StoreSink>(planes, count, rotation, output);
}

template <class Sink>
[[gnu::always_inline]] inline void rotate_bytes(const uint8_t* src, size_t count, unsigned rotation,
                                                const Output& output) {
  const Bytes matrix = rotation_matrix(rotation);
  Sink sink(output);
  size_t at = 0;
  for (; at + 64 <= count; at += 64)
    sink.put(_mm512_gf2p8affine_epi64_epi8(load(src + at), matrix, 0));
  uint8_t* const dst = sink.finish();
  const uint64_t rest = low_bits(count - at);
  if (rest != 0)
    store_some(dst, rest, _mm512_gf2p8affine_epi64_epi8(load_some(src + at, rest), matrix, 0));
}

}  // namespace

void avx512_split_1(const uint8_t* src, size_t count, unsigned rotation, uint8_t* const* planes) {
  rotate_bytes<StoreSink>(src, count, rotation, {planes[0], src + kFarAhead});
}
void avx512_split_2(const uint8_t* src, size_t count, unsigned rotation, uint8_t* const* planes) {
  split<2>(src, count, rotation, planes);
}
void avx512_split_4(const uint8_t* src, size_t count, unsigned rotation, uint8_t* const* planes) {
  split<4>(src, count, rotation, planes);
}
void avx512_split_8(const uint8_t* src, size_t count, unsigned rotation, uint8_t* const* planes) {
  split<8>(src, count, rotation, planes);
}

void avx512_merge_1(const uint8_t* const* planes, size_t count, unsigned rotation,
                    const Output& dst) {
  const unsigned left = 8 - rotation % 8;
  if (dst.streams)
    rotate_bytes<StreamSink>(planes[0], count, left, dst);
  else
    rotate_bytes<StoreSink>(planes[0], count, left, dst);
}
void avx512_merge_2(const uint8_t* const* planes, size_t count, unsigned rotation,
                    const Output& dst) {
  if (dst.sum == nullptr)
    merge<2>(planes, count, rotation, dst);
  else if (dst.sum->type == UZIP_BF16 && NativeBfloat16::runs_here())
    merge_to<2, SumOfNativeBf16>(planes, count, rotation, dst);
  else if (dst.sum->type == UZIP_BF16)
    merge_to<2, SumOfBf16>(planes, count, rotation, dst);
  else
    merge_to<2, SumOfFp16>(planes, count, rotation, dst);
}
void avx512_merge_4(const uint8_t* const* planes, size_t count, unsigned rotation,
                    const Output& dst) {
  if (dst.sum == nullptr)
    merge<4>(planes, count, rotation, dst);
  else
    merge_to<4, SumOfFp32>(planes, count, rotation, dst);
}
void avx512_merge_8(const uint8_t* const* planes, size_t count, unsigned rotation,
                    const Output& dst) {
  if (dst.sum == nullptr)
    merge<8>(planes, count, rotation, dst);
  else
    merge_to<8, SumOfFp64>(planes, count, rotation, dst);
}

}  // namespace uzip
