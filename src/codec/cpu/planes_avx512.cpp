// AVX-512: values to byte planes and back, 64 values at a time. The shuffles are what limits these
// loops (one a cycle), so bytes are moved in as few of them as there are known ways.
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

/// From 64 values in kSize vectors to kSize planes of 64 bytes.
template <size_t kSize>
struct ToPlanes;
/// The inverse. Bytes of two planes are joined in an order that lets unpacking do the rest.
template <size_t kSize>
struct ToValues;

template <>
struct ToPlanes<2> {
  static constexpr PairOrder kLow{[](size_t i) { return 2 * i; }};
  Bytes low = load(kLow);
  static constexpr PairOrder kHigh{[](size_t i) { return 2 * i + 1; }};
  Bytes high = load(kHigh);
  [[gnu::always_inline]] void operator()(Bytes (&v)[2]) const {
    const Bytes plane = _mm512_permutex2var_epi8(v[0], low, v[1]);
    v[1] = _mm512_permutex2var_epi8(v[0], high, v[1]);
    v[0] = plane;
  }
};
template <>
struct ToValues<2> {
  static constexpr PairOrder kFirst{[](size_t i) { return i / 2 + i % 2 * 64; }};
  Bytes first = load(kFirst);
  static constexpr PairOrder kSecond{[](size_t i) { return 32 + i / 2 + i % 2 * 64; }};
  Bytes second = load(kSecond);
  [[gnu::always_inline]] void operator()(Bytes (&v)[2]) const {
    const Bytes values = _mm512_permutex2var_epi8(v[0], first, v[1]);
    v[1] = _mm512_permutex2var_epi8(v[0], second, v[1]);
    v[0] = values;
  }
};

template <>
struct ToPlanes<4> {
  // Half a vector of one plane, then half of the next; for the second pair of vectors the other way round, so that a
  // blend joins them.
  static constexpr PairOrder kLow{[](size_t i) { return 4 * (i % 32) + i / 32; }};
  Bytes low = load(kLow);
  static constexpr PairOrder kHigh{[](size_t i) { return 4 * (i % 32) + i / 32 + 2; }};
  Bytes high = load(kHigh);
  static constexpr PairOrder kLowTurned{[](size_t i) { return 4 * (i % 32) + 1 - i / 32; }};
  Bytes low_turned = load(kLowTurned);
  static constexpr PairOrder kHighTurned{[](size_t i) { return 4 * (i % 32) + 3 - i / 32; }};
  Bytes high_turned = load(kHighTurned);
  [[gnu::always_inline]] void operator()(Bytes (&v)[4]) const {
    const Bytes a = _mm512_permutex2var_epi8(v[0], low, v[1]);
    const Bytes b = _mm512_permutex2var_epi8(v[0], high, v[1]);
    const Bytes c = _mm512_permutex2var_epi8(v[2], low_turned, v[3]);
    const Bytes d = _mm512_permutex2var_epi8(v[2], high_turned, v[3]);
    v[0] = _mm512_mask_blend_epi64(0xf0, a, c);
    v[1] = turn(_mm512_mask_blend_epi64(0xf0, c, a));
    v[2] = _mm512_mask_blend_epi64(0xf0, b, d);
    v[3] = turn(_mm512_mask_blend_epi64(0xf0, d, b));
  }
  [[gnu::always_inline]] static Bytes turn(Bytes v) { return _mm512_shuffle_i64x2(v, v, 0x4e); }
};

/// Of which of 32 values byte i of two joined planes is: the second half of each lane goes 16 values farther.
constexpr size_t joined_value_4(size_t i) { return i / 16 * 4 + i % 8 / 2 + i % 16 / 8 * 16; }
template <>
struct ToValues<4> {
  static constexpr PairOrder kFirst{[](size_t i) { return joined_value_4(i) + i % 2 * 64; }};
  Bytes first = load(kFirst);
  static constexpr PairOrder kSecond{[](size_t i) { return 32 + joined_value_4(i) + i % 2 * 64; }};
  Bytes second = load(kSecond);
  [[gnu::always_inline]] void operator()(Bytes (&v)[4]) const {
    const Bytes a = _mm512_permutex2var_epi8(v[0], first, v[1]);
    const Bytes b = _mm512_permutex2var_epi8(v[2], first, v[3]);
    const Bytes c = _mm512_permutex2var_epi8(v[0], second, v[1]);
    const Bytes d = _mm512_permutex2var_epi8(v[2], second, v[3]);
    v[0] = _mm512_unpacklo_epi16(a, b);
    v[1] = _mm512_unpackhi_epi16(a, b);
    v[2] = _mm512_unpacklo_epi16(c, d);
    v[3] = _mm512_unpackhi_epi16(c, d);
  }
};

