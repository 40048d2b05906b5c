// What the AVX-512 kernel files share. Included by them only: everything here is compiled for
// AVX-512 and has internal linkage, so that no other object can pick it up.
#pragma once

// Some compilers' intrinsics start from an undefined register, and then warn of it.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include "codec/cpu/kernels.hpp"

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace uzip {
namespace {

using Bytes = __m512i;

[[gnu::always_inline]] inline Bytes load(const uint8_t* src) { return _mm512_loadu_si512(src); }
[[gnu::always_inline]] inline void store(uint8_t* dst, Bytes v) { _mm512_storeu_si512(dst, v); }
/// Whether what is read is asked for from far ahead, too: Intel's cores lose by it.
[[gnu::always_inline]] inline bool fetches_far() { return !__builtin_cpu_is("intel"); }
/// Asks for a line that will be read.
[[gnu::always_inline]] inline void fetch_ahead(const uint8_t* src, bool far) {
  if (far) _mm_prefetch(src + kFarAhead, _MM_HINT_T1);
  _mm_prefetch(src + kNearAhead, _MM_HINT_T0);
}
/// Asks for a line that will be written.
[[gnu::always_inline]] inline void prepare_ahead(const uint8_t* dst) {
  __builtin_prefetch(dst + kWriteAhead, 1, 3);
}
[[gnu::always_inline]] inline Bytes load_some(const uint8_t* src, __mmask64 bytes) {
  return _mm512_maskz_loadu_epi8(bytes, src);
}
[[gnu::always_inline]] inline void store_some(uint8_t* dst, __mmask64 bytes, Bytes v) {
  _mm512_mask_storeu_epi8(dst, bytes, v);
}
/// The lowest `count` bits; count <= 64.
[[gnu::always_inline]] inline uint64_t low_bits(size_t count) {
  return _bzhi_u64(~uint64_t{0}, static_cast<unsigned>(count));
}
/// As much of a vector as lies within `bytes` bytes, > 0. Only the last one is loaded and stored
/// through a mask, which takes longer.
[[gnu::always_inline]] inline Bytes load_first(const uint8_t* src, size_t bytes) {
  return bytes >= 64 ? load(src) : load_some(src, low_bits(bytes));
}
[[gnu::always_inline]] inline void store_first(uint8_t* dst, size_t bytes, Bytes v) {
  if (bytes >= 64)
    store(dst, v);
  else
    store_some(dst, low_bits(bytes), v);
}
/// The first W words of 8 bytes, without a mask.
template <unsigned W>
[[gnu::always_inline]] inline void store_words(uint8_t* dst, Bytes v) {
  static_assert(W >= 1 && W <= 8);
  constexpr size_t kDone = W / 4 * 32;  // bytes
  if constexpr (W == 8) store(dst, v);
  if constexpr (W >= 4 && W < 8)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(dst), _mm512_castsi512_si256(v));
  if constexpr (W % 4 >= 2)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(dst + kDone),
                     _mm512_extracti32x4_epi32(v, kDone / 16));
  if constexpr (W % 4 % 2 == 1)
    _mm_storeu_si64(dst + 8 * (W - 1), _mm512_extracti32x4_epi32(v, (W - 1) / 2));
}
/// Bytes of vector `index` that lie within `bytes` bytes.
[[gnu::always_inline]] inline uint64_t part_mask(size_t bytes, size_t index) {
  const size_t begin = 64 * index;
  return bytes >= begin + 64 ? ~uint64_t{0} : bytes <= begin ? 0 : low_bits(bytes - begin);
}
[[gnu::always_inline]] inline size_t popcount(uint64_t word) {
  return static_cast<size_t>(_mm_popcnt_u64(word));
}

/// 64 values of kSize bytes between kSize vectors of values and the vectors of their planes. The values of vector i are
/// rotated by i bytes: byte p of them stands at place p - i (modulo kSize). Byte p of vector i and byte p + 1 of vector
/// i + 1 then have the same place, and vectors are exchanged for a part of the places, that is by blends, until each has
/// one plane, whose bytes a single shuffle puts in order.
template <size_t kSize>
class Places {
  static constexpr size_t kValues = 64 / kSize;  ///< in a vector
  struct Orders {
    alignas(64) uint8_t to_plane[kSize][64];
    alignas(64) uint8_t from_plane[kSize][64];
  };
  static constexpr Orders make_orders() {
    Orders orders{};
    for (size_t p = 0; p < kSize; ++p) {
      for (size_t value = 0; value < 64; ++value) {
        const size_t at = value % kValues * kSize + (p + kSize - value / kValues) % kSize;
        orders.to_plane[p][value] = static_cast<uint8_t>(at);
        orders.from_plane[p][at] = static_cast<uint8_t>(value);
      }
    }
    return orders;
  }
  static constexpr Orders kOrders = make_orders();

