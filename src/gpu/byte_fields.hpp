// The fields of a thread's values as bytes, four in a word: codes of two of them at a time, and bits gathered by
// multiplication. Used by the encoder of types of 16 bits and more.
#pragma once

#include "gpu/encode_plan.hpp"
#include "gpu/value_planes.hpp"

namespace uzip::gpu {

/// Eight bits of a sequence of `count` things that is stored in `width` words for each 64; `first`
/// is the first thing's index.
UZIP_DEVICE void put_bits(uint8_t* words, unsigned first, unsigned width, unsigned bit,
                          uint32_t bits, unsigned count) {
  if (first / 64 * 64 < count)
    words[(first / 64 * width + bit) * 8 + first % 64 / 8] = static_cast<uint8_t>(bits);
}

template <class Format, bool kWhole>
class ByteFields {
 public:
  using Ranks = SegmentRanks;
  /// Of all fields: byte i of bit[b] for segment i.
  struct Codes {
    uint32_t bit[kMostWidth];
  };

  /// Each thread has its fields of the tile's values at `src`.
  UZIP_DEVICE ByteFields(const uint32_t (&fields)[kSegments][2],
                         const ThreadSegments<Format, kWhole>& segments, const uint8_t* src)
      : fields_(fields), segments_(segments), src_(src) {}

  /// Of the tile.
  UZIP_DEVICE unsigned values() const { return segments_.values(); }

  /// Returns which fields are escapes.
  UZIP_DEVICE uint32_t code(uint32_t width, uint32_t base, Codes& codes) const {
    UZIP_UNROLL
    for (unsigned b = 0; b < kMostWidth; ++b) codes.bit[b] = 0;
    switch (width) {
      case 1: return code_of<1>(base, codes.bit);
      case 2: return code_of<2>(base, codes.bit);
      case 3: return code_of<3>(base, codes.bit);
      default: return code_of<4>(base, codes.bit);
    }
  }

  UZIP_DEVICE Ranks rank(uint32_t escaped, ScanSums& sums, unsigned turn) const {
    return rank_segments(escaped, sums, turn);
  }

  UZIP_DEVICE void store_codes(const Codes& codes, uint32_t width, uint8_t* words) const {
    UZIP_UNROLL
    for (unsigned b = 0; b < kMostWidth; ++b) {
      if (b >= width) continue;
      UZIP_UNROLL
      for (unsigned i = 0; i < kSegments; ++i)
        put_bits(words, segments_.first_of(i), width, b, byte_of(codes.bit[b], i), values());
    }
  }

  /// The escaped fields, in the order of the values. A thread has one or two of 32: it loads them
  /// again, because registers can't be indexed.
  UZIP_DEVICE void list_few(uint32_t escaped, const Ranks& ranks, uint8_t* list) const {
    const ThreadRanks by_number(escaped, ranks);
    uint32_t number = 0;
    for (uint32_t mask = escaped; mask != 0; mask &= mask - 1, ++number) {
      const unsigned bit = lowest_bit(mask);
      list[by_number.rank(bit / 8, number)] =
          static_cast<uint8_t>(load_field(segments_.first_of(bit / 8) + bit % 8));
    }
  }

  /// The same without branches.
  UZIP_DEVICE void list_many(uint32_t escaped, const Ranks& ranks, uint8_t* list) const {
    UZIP_UNROLL
    for (unsigned i = 0; i < kSegments; ++i) {
      uint32_t rank = ranks.first[i];
      UZIP_UNROLL
      for (unsigned k = 0; k < kSegmentValues; ++k) {
        if ((escaped >> (8 * i + k) & 1u) == 0) continue;
        list[rank++] = static_cast<uint8_t>(fields_[i][k / 4] >> (8 * (k % 4)));
      }
    }
  }

  /// The fields as they are.
  UZIP_DEVICE void store(uint8_t* dst) const {
    UZIP_UNROLL
    for (unsigned i = 0; i < kSegments; ++i) {
      const unsigned first = segments_.first_of(i);
      const uint32_t exists = segments_.valid(first);
      if constexpr (Format::kFieldShift == 0) {
        if (exists == 0) continue;
        const uint32_t low = scatter_bits(exists & 15u) * 0xffu;
        const uint32_t high = scatter_bits(exists >> 4) * 0xffu;
        *reinterpret_cast<uint2*>(dst + first) =
            make_uint2(fields_[i][0] & low, fields_[i][1] & high);
      } else {
        UZIP_UNROLL
        for (unsigned b = 0; b < Format::kFieldBits; ++b)
          put_bits(dst, first, Format::kFieldBits, b,
                   (gather_bits(fields_[i][0] >> b) | gather_bits(fields_[i][1] >> b) << 4) & exists,
                   values());
      }
    }
  }

 private:
  /// Codes of four fields: what is not in the window becomes the last code. A field is in the upper
  /// byte of a half, where it is compared whatever is in the byte below.
  template <unsigned kWidth>
  UZIP_DEVICE static uint32_t codes_of(uint32_t fields, uint32_t minus_base) {
    constexpr uint32_t kMost = ((1u << (kWidth + 8)) - 1) * 0x00010001u;
    const uint32_t even = add_up_to_halves(fields << 8, minus_base, kMost);
    const uint32_t odd = add_up_to_halves(fields, minus_base, kMost);
    return byte_permute(even, odd, 0x7351);
  }

  template <unsigned kWidth>
  UZIP_DEVICE uint32_t code_of(uint32_t base, uint32_t (&bits)[kMostWidth]) const {
    const uint32_t minus_base = ((0u - base) & 0xffu) * 0x01000100u;
    uint32_t pairs[kSegments];
    UZIP_UNROLL
    for (unsigned i = 0; i < kSegments; ++i)
      pairs[i] = pair_nibbles(codes_of<kWidth>(fields_[i][0], minus_base),
                              codes_of<kWidth>(fields_[i][1], minus_base));
    uint32_t exist = ~0u;
    if constexpr (!kWhole) {
      exist = 0;
      UZIP_UNROLL
      for (unsigned i = 0; i < kSegments; ++i) exist |= segments_.valid(segments_.first_of(i)) << (8 * i);
    }
    uint32_t escaped = exist;
    UZIP_UNROLL
    for (unsigned b = 0; b < kWidth; ++b) {
      bits[b] = exist & highest_bytes(gather_paired_bits(pairs[0], b),
                                      gather_paired_bits(pairs[1], b),
                                      gather_paired_bits(pairs[2], b),
                                      gather_paired_bits(pairs[3], b));
      escaped &= bits[b];
    }
    return escaped;
  }

  /// The field of a value, from its last two bytes in memory.
  UZIP_DEVICE uint32_t load_field(unsigned index) const {
    const uint8_t* const top = src_ + index * Format::kSize + (Format::kSize - 2);
    const uint32_t value = kWhole ? *reinterpret_cast<const uint16_t*>(top)
                                  : top[0] | static_cast<uint32_t>(top[1]) << 8;
    return (value >> 7 & 0xffu) >> Format::kFieldShift;
  }

  const uint32_t (&fields_)[kSegments][2];
  const ThreadSegments<Format, kWhole>& segments_;
  const uint8_t* src_;
};

}  // namespace uzip::gpu
