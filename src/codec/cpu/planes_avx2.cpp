// AVX2: values to byte planes and back, 32 values at a time; what is left over goes to the portable
// kernels.
#include "codec/cpu/kernels.hpp"
#include "codec/cpu/kernels_avx2.hpp"
#include "codec/cpu/sinks_avx2.hpp"

namespace uzip {
namespace {

/// Rotates the values of a vector.
template <size_t kSize>
struct Rotation {
  __m128i left;
  __m128i right;

  explicit Rotation(unsigned rotation) {
    constexpr unsigned kBits = 8 * kSize;
    left = _mm_cvtsi32_si128(static_cast<int>(rotation % kBits));
    right = _mm_cvtsi32_si128(static_cast<int>(kBits - rotation % kBits));
  }
  [[gnu::always_inline]] Bytes operator()(Bytes v) const {
    if constexpr (kSize == 2)
      return _mm256_or_si256(_mm256_sll_epi16(v, left), _mm256_srl_epi16(v, right));
    if constexpr (kSize == 4)
      return _mm256_or_si256(_mm256_sll_epi32(v, left), _mm256_srl_epi32(v, right));
    return _mm256_or_si256(_mm256_sll_epi64(v, left), _mm256_srl_epi64(v, right));
  }
};

/// In each half: the bytes of plane 0, then those of plane 1, ...
template <size_t kSize>
Bytes group_by_plane() {
  alignas(32) uint8_t index[32];
  for (size_t i = 0; i < 32; ++i) {
    const size_t per_half = 16 / kSize;
    index[i] = static_cast<uint8_t>(i % 16 % per_half * kSize + i % 16 / per_half);
  }
  return load(index);
}
template <size_t kSize>
Bytes group_by_value() {
  alignas(32) uint8_t index[32];
  for (size_t i = 0; i < 32; ++i) {
    const size_t per_half = 16 / kSize;
    index[i] = static_cast<uint8_t>(i % 16 % kSize * per_half + i % 16 / kSize);
  }
  return load(index);
}

/// In each half, rows and columns of four vectors of four 4-byte words change places.
[[gnu::always_inline]] inline void transpose(Bytes (&v)[4]) {
  const Bytes a = _mm256_unpacklo_epi32(v[0], v[1]);
  const Bytes b = _mm256_unpackhi_epi32(v[0], v[1]);
  const Bytes c = _mm256_unpacklo_epi32(v[2], v[3]);
  const Bytes d = _mm256_unpackhi_epi32(v[2], v[3]);
  v[0] = _mm256_unpacklo_epi64(a, c);
  v[1] = _mm256_unpackhi_epi64(a, c);
  v[2] = _mm256_unpacklo_epi64(b, d);
  v[3] = _mm256_unpackhi_epi64(b, d);
}
/// The same with eight vectors of eight 2-byte words.
[[gnu::always_inline]] inline void transpose(Bytes (&v)[8]) {
  Bytes low[4];
  Bytes high[4];
#pragma GCC unroll 8
  for (int i = 0; i < 4; ++i) {
    low[i] = _mm256_unpacklo_epi16(v[2 * i], v[2 * i + 1]);
    high[i] = _mm256_unpackhi_epi16(v[2 * i], v[2 * i + 1]);
  }
  transpose(low);
  transpose(high);
#pragma GCC unroll 8
  for (int i = 0; i < 4; ++i) {
    v[i] = low[i];
    v[i + 4] = high[i];
  }
}

/// The halves of a transposed vector hold every other group of values.
template <size_t kSize>
[[gnu::always_inline]] inline Bytes join_halves(Bytes v) {
  if constexpr (kSize == 4)
    return _mm256_permutevar8x32_epi32(v, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  const Bytes pairs = _mm256_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15, 0, 1,
                                       8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15);
  return _mm256_shuffle_epi8(_mm256_permute4x64_epi64(v, 0xd8), pairs);
}
template <size_t kSize>
[[gnu::always_inline]] inline Bytes part_halves(Bytes v) {
  if constexpr (kSize == 4)
    return _mm256_permutevar8x32_epi32(v, _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7));
  const Bytes pairs = _mm256_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15, 0, 1,
                                       4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
  return _mm256_permute4x64_epi64(_mm256_shuffle_epi8(v, pairs), 0xd8);
}

template <size_t kSize>
[[gnu::always_inline]] inline void to_planes(Bytes (&v)[kSize], Bytes group) {
  if constexpr (kSize == 2) {
    const Bytes low = _mm256_set1_epi16(0xff);
    const Bytes a = _mm256_packus_epi16(_mm256_and_si256(v[0], low), _mm256_and_si256(v[1], low));
    const Bytes b = _mm256_packus_epi16(_mm256_srli_epi16(v[0], 8), _mm256_srli_epi16(v[1], 8));
    v[0] = _mm256_permute4x64_epi64(a, 0xd8);
    v[1] = _mm256_permute4x64_epi64(b, 0xd8);
  } else {
#pragma GCC unroll 8
    for (Bytes& x : v) x = _mm256_shuffle_epi8(x, group);
    transpose(v);
#pragma GCC unroll 8
    for (Bytes& x : v) x = join_halves<kSize>(x);
  }
}
template <size_t kSize>
[[gnu::always_inline]] inline void to_values(Bytes (&v)[kSize], Bytes group) {
  if constexpr (kSize == 2) {
    const Bytes low = _mm256_permute4x64_epi64(v[0], 0xd8);
    const Bytes high = _mm256_permute4x64_epi64(v[1], 0xd8);
    v[0] = _mm256_unpacklo_epi8(low, high);
    v[1] = _mm256_unpackhi_epi8(low, high);
  } else {
#pragma GCC unroll 8
    for (Bytes& x : v) x = part_halves<kSize>(x);
    transpose(v);
#pragma GCC unroll 8
    for (Bytes& x : v) x = _mm256_shuffle_epi8(x, group);
  }
}

template <size_t kSize, unsigned kClass>
[[gnu::always_inline]] inline void split(const uint8_t* src, size_t count, unsigned rotation,
                                         uint8_t* const* planes) {
  const Rotation<kSize> rotate(rotation);
  const Bytes group = group_by_plane<kSize>();
  Bytes v[kSize];
  size_t at = 0;
  for (; at + 32 <= count; at += 32, src += 32 * kSize) {
#pragma GCC unroll 8
    for (size_t i = 0; i < kSize; ++i) {
      if (i % 2 == 0) fetch_ahead(src + 32 * i);
      v[i] = rotate(load(src + 32 * i));
    }
    to_planes<kSize>(v, group);
#pragma GCC unroll 8
    for (size_t p = 0; p < kSize; ++p)
      if (planes[p] != nullptr) store(planes[p] + at, v[p]);
  }
  uint8_t* rest[kSize];
#pragma GCC unroll 8
  for (size_t p = 0; p < kSize; ++p) rest[p] = planes[p] == nullptr ? nullptr : planes[p] + at;
  kScalarCodecKernels.split[kClass](src, count - at, rotation, rest);
}

template <size_t kSize, unsigned kClass, class Sink>
[[gnu::always_inline]] inline void merge_to(const uint8_t* const* planes, size_t count,
                                            unsigned rotation, const Output& output) {
  Sink sink(output);
  const Rotation<kSize> rotate(8 * kSize - rotation % (8 * kSize));
  const Bytes group = group_by_value<kSize>();
  Bytes v[kSize];
  size_t at = 0;
  for (; at + 32 <= count; at += 32) {
#pragma GCC unroll 8
    for (size_t p = 0; p < kSize; ++p) v[p] = load(planes[p] + at);
    to_values<kSize>(v, group);
#pragma GCC unroll 8
    for (size_t i = 0; i < kSize; i += 2) sink.put(rotate(v[i]), rotate(v[i + 1]));
  }
  const uint8_t* rest[kSize];
#pragma GCC unroll 8
  for (size_t p = 0; p < kSize; ++p) rest[p] = planes[p] + at;
  uint8_t* const dst = sink.finish();
  kScalarCodecKernels.merge[kClass](rest, count - at, rotation, {dst, dst});
}

template <size_t kSize, unsigned kClass>
[[gnu::always_inline]] inline void merge(const uint8_t* const* planes, size_t count,
                                         unsigned rotation, const Output& output) {
  with_sink<kSize>(output, [&](auto sink) {
    merge_to<kSize, kClass, typename decltype(sink)::Type>(planes, count, rotation, output);
  });
}

void rotate_bytes(const uint8_t* src, size_t count, unsigned rotation, uint8_t* dst,
                  const uint8_t* ahead) {
  const __m128i left = _mm_cvtsi32_si128(static_cast<int>(rotation % 8));
  const __m128i right = _mm_cvtsi32_si128(static_cast<int>(8 - rotation % 8));
  const Bytes high = _mm256_set1_epi8(static_cast<char>(0xffu << rotation % 8));
  size_t at = 0;
  for (; at + 32 <= count; at += 32) {
    if (at % 64 == 0) _mm_prefetch(ahead + at, _MM_HINT_T1);
    const Bytes v = load(src + at);
    const Bytes up = _mm256_and_si256(_mm256_sll_epi16(v, left), high);
    const Bytes down = _mm256_andnot_si256(high, _mm256_srl_epi16(v, right));
    store(dst + at, _mm256_or_si256(up, down));
  }
  kScalarCodecKernels.split[0](src + at, count - at, rotation % 8, &(dst += at));
}

}  // namespace

