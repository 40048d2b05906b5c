// The 8-bit values of a thread by bits: a word for each bit of 32 consecutive values. One instruction then works on a bit of
// all of them, and words of codes and of plain bits are stored as they are. Used by the encoder and the decoder of 8-bit types.
//
// Each group of 32 lanes holds 2048 consecutive values of a tile, in two parts of 1024, 32 for each lane: what a tile costs
// besides its values is then shared by as many bytes as with 16-bit types.
#pragma once

#include "gpu/value_planes.hpp"

namespace uzip::gpu {

/// Whether threads hold the values of a format so.
template <class Format>
inline constexpr bool kIsSliced = Format::kSize == 1;

inline constexpr unsigned kSlicedParts = 2;
static_assert(tile_values(1) == kSlicedParts * kThreads * kThreadValues);

/// Of each value of a thread a bit.
struct SlicedMask {
  uint32_t part[kSlicedParts];
};

/// Word b has bit b of a part of a thread's values, rotated left by one as in FORMAT.md, section 3.3.
struct Slices {
  uint32_t bit[8];
};

namespace detail {

/// Exchanges bit groups: of `a` where the mask has 0 for those of `b` where it has 1.
template <unsigned kShift, uint32_t kMask>
UZIP_DEVICE void exchange_bits(uint32_t& a, uint32_t& b) {
  const uint32_t upper = a >> kShift;
  a = select_bits<kMask>(a, b << kShift);
  b = select_bits<kMask>(upper, b);
}

/// Bit i of byte k of word j becomes bit j of byte k of word i, and the other way.
UZIP_DEVICE void transpose_bits(uint32_t (&words)[8]) {
  UZIP_UNROLL
  for (unsigned i = 0; i < 4; ++i) exchange_bits<4, 0x0f0f0f0fu>(words[i], words[i + 4]);
  UZIP_UNROLL
  for (unsigned i = 0; i < 4; ++i)
    exchange_bits<2, 0x33333333u>(words[i / 2 * 4 + i % 2], words[i / 2 * 4 + i % 2 + 2]);
  UZIP_UNROLL
  for (unsigned i = 0; i < 8; i += 2) exchange_bits<1, 0x55555555u>(words[i], words[i + 1]);
}

}  // namespace detail

UZIP_DEVICE Slices slice_values(const Words<1> (&values)[kSegments]) {
  uint32_t words[8];  // word j has values j, 8 + j, 16 + j and 24 + j
  UZIP_UNROLL
  for (unsigned half = 0; half < 2; ++half)
    detail::transpose_bytes(values[0].word[half], values[1].word[half], values[2].word[half],
                            values[3].word[half], words + 4 * half, 1);
  detail::transpose_bits(words);
  Slices slices;
  UZIP_UNROLL
  for (unsigned b = 0; b < 8; ++b) slices.bit[b] = words[(b + 7) % 8];
  return slices;
}

/// The inverse.
UZIP_DEVICE void join_slices(const Slices& slices, Words<1> (&values)[kSegments]) {
  uint32_t words[8];
  UZIP_UNROLL
  for (unsigned b = 0; b < 8; ++b) words[(b + 7) % 8] = slices.bit[b];
  detail::transpose_bits(words);
  UZIP_UNROLL
  for (unsigned half = 0; half < 2; ++half) {
    const uint32_t* const w = words + 4 * half;
    uint32_t out[kSegments];
    detail::transpose_bytes(w[0], w[1], w[2], w[3], out, 1);
    UZIP_UNROLL
    for (unsigned i = 0; i < kSegments; ++i) values[i].word[half] = out[i];
  }
}

/// A part of a thread's values, from memory that is aligned to 16 bytes.
UZIP_DEVICE void load_sliced(const uint8_t* src, Words<1> (&values)[kSegments]) {
  UZIP_UNROLL
  for (unsigned i = 0; i < kSegments; i += 2) {
    const uint4 v = reinterpret_cast<const uint4*>(src)[i / 2];
    values[i] = {{v.x, v.y}};
    values[i + 1] = {{v.z, v.w}};
  }
}
UZIP_DEVICE void store_sliced(uint8_t* dst, const Words<1> (&values)[kSegments]) {
  UZIP_UNROLL
  for (unsigned i = 0; i < kSegments; i += 2)
    reinterpret_cast<uint4*>(dst)[i / 2] = make_uint4(values[i].word[0], values[i].word[1],
                                                      values[i + 1].word[0], values[i + 1].word[1]);
}

/// The first of a part of a thread's values in the tile.
UZIP_DEVICE unsigned first_sliced(unsigned thread, unsigned part) {
  return (thread / kGroupLanes * kSlicedParts + part) * (kGroupLanes * kThreadValues) +
         thread % kGroupLanes * kThreadValues;
}

/// Which values of a part, from `first` on, exist in a tile of `values`.
UZIP_DEVICE uint32_t sliced_valid(unsigned first, unsigned values) {
  if (first + kThreadValues <= values) return ~0u;
  return first >= values ? 0u : (1u << (values - first)) - 1;
}

/// Where the bits `bit` of a part are in a sequence of things of `width` bits, as FORMAT.md packs them.
UZIP_DEVICE unsigned sliced_at(unsigned first, unsigned width, unsigned bit) {
  return (first / 64 * width + bit) * 8 + first % 64 / 8;
}
UZIP_DEVICE uint32_t load_slice(const uint8_t* words, unsigned first, unsigned width, unsigned bit) {
  return *reinterpret_cast<const uint32_t*>(words + sliced_at(first, width, bit));
}
/// Of a sequence of `count` things; those that don't exist are zeros.
UZIP_DEVICE void store_slice(uint8_t* words, unsigned first, unsigned width, unsigned bit,
                             uint32_t bits, unsigned count) {
  if (first / 64 * 64 < count)
    *reinterpret_cast<uint32_t*>(words + sliced_at(first, width, bit)) = bits;
}

/// A bit of a number, the same for all values.
UZIP_DEVICE uint32_t bit_for_all(uint32_t number, unsigned bit) { return 0u - (number >> bit & 1u); }

}  // namespace uzip::gpu
