// Sixteen bytes at once in whatever registers the processor has, for the portable kernels. What the language cannot say
// (a bit of each byte, a shuffle) is said for processors that have it; like bit_stream.hpp, with internal linkage.
#pragma once

#include "codec/cpu/move_tables.hpp"

#include <cstddef>
#include <cstdint>

#if defined(__SSSE3__)
#include <tmmintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace uzip {
namespace {

using Lanes [[gnu::vector_size(16)]] = uint8_t;

[[gnu::always_inline]] inline Lanes everywhere(uint8_t byte) { return Lanes{} + byte; }
[[gnu::always_inline]] inline Lanes load_lanes(const uint8_t* src) {
  Lanes lanes;
  __builtin_memcpy(&lanes, src, sizeof lanes);
  return lanes;
}
[[gnu::always_inline]] inline void store_lanes(uint8_t* dst, Lanes lanes) {
  __builtin_memcpy(dst, &lanes, sizeof lanes);
}
/// Two words of eight bytes.
[[gnu::always_inline]] inline Lanes load_words(const uint8_t* lower, const uint8_t* upper) {
  using Words [[gnu::vector_size(16)]] = uint64_t;
  Words words;
  __builtin_memcpy(&words, lower, 8);
  uint64_t word;
  __builtin_memcpy(&word, upper, 8);
  words[1] = word;
  return reinterpret_cast<Lanes>(words);
}

/// The highest bit of each of 64 bytes.
[[gnu::always_inline]] inline uint64_t top_bits(const Lanes (&v)[4]) {
#if defined(__SSE2__)
  uint64_t bits = 0;
#pragma GCC unroll 4
  for (unsigned i = 0; i < 4; ++i)
    bits |= uint64_t{static_cast<uint16_t>(_mm_movemask_epi8(reinterpret_cast<__m128i>(v[i])))}
            << (16 * i);
  return bits;
#elif defined(__aarch64__)
  const uint8x16_t units = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  uint8x16_t marked[4];
#pragma GCC unroll 4
  for (unsigned i = 0; i < 4; ++i)
    marked[i] = vandq_u8(vcltzq_s8(reinterpret_cast<int8x16_t>(v[i])), units);
  const uint8x16_t low = vpaddq_u8(marked[0], marked[1]);
  const uint8x16_t high = vpaddq_u8(marked[2], marked[3]);
  const uint8x16_t pairs = vpaddq_u8(low, high);
  return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(pairs, pairs)), 0);
#else
  uint64_t bits = 0;
  for (unsigned i = 0; i < 8; ++i) {
    uint64_t eight;
    __builtin_memcpy(&eight, reinterpret_cast<const uint8_t*>(v) + 8 * i, 8);
    bits |= ((eight >> 7 & 0x0101010101010101u) * 0x0102040810204080u) >> 56 << (8 * i);
  }
  return bits;
#endif
}

/// True where `shuffle` is one instruction: byte i of the result is byte index[i], or 0 when that is 0x80 or more.
#if defined(__SSSE3__)
constexpr bool kShuffles = true;
[[gnu::always_inline]] inline Lanes shuffle(Lanes bytes, Lanes index) {
  return reinterpret_cast<Lanes>(
      _mm_shuffle_epi8(reinterpret_cast<__m128i>(bytes), reinterpret_cast<__m128i>(index)));
}
#elif defined(__aarch64__)
constexpr bool kShuffles = true;
[[gnu::always_inline]] inline Lanes shuffle(Lanes bytes, Lanes index) {
  return reinterpret_cast<Lanes>(vqtbl1q_u8(bytes, index));
}
#else
constexpr bool kShuffles = false;
[[gnu::always_inline]] inline Lanes shuffle(Lanes bytes, Lanes) { return bytes; }  // not called
#endif

/// kMasks[b]: byte i is 0xff where bit i of b is set.
struct MaskTable {
  alignas(64) uint64_t of[256];
};
constexpr MaskTable kMasks = [] {
  MaskTable table{};
  for (unsigned value = 0; value < 256; ++value)
    for (unsigned i = 0; i < 8; ++i)
      if ((value >> i & 1) != 0) table.of[value] |= uint64_t{0xff} << (8 * i);
  return table;
}();

/// Sixteen bytes that are 0xff where the bit of `bits` is set, else 0.
[[gnu::always_inline]] inline Lanes spread(const uint8_t* bits) {
  if constexpr (kShuffles) {
    const Lanes replicate = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1};
    const Lanes units = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    uint16_t two;
    __builtin_memcpy(&two, bits, 2);
    using Pairs [[gnu::vector_size(16)]] = uint16_t;
    const Lanes copies = shuffle(reinterpret_cast<Lanes>(Pairs{} + two), replicate);
    return reinterpret_cast<Lanes>((copies & units) == units);
  }
  return load_words(reinterpret_cast<const uint8_t*>(&kMasks.of[bits[0]]),
                    reinterpret_cast<const uint8_t*>(&kMasks.of[bits[1]]));
}

/// How many bits of a byte are 1: not all processors have an instruction for it.
struct OnesTable {
  alignas(64) uint8_t of[256];
};
constexpr OnesTable kOnesOf = [] {
  OnesTable table{};
  for (unsigned value = 1; value < 256; ++value)
    table.of[value] = static_cast<uint8_t>(table.of[value / 2] + value % 2);
  return table;
}();

/// Appends those of sixteen bytes that the mask marks; only where kShuffles.
[[gnu::always_inline]] inline uint8_t* append_marked(Lanes bytes, unsigned mask, uint8_t* out) {
  const unsigned lower = mask & 0xff;
  const unsigned upper = mask >> 8;
  const Lanes moved =
      shuffle(bytes, load_words(kCompressLower.order[lower], kCompressUpper.order[upper]));
  using Words [[gnu::vector_size(16)]] = uint64_t;
  const auto words = reinterpret_cast<Words>(moved);
  const uint64_t first = words[0];
  const uint64_t second = words[1];
  __builtin_memcpy(out, &first, 8);
  out += kOnesOf.of[lower];
  __builtin_memcpy(out, &second, 8);
  return out + kOnesOf.of[upper];
}
/// The inverse: `bytes` go to the places that the mask marks, 0 to the others.
[[gnu::always_inline]] inline Lanes place_marked(Lanes bytes, unsigned mask) {
  const unsigned lower = mask & 0xff;
  const unsigned upper = mask >> 8;
  return shuffle(bytes, load_words(kExpand.order[lower], kExpand.order[upper]) +
                            load_lanes(kAfter.add[kOnesOf.of[lower]]));
}

}  // namespace
}  // namespace uzip
