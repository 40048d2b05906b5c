// The fields of a thread's 32 values by bits, and what is computed with them that way: a field less the base of a window is a
// subtraction bit by bit, of which each step does all 32. Used by the encoder and the decoder of 8-bit types.
#pragma once

#include "gpu/encode_plan.hpp"
#include "gpu/sliced_values.hpp"

namespace uzip::gpu {

/// The rank of a thread's first set bit; the others follow.
struct SlicedRanks {
  uint32_t first;
  uint32_t total;
};
UZIP_DEVICE SlicedRanks rank_sliced(uint32_t mask, ScanSums& sums, unsigned turn) {
  SlicedRanks ranks;
  ranks.first = rank_threads(count_bits(mask), sums, turn, &ranks.total);
  return ranks;
}

template <class Format, bool kWhole>
class SlicedFields {
 public:
  using Ranks = SlicedRanks;

  /// Each thread has its values, from `first` on, of the tile's `values` at `src`.
  UZIP_DEVICE SlicedFields(const Slices& slices, unsigned first, unsigned values,
                           const uint8_t* src)
      : slices_(slices), first_(first), values_(values), src_(src) {}

  /// Codes of all fields by bits; returns which are escapes.
  UZIP_DEVICE uint32_t code(uint32_t width, uint32_t base, uint32_t (&bits)[kMostWidth]) const {
    uint32_t borrow = 0;
    uint32_t above = 0;  // fields that are not in the window
    UZIP_UNROLL
    for (unsigned b = 0; b < kMostWidth; ++b) bits[b] = 0;
    UZIP_UNROLL
    for (unsigned b = 0; b < Format::kFieldBits; ++b) {
      const uint32_t minus = bit_for_all(base, b);
      const uint32_t difference = field(b) ^ minus ^ borrow;
      borrow = (~field(b) & (minus | borrow)) | (minus & borrow);
      if (b < kMostWidth) bits[b < kMostWidth ? b : 0] = difference;
      if (b >= width) above |= difference;
    }
    const uint32_t exist = valid();
    uint32_t escaped = exist;
    UZIP_UNROLL
    for (unsigned b = 0; b < kMostWidth; ++b) {
      bits[b] = (bits[b] | above) & exist;
      if (b < width) escaped &= bits[b];
    }
    return escaped;
  }

  UZIP_DEVICE Ranks rank(uint32_t escaped, ScanSums& sums, unsigned turn) const {
    return rank_sliced(escaped, sums, turn);
  }

  UZIP_DEVICE void store_codes(const uint32_t (&bits)[kMostWidth], uint32_t width,
                               uint8_t* words) const {
    UZIP_UNROLL
    for (unsigned b = 0; b < kMostWidth; ++b)
      if (b < width) store_slice(words, first_, width, b, bits[b], values());
  }

  /// The escaped fields, in the order of the values.
  UZIP_DEVICE void list_few(uint32_t escaped, const Ranks& ranks, uint8_t* list) const {
    uint8_t* next = list + ranks.first;
    for (uint32_t mask = escaped; mask != 0; mask &= mask - 1) {
      const uint32_t lowest = mask & (0u - mask);
      uint32_t one = 0;
      UZIP_UNROLL
      for (unsigned b = 0; b < Format::kFieldBits; ++b)
        if ((field(b) & lowest) != 0) one |= 1u << b;
      *next++ = static_cast<uint8_t>(one);
    }
  }
  /// The same without branches, from the values, which are read again.
  UZIP_DEVICE void list_many(uint32_t escaped, const Ranks& ranks, uint8_t* list) const {
    if constexpr (kWhole) {
      Words<1> own[kSegments];
      load_sliced(src_ + first_, own);
      uint8_t* next = list + ranks.first;
      UZIP_UNROLL
      for (unsigned i = 0; i < 2 * kSegments; ++i) {
        const uint32_t fields = own[i / 2].word[i % 2] >> (Format::kFieldShift - 1) &
                                repeat_byte((1u << Format::kFieldBits) - 1);
        UZIP_UNROLL
        for (unsigned k = 0; k < 4; ++k)
          if ((escaped >> (4 * i + k) & 1u) != 0) *next++ = static_cast<uint8_t>(fields >> (8 * k));
      }
    } else {
      list_few(escaped, ranks, list);
    }
  }

  /// The fields as they are.
  UZIP_DEVICE void store(uint8_t* dst) const {
    UZIP_UNROLL
    for (unsigned b = 0; b < Format::kFieldBits; ++b)
      store_slice(dst, first_, Format::kFieldBits, b, field(b) & valid(), values());
  }

 private:
  UZIP_DEVICE unsigned values() const { return kWhole ? kTileValues : values_; }
  UZIP_DEVICE uint32_t valid() const { return kWhole ? ~0u : sliced_valid(first_, values_); }
  UZIP_DEVICE uint32_t field(unsigned bit) const { return slices_.bit[Format::kFieldShift + bit]; }

  const Slices& slices_;
  unsigned first_;
  unsigned values_;
  const uint8_t* src_;
};

}  // namespace uzip::gpu