  /// The places whose number has the bit of `step`.
  static constexpr __mmask64 moving_places(size_t step) {
    __mmask64 places = 0;
    for (size_t at = 0; at < 64; ++at)
      if ((at % kSize & step) != 0) places |= __mmask64{1} << at;
    return places;
  }
  /// What stands at place q goes q vectors up, or down.
  template <bool kUp, size_t kStep = 1>
  [[gnu::always_inline]] static void exchange(Bytes (&v)[kSize]) {
    if constexpr (kStep < kSize) {
      constexpr __mmask64 kMoving = moving_places(kStep);
      Bytes from[kSize];
#pragma GCC unroll 8
      for (size_t i = 0; i < kSize; ++i) from[i] = v[i];
#pragma GCC unroll 8
      for (size_t i = 0; i < kSize; ++i)
        v[i] = _mm512_mask_blend_epi8(kMoving, from[i],
                                      from[(kUp ? i + kSize - kStep : i + kStep) % kSize]);
      exchange<kUp, 2 * kStep>(v);
    }
  }

 public:
  [[gnu::always_inline]] static void to_planes(Bytes (&v)[kSize]) {
    exchange<true>(v);
#pragma GCC unroll 8
    for (size_t p = 0; p < kSize; ++p)
      v[p] = _mm512_permutexvar_epi8(_mm512_load_si512(kOrders.to_plane[p]), v[p]);
  }
  [[gnu::always_inline]] static void to_values(Bytes (&v)[kSize]) {
#pragma GCC unroll 8
    for (size_t p = 0; p < kSize; ++p)
      v[p] = _mm512_permutexvar_epi8(_mm512_load_si512(kOrders.from_plane[p]), v[p]);
    exchange<false>(v);
  }
};

/// Where vectors go one after another: to memory, as usual,
class StoreSink {
 public:
  explicit StoreSink(const Output& output) : dst_(output.values) {}
  [[gnu::always_inline]] void put(Bytes v) {
    prepare_ahead(dst_);
    store(dst_, v);
    dst_ += 64;
  }
  uint8_t* finish() const { return dst_; }

 private:
  uint8_t* dst_;
};
/// while something else is brought into the cache,
class AheadSink : public StoreSink {
 public:
  explicit AheadSink(const Output& output) : StoreSink(output), ahead_(output.ahead) {}
  /// Whether that is asked for.
  static bool is_for(const Output& output) { return output.ahead != output.values; }
  [[gnu::always_inline]] void put(Bytes v) {
    __builtin_prefetch(ahead_, 1, 2);
    ahead_ += 64;
    StoreSink::put(v);
  }

 private:
  const uint8_t* ahead_;
};
/// or past the caches, in whole lines wherever the values begin.
class StreamSink {
 public:
  explicit StreamSink(const Output& output) {
    const auto address = reinterpret_cast<uintptr_t>(output.values);
    before_ = address % 64;
    line_ = output.values - before_;
    const auto from = static_cast<char>(64 - before_);
    alignas(64) uint8_t count[64];
    for (unsigned i = 0; i < 64; ++i) count[i] = static_cast<uint8_t>(i);
    index_ = _mm512_add_epi8(load(count), _mm512_set1_epi8(from));
  }
  [[gnu::always_inline]] void put(Bytes v) {
    if (before_ == 0) [[likely]] {
      _mm512_stream_si512(reinterpret_cast<__m512i*>(line_), v);
    } else {
      const Bytes line = _mm512_permutex2var_epi8(last_, index_, v);
      if (started_) [[likely]]
        _mm512_stream_si512(reinterpret_cast<__m512i*>(line_), line);
      else
        store_some(line_, ~low_bits(before_), line);
      started_ = true;
      last_ = v;
    }
    line_ += 64;
  }
  /// Returns where the next value goes.
  uint8_t* finish() const {
    if (started_)
      store_some(line_, low_bits(before_), _mm512_permutex2var_epi8(last_, index_, last_));
    return line_ + before_;
  }

