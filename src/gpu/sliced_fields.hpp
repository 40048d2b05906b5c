// The fields of a thread's values by bits, and what is computed with them that way: a field less the base of a window is a
// subtraction bit by bit, of which each step does 32. Used by the encoder and the decoder of 8-bit types.
#pragma once

#include "gpu/encode_plan.hpp"
#include "gpu/sliced_values.hpp"

namespace uzip::gpu {

/// The rank of the first set bit of each part; the others follow.
struct SlicedRanks {
  uint32_t first[kSlicedParts];
  uint32_t total;
};
UZIP_DEVICE SlicedRanks rank_sliced(const SlicedMask& mask, ScanSums& sums, unsigned turn) {
  // Two sums in one word: each is at most 32 * 32.
  static_assert(kSlicedParts == 2);
  const uint32_t counts = count_bits(mask.part[0]) | count_bits(mask.part[1]) << 16;
  uint32_t sum = counts;
  UZIP_UNROLL
  for (unsigned distance = 1; distance < kGroupLanes; distance *= 2)
    sum = add_from_below(sum, distance);
  const uint32_t last = shuffle(sum, kGroupLanes - 1);
  const uint32_t first_part = last & 0xffffu;
  SlicedRanks ranks;
  const uint32_t group = before_group(first_part + (last >> 16), sums, turn, &ranks.total);
  const uint32_t before = sum - counts;
  ranks.first[0] = group + (before & 0xffffu);
  ranks.first[1] = group + first_part + (before >> 16);
  return ranks;
}

template <class Format, bool kWhole>
class SlicedFields {
 public:
  using Ranks = SlicedRanks;
  /// Of all fields, by bits.
  struct Codes {
    uint32_t bit[kSlicedParts][kMostWidth];
  };

  /// Each thread has its values of the tile's `values` at `src`.
  UZIP_DEVICE SlicedFields(const Slices (&slices)[kSlicedParts], unsigned values,
                           const uint8_t* src)
      : slices_(slices), values_(values), src_(src) {}

  /// Of the tile.
  UZIP_DEVICE unsigned values() const { return kWhole ? Format::kTileValues : values_; }

  /// Returns which fields are escapes.
  UZIP_DEVICE SlicedMask code(uint32_t width, uint32_t base, Codes& codes) const {
    SlicedMask escaped;
    UZIP_UNROLL
    for (unsigned p = 0; p < kSlicedParts; ++p)
      escaped.part[p] = code_part(p, width, base, codes.bit[p]);
    return escaped;
  }

  UZIP_DEVICE Ranks rank(const SlicedMask& escaped, ScanSums& sums, unsigned turn) const {
    return rank_sliced(escaped, sums, turn);
  }

  UZIP_DEVICE void store_codes(const Codes& codes, uint32_t width, uint8_t* words) const {
    UZIP_UNROLL
    for (unsigned p = 0; p < kSlicedParts; ++p)
      UZIP_UNROLL
      for (unsigned b = 0; b < kMostWidth; ++b)
        if (b < width) store_slice(words, first(p), width, b, codes.bit[p][b], values());
  }

  /// The escaped fields, in the order of the values.
  UZIP_DEVICE void list_few(const SlicedMask& escaped, const Ranks& ranks, uint8_t* list) const {
    UZIP_UNROLL
    for (unsigned p = 0; p < kSlicedParts; ++p) {
      uint8_t* next = list + ranks.first[p];
      for (uint32_t mask = escaped.part[p]; mask != 0; mask &= mask - 1) {
        const uint32_t lowest = mask & (0u - mask);
        uint32_t one = 0;
        UZIP_UNROLL
        for (unsigned b = 0; b < Format::kFieldBits; ++b)
          if ((field(p, b) & lowest) != 0) one |= 1u << b;
        *next++ = static_cast<uint8_t>(one);
      }
    }
  }
  /// The same without branches, from the values, which are read again.
  UZIP_DEVICE void list_many(const SlicedMask& escaped, const Ranks& ranks, uint8_t* list) const {
    if constexpr (kWhole) {
      UZIP_UNROLL
      for (unsigned p = 0; p < kSlicedParts; ++p)
        list_part(p, escaped.part[p], list + ranks.first[p]);
    } else {
      list_few(escaped, ranks, list);
    }
  }

  /// The fields as they are.
  UZIP_DEVICE void store(uint8_t* dst) const {
    UZIP_UNROLL
    for (unsigned p = 0; p < kSlicedParts; ++p)
      UZIP_UNROLL
      for (unsigned b = 0; b < Format::kFieldBits; ++b)
        store_slice(dst, first(p), Format::kFieldBits, b, field(p, b) & valid(p), values());
  }

 private:
  UZIP_DEVICE static unsigned first(unsigned part) { return first_sliced(thread_index(), part); }
  UZIP_DEVICE uint32_t valid(unsigned part) const {
    return kWhole ? ~0u : sliced_valid(first(part), values_);
  }
  UZIP_DEVICE uint32_t field(unsigned part, unsigned bit) const {
    return slices_[part].bit[Format::kFieldShift + bit];
  }

  UZIP_DEVICE uint32_t code_part(unsigned part, uint32_t width, uint32_t base,
                                 uint32_t (&bits)[kMostWidth]) const {
    uint32_t borrow = 0;
    uint32_t above = 0;  // fields that are not in the window
    UZIP_UNROLL
    for (unsigned b = 0; b < kMostWidth; ++b) bits[b] = 0;
    UZIP_UNROLL
    for (unsigned b = 0; b < Format::kFieldBits; ++b) {
      const uint32_t minus = bit_for_all(base, b);
      const uint32_t own = field(part, b);
      const uint32_t difference = own ^ minus ^ borrow;
      borrow = (~own & (minus | borrow)) | (minus & borrow);
      if (b < kMostWidth) bits[b < kMostWidth ? b : 0] = difference;
      if (b >= width) above |= difference;
    }
    const uint32_t exist = valid(part);
    uint32_t escaped = exist;
    UZIP_UNROLL
    for (unsigned b = 0; b < kMostWidth; ++b) {
      bits[b] = (bits[b] | above) & exist;
      if (b < width) escaped &= bits[b];
    }
    return escaped;
  }

  UZIP_DEVICE void list_part(unsigned part, uint32_t escaped, uint8_t* next) const {
    Words<1> own[kSegments];
    load_sliced(src_ + first(part), own);
    UZIP_UNROLL
    for (unsigned i = 0; i < 2 * kSegments; ++i) {
      const uint32_t fields = own[i / 2].word[i % 2] >> (Format::kFieldShift - 1) &
                              repeat_byte((1u << Format::kFieldBits) - 1);
      UZIP_UNROLL
      for (unsigned k = 0; k < 4; ++k)
        if ((escaped >> (4 * i + k) & 1u) != 0) *next++ = static_cast<uint8_t>(fields >> (8 * k));
    }
  }

  const Slices (&slices_)[kSlicedParts];
  unsigned values_;
  const uint8_t* src_;
};

}  // namespace uzip::gpu
