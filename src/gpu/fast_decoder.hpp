// Decodes the blocks that devices write, and those of CPUs that look like them, of at most one tile.
// Used by the decode kernel.
#pragma once

#include "gpu/emit.hpp"
#include "gpu/fast_block.hpp"
#include "gpu/second_level.hpp"

namespace uzip::gpu {

/// Whether the plain bytes of whole blocks are brought to shared memory ahead of their decoding.
template <class Format>
inline constexpr bool kStagesPlain = Format::kSize <= (kHasLargeBlocks ? 4 : 2);

/// One block of a frame.
struct BlockView {
  const uint8_t* plain;
  const uint8_t* coded;
  uint32_t plain_bytes;
  uint32_t coded_bytes;
  uint64_t first;  ///< value in the frame
  uint32_t values;
  bool aligned;    ///< destination and operand
  bool right;      ///< what the table says of it is allowed
  bool whole;      ///< for the fastest way
};

/// What a block needs of shared memory. All aligned to 16 bytes.
struct FastMemory {
  const uint8_t* image;  ///< the block's coded bytes, or the first kDecodeImageBytes of them
  const uint8_t* plain;  ///< its plain bytes, in shared memory or elsewhere
  uint8_t* work;         ///< kTileValues bytes, and four that may be read
};

enum class FastResult : uint32_t { kDone, kNotFast, kWrongEscapes };

/// `kWhole`: the block has 8192 values, destination and operand are aligned, and the operation, if
/// there is one, is is_pair_sum(). `kPlainHere`: the plain bytes are in shared memory.
template <class Format, int kType, bool kWhole,
          bool kPlainHere = kWhole && kStagesPlain<Format>>
class FastDecoder {
 public:
  static constexpr unsigned kSize = Format::kSize;

  UZIP_DEVICE FastDecoder(const DecodeArgs& args, const BlockView& view, const FastMemory& memory,
                          const CodeTables& tables, ScanSums& sums)
      : args_(args),
        view_(view),
        memory_(memory),
        tables_(tables),
        sums_(sums),
        first_(first_value(taken_anew(thread_index()), 0)) {}

  /// The image, and the plain bytes if they are staged, are there for all threads.
  UZIP_DEVICE FastResult decode() {
    FastBlock block;
    if (view_.plain_bytes < Format::plain_bytes(values()) ||
        !read_fast_block<Format>(memory_.image, view_.coded_bytes, values(), &block))
      return FastResult::kNotFast;
    uint32_t fields[kSegments][2];
    if (block.levels == 0) {
      load_fields(block, fields);
    } else {
      if (block.levels == 2 &&
          !decode_second_level(second_level(block), tables_, memory_.work, sums_))
        return FastResult::kWrongEscapes;
      const uint32_t escaped = decode_level_0(block, fields);
      const SegmentRanks ranks = rank_segments(escaped, sums_, 0);
      if (ranks.total != block.count0) return FastResult::kWrongEscapes;
      if (block.levels == 2)
        put_many_escapes(escaped, ranks, fields);
      else
        put_few_escapes(escaped, ranks, memory_.image + block.escapes_at, fields);
    }
    if constexpr (kWhole)
      output_whole(fields);
    else
      output_some(fields);
    return FastResult::kDone;
  }

 private:
  UZIP_DEVICE unsigned values() const { return kWhole ? kTileValues : view_.values; }
  UZIP_DEVICE unsigned first_value_of(unsigned segment) const {
    return first_ + segment * (kGroupLanes * kSegmentValues);
  }
  UZIP_DEVICE bool exists(unsigned first) const { return kWhole || first < view_.values; }

  // ---- Codes to fields -----------------------------------------------------------------------------

  UZIP_DEVICE SecondLevel second_level(const FastBlock& block) const {
    const uint8_t* const image = memory_.image;
    return {image + block.words1_at,
            image + block.symbols_at + block.symbols0(),
            image + block.escapes_at,
            block.count0,
            block.count1,
            block.width1};
  }

  /// Fields of level 0; returns which are escapes and have others.
  UZIP_DEVICE uint32_t decode_level_0(const FastBlock& block,
                                      uint32_t (&fields)[kSegments][2]) const {
    switch (block.width0) {
      case 1: return decode_level_0_of<1>(block, fields);
      case 2: return decode_level_0_of<2>(block, fields);
      case 3: return decode_level_0_of<3>(block, fields);
      default: return decode_level_0_of<4>(block, fields);
    }
  }

  template <unsigned kWidth>
  UZIP_DEVICE uint32_t decode_level_0_of(const FastBlock& block,
                                         uint32_t (&fields)[kSegments][2]) const {
    SymbolTable<kWidth> symbols;
    symbols.load_aligned(memory_.image + block.symbols_at);
    const uint8_t* const words = memory_.image + block.words0_at;
    uint32_t escaped = 0;
    UZIP_UNROLL
    for (unsigned i = 0; i < kSegments; ++i) {
      const unsigned first = first_value_of(i);
      uint32_t bits[kWidth];
      uint32_t every = 0xffu;
      UZIP_UNROLL
      for (unsigned b = 0; b < kWidth; ++b) {
        bits[b] = words[(first / 64 * kWidth + b) * 8 + first % 64 / 8];
        every &= bits[b];
      }
      if constexpr (!kWhole) every &= valid_bits(first, values());
      escaped |= every << (8 * i);
      symbols.fields_of(tables_, bits, fields[i]);
    }
    return escaped;
  }