template <>
struct ToPlanes<8> {
  // Of two vectors, their eight values of each of four planes.
  static constexpr PairOrder kLow{[](size_t i) { return i / 16 + i % 8 * 8 + i % 16 / 8 * 64; }};
  Bytes low = load(kLow);
  static constexpr PairOrder kHigh{[](size_t i) { return i / 16 + i % 8 * 8 + i % 16 / 8 * 64 + 4; }};
  Bytes high = load(kHigh);
  Bytes even = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13);
  Bytes odd = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
  [[gnu::always_inline]] void operator()(Bytes (&v)[8]) const {
    Bytes lanes[8];  // four planes of 16 values each
#pragma GCC unroll 8
    for (size_t i = 0; i < 4; ++i) {
      lanes[i] = _mm512_permutex2var_epi8(v[2 * i], low, v[2 * i + 1]);
      lanes[4 + i] = _mm512_permutex2var_epi8(v[2 * i], high, v[2 * i + 1]);
    }
#pragma GCC unroll 8
    for (size_t half = 0; half < 2; ++half) {
      const Bytes* const four = lanes + 4 * half;
      const Bytes a = _mm512_permutex2var_epi64(four[0], even, four[1]);  // 32 values of planes 0 and 2
      const Bytes b = _mm512_permutex2var_epi64(four[0], odd, four[1]);   // of 1 and 3
      const Bytes c = _mm512_permutex2var_epi64(four[2], even, four[3]);
      const Bytes d = _mm512_permutex2var_epi64(four[2], odd, four[3]);
      v[4 * half] = _mm512_shuffle_i64x2(a, c, 0x44);
      v[4 * half + 1] = _mm512_shuffle_i64x2(b, d, 0x44);
      v[4 * half + 2] = _mm512_shuffle_i64x2(a, c, 0xee);
      v[4 * half + 3] = _mm512_shuffle_i64x2(b, d, 0xee);
    }
  }
};
/// The same for eight planes, which are unpacked twice.
constexpr size_t joined_value_8(size_t i) {
  return i / 16 * 2 + i % 4 / 2 + i % 8 / 4 * 8 + i % 16 / 8 * 16;
}
template <>
struct ToValues<8> {
  static constexpr PairOrder kFirst{[](size_t i) { return joined_value_8(i) + i % 2 * 64; }};
  Bytes first = load(kFirst);
  static constexpr PairOrder kSecond{[](size_t i) { return 32 + joined_value_8(i) + i % 2 * 64; }};
  Bytes second = load(kSecond);
  [[gnu::always_inline]] void operator()(Bytes (&v)[8]) const {
    Bytes pairs[8];
#pragma GCC unroll 8
    for (size_t i = 0; i < 4; ++i) {
      pairs[i] = _mm512_permutex2var_epi8(v[2 * i], first, v[2 * i + 1]);
      pairs[4 + i] = _mm512_permutex2var_epi8(v[2 * i], second, v[2 * i + 1]);
    }
#pragma GCC unroll 8
    for (size_t half = 0; half < 2; ++half) {
      const Bytes* const p = pairs + 4 * half;
      const Bytes a = _mm512_unpacklo_epi16(p[0], p[1]);
      const Bytes b = _mm512_unpacklo_epi16(p[2], p[3]);
      const Bytes c = _mm512_unpackhi_epi16(p[0], p[1]);
      const Bytes d = _mm512_unpackhi_epi16(p[2], p[3]);
      v[4 * half] = _mm512_unpacklo_epi32(a, b);
      v[4 * half + 1] = _mm512_unpackhi_epi32(a, b);
      v[4 * half + 2] = _mm512_unpacklo_epi32(c, d);
      v[4 * half + 3] = _mm512_unpackhi_epi32(c, d);
    }
  }
};

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

template <size_t kSize>
void split_all(const uint8_t* src, size_t count, unsigned rotation, uint8_t* const* planes) {
  const ToPlanes<kSize> to_planes;
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
    to_planes(v);
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
    v[i] = rotate_left<kSize>(load_some(src + 64 * i, part_mask(rest, i)), by);
  to_planes(v);
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

/// A top plane that is there, byte by byte.
class PlaneBytes {
 public:
  explicit PlaneBytes(const uint8_t* bytes) : bytes_(bytes) {}
  [[gnu::always_inline]] Bytes next() {
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
  using AnyLevelDecoder::AnyLevelDecoder;
  [[gnu::always_inline]] Bytes next() { return decode(~uint64_t{0}); }
  [[gnu::always_inline]] Bytes last(uint64_t valid) { return decode(valid); }
};

template <size_t kSize, class Sink, class Top>
[[gnu::always_inline]] inline void merge_to(const uint8_t* const* planes, Top& top, size_t count,
                                            unsigned rotation, const Output& output) {
  const ToValues<kSize> to_values;
  Sink sink(output);
  const Bytes by = broadcast<kSize>(rotation % (8 * kSize));
  Bytes v[kSize];
  size_t at = 0;
  for (; at + 64 <= count; at += 64) {
    v[kSize - 1] = top.next();
#pragma GCC unroll 8
    for (size_t p = 0; p < kSize - 1; ++p) v[p] = load(planes[p] + at);
    to_values(v);
#pragma GCC unroll 8
    for (size_t i = 0; i < kSize; ++i) sink.put(rotate_right<kSize>(v[i], by));
  }
  uint8_t* const dst = sink.finish();
  if (at == count) return;
  v[kSize - 1] = top.last(low_bits(count - at));
#pragma GCC unroll 8
  for (size_t p = 0; p < kSize - 1; ++p) v[p] = load_some(planes[p] + at, low_bits(count - at));
  to_values(v);
  const size_t rest = (count - at) * kSize;
#pragma GCC unroll 8
  for (size_t i = 0; i < kSize; ++i)
    store_some(dst + 64 * i, part_mask(rest, i), rotate_right<kSize>(v[i], by));
}

template <size_t kSize, class SumOfThem, class Top>
[[gnu::always_inline]] inline void merge(const uint8_t* const* planes, Top& top, size_t count,
                                         unsigned rotation, const Output& output) {
  if (output.sum != nullptr)
    merge_to<kSize, SumOfThem>(planes, top, count, rotation, output);
  else if (output.streams)
    merge_to<kSize, StreamSink>(planes, top, count, rotation, output);
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