void avx2_split_1(const uint8_t* src, size_t count, unsigned rotation, uint8_t* const* planes) {
  rotate_bytes(src, count, rotation, planes[0], src + kFarAhead);
}
void avx2_split_2(const uint8_t* src, size_t count, unsigned rotation, uint8_t* const* planes) {
  split<2, 1>(src, count, rotation, planes);
}
void avx2_split_4(const uint8_t* src, size_t count, unsigned rotation, uint8_t* const* planes) {
  split<4, 2>(src, count, rotation, planes);
}
void avx2_split_8(const uint8_t* src, size_t count, unsigned rotation, uint8_t* const* planes) {
  split<8, 3>(src, count, rotation, planes);
}

void avx2_merge_1(const uint8_t* const* planes, size_t count, unsigned rotation,
                  const Output& dst) {
  rotate_bytes(planes[0], count, 8 - rotation % 8, dst.values, dst.ahead);
}
void avx2_merge_2(const uint8_t* const* planes, size_t count, unsigned rotation,
                  const Output& dst) {
  merge<2, 1>(planes, count, rotation, dst);
}
void avx2_merge_4(const uint8_t* const* planes, size_t count, unsigned rotation,
                  const Output& dst) {
  merge<4, 2>(planes, count, rotation, dst);
}
void avx2_merge_8(const uint8_t* const* planes, size_t count, unsigned rotation,
                  const Output& dst) {
  merge<8, 3>(planes, count, rotation, dst);
}

}  // namespace uzip