  /// A thread has one or two of 32: they are put in place in shared memory, because registers
  /// can't be indexed.
  UZIP_DEVICE void put_few_escapes(uint32_t escaped, const SegmentRanks& ranks,
                                   const uint8_t* escapes, uint32_t (&fields)[kSegments][2]) const {
    UZIP_UNROLL
    for (unsigned i = 0; i < kSegments; ++i)
      *reinterpret_cast<uint2*>(memory_.work + first_value_of(i)) =
          make_uint2(fields[i][0], fields[i][1]);
    const ThreadRanks by_number(escaped, ranks);
    uint32_t number = 0;
    for (uint32_t mask = escaped; mask != 0; mask &= mask - 1, ++number) {
      const unsigned bit = lowest_bit(mask);
      memory_.work[first_value_of(bit / 8) + bit % 8] = escapes[by_number.rank(bit / 8, number)];
    }
    UZIP_UNROLL
    for (unsigned i = 0; i < kSegments; ++i) {
      const uint2 v = *reinterpret_cast<const uint2*>(memory_.work + first_value_of(i));
      fields[i][0] = v.x;
      fields[i][1] = v.y;
    }
  }

  /// The same for any number of them, which are in the list.
  UZIP_DEVICE void put_many_escapes(uint32_t escaped, const SegmentRanks& ranks,
                                    uint32_t (&fields)[kSegments][2]) const {
    UZIP_UNROLL
    for (unsigned i = 0; i < kSegments; ++i) {
      uint32_t rank = ranks.first[i];
      UZIP_UNROLL
      for (unsigned half = 0; half < 2; ++half) {
        const uint32_t expand = tables_.expand[escaped >> (8 * i + 4 * half) & 15u];
        const auto* const words = reinterpret_cast<const uint32_t*>(memory_.work) + rank / 4;
        const uint64_t two = words[0] | static_cast<uint64_t>(words[1]) << 32;
        const auto next = static_cast<uint32_t>(two >> (rank % 4 * 8));
        fields[i][half] = pick_bytes(fields[i][half], next, expand);
        rank += expand >> 16;
      }
    }
  }

  /// Fields that are stored as they are.
  UZIP_DEVICE void load_fields(const FastBlock& block, uint32_t (&fields)[kSegments][2]) const {
    const uint8_t* const at = memory_.image + block.words0_at;
    UZIP_UNROLL
    for (unsigned i = 0; i < kSegments; ++i) {
      const unsigned first = first_value_of(i);
      if (!exists(first)) continue;
      if constexpr (Format::kFieldShift == 0) {
        const uint2 v = *reinterpret_cast<const uint2*>(at + first);
        fields[i][0] = v.x;
        fields[i][1] = v.y;
      } else {
        fields[i][0] = fields[i][1] = 0;
        UZIP_UNROLL
        for (unsigned b = 0; b != Format::kFieldBits; ++b) {
          const uint32_t byte = at[(first / 64 * Format::kFieldBits + b) * 8 + first % 64 / 8];
          fields[i][0] |= scatter_bits(byte & 15u) << b;
          fields[i][1] |= scatter_bits(byte >> 4) << b;
        }
      }
    }
  }

  /// Eight values from their fields and the plain bytes.
  UZIP_DEVICE Words<kSize> merge(unsigned first, const uint32_t (&fields)[2]) const {
    const uint8_t* const plain = memory_.plain;
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

  UZIP_DEVICE void output_whole(const uint32_t (&fields)[kSegments][2]) const {
    uint8_t* const dst = args_.dst + view_.first * kSize;
    if (args_.operand == nullptr) {
      UZIP_UNROLL
      for (unsigned i = 0; i < kSegments; ++i)
        store_values<kSize>(dst + first_value_of(i) * kSize, merge(first_value_of(i), fields[i]));
      return;
    }
    const uint8_t* const operand = args_.operand + view_.first * kSize;
    Words<kSize> others[kSegments];
    UZIP_UNROLL
    for (unsigned i = 0; i < kSegments; ++i)
      others[i] = load_values<kSize>(operand + first_value_of(i) * kSize);
    if (is_pair_average(args_.op, args_.average_over))
      output_pairs<true>(others, fields, dst);
    else
      output_pairs<false>(others, fields, dst);
  }

  template <bool kAverage>
  UZIP_DEVICE void output_pairs(const Words<kSize> (&others)[kSegments],
                                const uint32_t (&fields)[kSegments][2], uint8_t* dst) const {
    UZIP_UNROLL
    for (unsigned i = 0; i < kSegments; ++i)
      store_values<kSize>(dst + first_value_of(i) * kSize,
                          combine_words<kType, kAverage, kSize>(
                              others[i], merge(first_value_of(i), fields[i])));
  }

  UZIP_DEVICE void output_some(const uint32_t (&fields)[kSegments][2]) const {
    UZIP_UNROLL
    for (unsigned i = 0; i < kSegments; ++i) {
      const unsigned first = first_value_of(i);
      if (first < values())
        emit<kType, kSize>(args_, view_.first + first, values() - first, view_.aligned,
                           merge(first, fields[i]));
    }
  }

  const DecodeArgs& args_;
  const BlockView& view_;
  FastMemory memory_;
  const CodeTables& tables_;
  ScanSums& sums_;
  unsigned first_;  ///< the first of this thread's values
};

}  // namespace uzip::gpu