 private:
  uint8_t* line_;
  size_t before_;  ///< bytes of a line before the values
  bool started_ = false;
  Bytes index_;
  Bytes last_ = _mm512_setzero_si512();
};

/// Bit i in byte i of each 8 bytes.
[[gnu::always_inline]] inline Bytes unit_bytes() {
  return _mm512_set1_epi64(static_cast<int64_t>(0x8040201008040201u));
}
/// In each 8 bytes, read as an 8 x 8 matrix of bits: byte i of the result collects bit i of the
/// eight bytes, that of the last byte lowest.
[[gnu::always_inline]] inline Bytes transpose_reversed(Bytes v) {
  return _mm512_gf2p8affine_epi64_epi8(unit_bytes(), v, 0);
}
/// The same with that of the first byte lowest.
[[gnu::always_inline]] inline Bytes transpose_bits(Bytes v) {
  const Bytes reversal = _mm512_set1_epi64(static_cast<int64_t>(0x8040201008040201u));
  return _mm512_gf2p8affine_epi64_epi8(transpose_reversed(v), reversal, 0);
}

}  // namespace

// The tables' rows, by file.
void avx512_split_1(const uint8_t* src, size_t count, unsigned rotation, uint8_t* const* planes);
void avx512_split_2(const uint8_t* src, size_t count, unsigned rotation, uint8_t* const* planes);
void avx512_split_4(const uint8_t* src, size_t count, unsigned rotation, uint8_t* const* planes);
void avx512_split_8(const uint8_t* src, size_t count, unsigned rotation, uint8_t* const* planes);
void avx512_merge_1(const uint8_t* const* planes, size_t count, unsigned rotation,
                    const Output& dst);
void avx512_merge_2(const uint8_t* const* planes, size_t count, unsigned rotation,
                    const Output& dst);
void avx512_merge_4(const uint8_t* const* planes, size_t count, unsigned rotation,
                    const Output& dst);
void avx512_merge_8(const uint8_t* const* planes, size_t count, unsigned rotation,
                    const Output& dst);
size_t avx512_merge_level_4(const uint8_t* const* planes, const LevelSource& top, size_t count,
                            unsigned rotation, const Output& dst);
size_t avx512_merge_level_8(const uint8_t* const* planes, const LevelSource& top, size_t count,
                            unsigned rotation, const Output& dst);
void avx512_delta_4(const uint8_t* src, size_t count, uint64_t base, uint8_t* dst);
void avx512_delta_8(const uint8_t* src, size_t count, uint64_t base, uint8_t* dst);
uint64_t avx512_undelta_4(const uint8_t* src, size_t count, uint64_t base, const Output& dst);
uint64_t avx512_undelta_8(const uint8_t* src, size_t count, uint64_t base, const Output& dst);
size_t avx512_remove_zeros_1(const uint8_t* src, size_t count, uint8_t* dst, uint8_t* kept,
                             uint8_t* signs);
size_t avx512_remove_zeros_2(const uint8_t* src, size_t count, uint8_t* dst, uint8_t* kept,
                             uint8_t* signs);
size_t avx512_remove_zeros_4(const uint8_t* src, size_t count, uint8_t* dst, uint8_t* kept,
                             uint8_t* signs);
size_t avx512_remove_zeros_8(const uint8_t* src, size_t count, uint8_t* dst, uint8_t* kept,
                             uint8_t* signs);
void avx512_insert_zeros_1(const uint8_t* src, const uint8_t* kept, const uint8_t* signs,
                           size_t count, uint8_t* dst);
void avx512_insert_zeros_2(const uint8_t* src, const uint8_t* kept, const uint8_t* signs,
                           size_t count, uint8_t* dst);
void avx512_insert_zeros_4(const uint8_t* src, const uint8_t* kept, const uint8_t* signs,
                           size_t count, uint8_t* dst);
void avx512_insert_zeros_8(const uint8_t* src, const uint8_t* kept, const uint8_t* signs,
                           size_t count, uint8_t* dst);

}  // namespace uzip
