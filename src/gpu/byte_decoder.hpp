// Turns codes into the fields of a thread's values, as bytes, and joins these with the plain bytes. Used by the fast decoder
// for types of 16 bits and more.
#pragma once

#include "gpu/fast_block.hpp"
#include "gpu/second_level.hpp"

namespace uzip::gpu {

/// `kWhole`: the block has 8192 values. `kPlainHere`: the plain bytes are in shared memory.
template <class Format, bool kWhole, bool kPlainHere>
class ByteDecoder {
 public:
  static constexpr unsigned kSize = Format::kSize;
  using Ranks = SegmentRanks;
  using Escapes = uint32_t;
  static constexpr unsigned kParts = 1;  ///< of a thread's values, which are joined one after another

  UZIP_DEVICE explicit ByteDecoder(unsigned values)
      : segments_(taken_anew(thread_index()), values) {}

  /// The first of a thread's values of a segment of eight.
  UZIP_DEVICE unsigned first_of(unsigned, unsigned segment) const {
    return segments_.first_of(segment);
  }

  /// Which fields of level 0 are escapes and have others.
  UZIP_DEVICE Escapes find_escapes(const FastBlock& block, const uint8_t* image,
                                   const CodeTables& tables) {
    switch (block.width0()) {
      case 1: return decode_level_0_of<1>(block, image, tables);
      case 2: return decode_level_0_of<2>(block, image, tables);
      case 3: return decode_level_0_of<3>(block, image, tables);
      default: return decode_level_0_of<4>(block, image, tables);
    }
  }

  UZIP_DEVICE Ranks rank(Escapes escaped, ScanSums& sums) const {
    return rank_segments(escaped, sums, 0);
  }

  /// The fields of a part of level 0: find_escapes() has made them.
  UZIP_DEVICE void decode_level_0(unsigned, const FastBlock&, const uint8_t*, Escapes) {}

  /// A thread has one or two of 32: they are put in place in shared memory, because registers
  /// can't be indexed.
  UZIP_DEVICE void put_few(unsigned, Escapes escaped, const Ranks& ranks, const uint8_t* escapes,
                           uint8_t* work) {
    UZIP_UNROLL
    for (unsigned i = 0; i < kSegments; ++i)
      *reinterpret_cast<uint2*>(work + first_of(i)) = make_uint2(fields_[i][0], fields_[i][1]);
    const ThreadRanks by_number(escaped, ranks);
    uint32_t number = 0;
    for (uint32_t mask = escaped; mask != 0; mask &= mask - 1, ++number) {
      const unsigned bit = lowest_bit(mask);
      work[first_of(bit / 8) + bit % 8] = escapes[by_number.rank(bit / 8, number)];
    }
    UZIP_UNROLL
    for (unsigned i = 0; i < kSegments; ++i) {
      const uint2 v = *reinterpret_cast<const uint2*>(work + first_of(i));
      fields_[i][0] = v.x;
      fields_[i][1] = v.y;
    }
  }

  /// The same for any number of them, which are in the list, behind which four bytes may be read.
  UZIP_DEVICE void put_many(unsigned, Escapes escaped, const Ranks& ranks, const uint8_t* list,
                            const CodeTables& tables) {
    UZIP_UNROLL
    for (unsigned i = 0; i < kSegments; ++i) {
      uint32_t rank = ranks.first[i];
      UZIP_UNROLL
      for (unsigned half = 0; half < 2; ++half) {
        const uint32_t expand = tables.expand[escaped >> (8 * i + 4 * half) & 15u];
        fields_[i][half] = pick_bytes(fields_[i][half], word_at(list, rank), expand);
        rank += expand >> 16;
      }
    }
  }

  /// Fields that are stored as they are.
  UZIP_DEVICE void load(unsigned, const uint8_t* at) {
    UZIP_UNROLL
    for (unsigned i = 0; i < kSegments; ++i) {
      const unsigned first = first_of(i);
      if (!kWhole && first >= values()) continue;
      if constexpr (Format::kFieldShift == 0) {
        const uint2 v = *reinterpret_cast<const uint2*>(at + first);
        fields_[i][0] = v.x;
        fields_[i][1] = v.y;
      } else {
        fields_[i][0] = fields_[i][1] = 0;
        UZIP_UNROLL
        for (unsigned b = 0; b != Format::kFieldBits; ++b) {
          const uint32_t byte = at[(first / 64 * Format::kFieldBits + b) * 8 + first % 64 / 8];
          fields_[i][0] |= scatter_bits(byte & 15u) << b;
          fields_[i][1] |= scatter_bits(byte >> 4) << b;
        }
      }
    }
  }

  /// To be called when few escapes have been put in place, and before many are: here it has nothing to do.
  UZIP_DEVICE void prepare(unsigned, const uint8_t*) {}

  /// Eight values from their fields and the plain bytes.
  UZIP_DEVICE Words<kSize> join(unsigned, unsigned segment, const uint8_t* plain) const {
    const unsigned first = first_of(segment);
    const uint32_t (&fields)[2] = fields_[segment];
    const uint8_t* const lower = plain + Format::low_bytes(values()) + first;
    Planes<kSize> planes;
    UZIP_UNROLL
    for (unsigned p = 0; p != Format::kLowerPlanes; ++p) {
      const auto* const at = reinterpret_cast<const uint2*>(
          lower + (kSize - 2 - p) * Format::plane_bytes(values()));
      const uint2 v = kPlainHere ? *at : load_constant(at);
      planes.plane[p][0] = v.x;
      planes.plane[p][1] = v.y;
    }
    UZIP_UNROLL
    for (unsigned half = 0; half < 2; ++half)
      planes.plane[kSize - 1][half] =
          (fields[half] & repeat_byte((1u << Format::kFieldBits) - 1)) << Format::kFieldShift;
    UZIP_UNROLL
    for (unsigned b = 0; b != Format::kFieldShift; ++b) {
      const uint32_t bits = plain[(first / 64 * Format::kFieldShift + b) * 8 + first % 64 / 8];
      planes.plane[kSize - 1][0] |= scatter_bits(bits & 15u) << b;
      planes.plane[kSize - 1][1] |= scatter_bits(bits >> 4) << b;
    }
    return merge_values<kSize>(planes);
  }

 private:
  UZIP_DEVICE unsigned first_of(unsigned segment) const { return segments_.first_of(segment); }
  UZIP_DEVICE unsigned values() const { return segments_.values(); }

  template <unsigned kWidth>
  UZIP_DEVICE uint32_t decode_level_0_of(const FastBlock& block, const uint8_t* image,
                                         const CodeTables& tables) {
    SymbolTable<kWidth> symbols;
    symbols.load_aligned(image + block.symbols_at());
    const uint8_t* const words = image + block.words0_at();
    uint32_t escaped = 0;
    UZIP_UNROLL
    for (unsigned i = 0; i < kSegments; ++i) {
      const unsigned first = first_of(i);
      uint32_t bits[kWidth];
      uint32_t every = 0xffu;
      UZIP_UNROLL
      for (unsigned b = 0; b < kWidth; ++b) {
        bits[b] = words[(first / 64 * kWidth + b) * 8 + first % 64 / 8];
        every &= bits[b];
      }
      every &= segments_.valid(first);
      escaped |= every << (8 * i);
      symbols.fields_of(tables, bits, fields_[i]);
    }
    return escaped;
  }

  ThreadSegments<Format, kWhole> segments_;
  uint32_t fields_[kSegments][2];
};

}  // namespace uzip::gpu
