// AVX-512: values to byte planes and back, 64 values at a time. Shuffles run on fewer ports than
// anything else, so there is one for each plane; see Places.
#include "codec/cpu/kernels.hpp"
#include "codec/cpu/kernels_avx512.hpp"
#include "codec/cpu/levels_avx512.hpp"
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

/// What the values of each vector are rotated by, so that their bytes stand as Places wants them.
template <size_t kSize>
class Rotations {
 public:
  explicit Rotations(unsigned rotation) {
#pragma GCC unroll 8
    for (size_t i = 0; i < kSize; ++i)
      by_[i] = broadcast<kSize>(static_cast<unsigned>(rotation + 8 * (kSize - i)) % (8 * kSize));
  }
  [[gnu::always_inline]] Bytes operator[](size_t i) const { return by_[i]; }

 private:
  Bytes by_[kSize];
};

template <size_t kSize>
void split_all(const uint8_t* src, size_t count, unsigned rotation, uint8_t* const* planes) {
  const Rotations<kSize> by(rotation);
  const size_t whole = count & ~size_t{63};
  const bool far = fetches_far();
  Bytes v[kSize];
  size_t at = 0;
  for (; at < whole; at += 64, src += 64 * kSize) {
#pragma GCC unroll 8
    for (size_t i = 0; i < kSize; ++i) {
      fetch_ahead(src + 64 * i, far);
      v[i] = rotate_left<kSize>(load(src + 64 * i), by[i]);
    }
    Places<kSize>::to_planes(v);
#pragma GCC unroll 8
    for (size_t p = 0; p < kSize; ++p) {
      if (planes[p] == nullptr) continue;
      prepare_ahead(planes[p] + at);
      store(planes[p] + at, v[p]);
    }
  }
  if (at == count) return;
  const size_t rest = (count - at) * kSize;
#pragma GCC unroll 8
  for (size_t i = 0; i < kSize; ++i)
    v[i] = rotate_left<kSize>(load_some(src + 64 * i, part_mask(rest, i)), by[i]);
  Places<kSize>::to_planes(v);
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
  const bool far = fetches_far();
  Bytes v[kSize];
  size_t at = 0;
  for (; at + 64 <= count; at += 64, src += 64 * kSize) {
#pragma GCC unroll 8
    for (size_t i = 0; i < kSize; ++i) {
      fetch_ahead(src + 64 * i, far);
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

/// A top plane that is there, byte by byte.
class PlaneBytes {
 public:
  static constexpr bool kReadsWords = false;
  explicit PlaneBytes(const uint8_t* bytes) : bytes_(bytes) {}
  [[gnu::always_inline]] Bytes next(bool) {
    const Bytes v = load(bytes_);
    bytes_ += 64;
    return v;
  }
  [[gnu::always_inline]] Bytes last(uint64_t valid) { return load_some(bytes_, valid); }

 private:
  const uint8_t* bytes_;
};
/// One that is decoded on the way.
class PlaneOfLevel : public AnyLevelDecoder {
 public:
  static constexpr bool kReadsWords = true;
  using AnyLevelDecoder::AnyLevelDecoder;
  [[gnu::always_inline]] Bytes next(bool inside) { return decode(~uint64_t{0}, inside); }
  [[gnu::always_inline]] Bytes last(uint64_t valid) { return decode(valid, false); }
};

template <size_t kSize, class Sink, class Top>
[[gnu::always_inline]] inline void merge_to(const uint8_t* const* planes, Top& top, size_t count,
                                            unsigned rotation, const Output& output) {
  Sink sink(output);
  const Rotations<kSize> by(rotation);
  Bytes v[kSize];
  size_t at = 0;
  // `inside` as of LevelDecoder.
  auto group = [&](bool inside) __attribute__((always_inline)) {
    v[kSize - 1] = top.next(inside);
#pragma GCC unroll 8
    for (size_t p = 0; p < kSize - 1; ++p) v[p] = load(planes[p] + at);
    Places<kSize>::to_values(v);
#pragma GCC unroll 8
    for (size_t i = 0; i < kSize; ++i) sink.put(rotate_right<kSize>(v[i], by[i]));
    at += 64;
  };
  if constexpr (Top::kReadsWords)
    while (at + kGroupsOfFourWords * 64 <= count) group(true);
  while (at + 64 <= count) group(false);
  uint8_t* const dst = sink.finish();
  if (at == count) return;
  v[kSize - 1] = top.last(low_bits(count - at));
#pragma GCC unroll 8
  for (size_t p = 0; p < kSize - 1; ++p) v[p] = load_some(planes[p] + at, low_bits(count - at));
  Places<kSize>::to_values(v);
  const size_t rest = (count - at) * kSize;
#pragma GCC unroll 8
  for (size_t i = 0; i < kSize; ++i)
    store_some(dst + 64 * i, part_mask(rest, i), rotate_right<kSize>(v[i], by[i]));
}

template <size_t kSize, class SumOfThem, class Top>
[[gnu::always_inline]] inline void merge(const uint8_t* const* planes, Top& top, size_t count,
                                         unsigned rotation, const Output& output) {
  if (output.sum != nullptr)
    merge_to<kSize, SumOfThem>(planes, top, count, rotation, output);
  else if (output.streams)
    merge_to<kSize, StreamSink>(planes, top, count, rotation, output);
  else if (AheadSink::is_for(output))
    merge_to<kSize, AheadSink>(planes, top, count, rotation, output);
  else
    merge_to<kSize, StoreSink>(planes, top, count, rotation, output);
}

template <size_t kSize, class SumOfThem>
[[gnu::always_inline]] inline size_t merge_level(const uint8_t* const* planes,
                                                 const LevelSource& level, size_t count,
                                                 unsigned rotation, const Output& output) {
  PlaneOfLevel top(level);
  merge<kSize, SumOfThem>(planes, top, count, rotation, output);
  return top.used(level);
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
  rotate_bytes<AheadSink>(src, count, rotation, {planes[0], src + kFarAhead});
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
  else if (AheadSink::is_for(dst))
    rotate_bytes<AheadSink>(planes[0], count, left, dst);
  else
    rotate_bytes<StoreSink>(planes[0], count, left, dst);
}
void avx512_merge_2(const uint8_t* const* planes, size_t count, unsigned rotation,
                    const Output& dst) {
  PlaneBytes top(planes[1]);
  if (dst.sum == nullptr || dst.sum->type == UZIP_FP16)
    merge<2, SumOfFp16>(planes, top, count, rotation, dst);
  else if (NativeBfloat16::runs_here())
    merge_to<2, SumOfNativeBf16>(planes, top, count, rotation, dst);
  else
    merge_to<2, SumOfBf16>(planes, top, count, rotation, dst);
}
void avx512_merge_4(const uint8_t* const* planes, size_t count, unsigned rotation,
                    const Output& dst) {
  PlaneBytes top(planes[3]);
  merge<4, SumOfFp32>(planes, top, count, rotation, dst);
}
void avx512_merge_8(const uint8_t* const* planes, size_t count, unsigned rotation,
                    const Output& dst) {
  PlaneBytes top(planes[7]);
  merge<8, SumOfFp64>(planes, top, count, rotation, dst);
}
size_t avx512_merge_level_4(const uint8_t* const* planes, const LevelSource& top, size_t count,
                            unsigned rotation, const Output& dst) {
  return merge_level<4, SumOfFp32>(planes, top, count, rotation, dst);
}
size_t avx512_merge_level_8(const uint8_t* const* planes, const LevelSource& top, size_t count,
                            unsigned rotation, const Output& dst) {
  return merge_level<8, SumOfFp64>(planes, top, count, rotation, dst);
}

}  // namespace uzip
