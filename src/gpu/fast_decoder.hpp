// Decodes the blocks that devices write, and those of CPUs that look like them, of at most one tile.
// Used by the decode kernel.
#pragma once

#include "gpu/byte_decoder.hpp"
#include "gpu/emit.hpp"
#include "gpu/sliced_decoder.hpp"

#include <type_traits>

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

/// `kWhole`: the block is a whole tile, destination and operand are aligned, and the operation, if
/// there is one, is is_pair_sum(). `kPlainHere`: the plain bytes are in shared memory.
template <class Format, int kType, bool kWhole,
          bool kPlainHere = kWhole && kStagesPlain<Format>>
class FastDecoder {
 public:
  static constexpr unsigned kSize = Format::kSize;

  UZIP_DEVICE FastDecoder(const DecodeArgs& args, const BlockView& view, const FastMemory& memory,
                          const CodeTables& tables, ScanSums& sums)
      : args_(args), view_(view), memory_(memory), tables_(tables), sums_(sums), fields_(view.values) {}

  /// The image, and the plain bytes if they are staged, are there for all threads.
  UZIP_DEVICE FastResult decode() {
    FastBlock block;
    if (view_.plain_bytes < Format::plain_bytes(values()) ||
        !read_fast_block<Format>(memory_.image, view_.coded_bytes, values(), &block))
      return FastResult::kNotFast;
    if (block.levels() == 2 &&
        !decode_second_level<Format>(second_level(block), tables_, memory_.work, sums_))
      return FastResult::kWrongEscapes;
    typename Fields::Escapes escaped{};
    typename Fields::Ranks ranks{};
    // The first part stands apart: of what has only one, nothing else is to be kept where the two ways meet.
    if (block.levels() == 0) {
      fields_.load(0, memory_.image + block.words0_at());
      fields_.prepare(0, memory_.plain);
    } else {
      escaped = fields_.find_escapes(block, memory_.image, tables_);
      ranks = fields_.rank(escaped, sums_);
      if (ranks.total != block.count0) return FastResult::kWrongEscapes;
      put(0, block, escaped, ranks);
    }
    output(0);
    UZIP_UNROLL
    for (unsigned part = 1; part < Fields::kParts; ++part) {
      if (block.levels() == 0) {
        fields_.load(part, memory_.image + block.words0_at());
        fields_.prepare(part, memory_.plain);
      } else {
        put(part, block, escaped, ranks);
      }
      output(part);
    }
    return FastResult::kDone;
  }

 private:
  using Fields = std::conditional_t<kIsSliced<Format>, SlicedDecoder<Format, kWhole>,
                                    ByteDecoder<Format, kWhole, kPlainHere>>;

  UZIP_DEVICE unsigned values() const { return kWhole ? Format::kTileValues : view_.values; }

  /// A part's fields from codes and escapes.
  UZIP_DEVICE void put(unsigned part, const FastBlock& block,
                       const typename Fields::Escapes& escaped,
                       const typename Fields::Ranks& ranks) {
    fields_.decode_level_0(part, block, memory_.image, escaped);
    if (block.levels() == 2) {
      fields_.prepare(part, memory_.plain);
      fields_.put_many(part, escaped, ranks, memory_.work, tables_);
    } else {
      fields_.put_few(part, escaped, ranks, memory_.image + block.escapes_at(), memory_.work);
      fields_.prepare(part, memory_.plain);
    }
  }
  UZIP_DEVICE void output(unsigned part) const {
    if constexpr (kWhole)
      output_whole(part);
    else
      output_some(part);
  }
  UZIP_DEVICE SecondLevel second_level(const FastBlock& block) const {
    const uint8_t* const image = memory_.image;
    return {image + block.words1_at,
            image + block.symbols_at() + block.symbols0(),
            image + block.escapes_at(),
            block.count0,
            block.count1,
            block.width1()};
  }

  UZIP_DEVICE Words<kSize> words(unsigned part, unsigned segment) const {
    return fields_.join(part, segment, memory_.plain);
  }

  UZIP_DEVICE void output_whole(unsigned part) const {
    uint8_t* const dst = args_.dst + view_.first * kSize;
    if (args_.operand == nullptr) {
      Words<kSize> own[kSegments];
      UZIP_UNROLL
      for (unsigned i = 0; i < kSegments; ++i) own[i] = words(part, i);
      return store(part, dst, own);
    }
    const uint8_t* const operand = args_.operand + view_.first * kSize;
    Words<kSize> others[kSegments];
    load(part, operand, others);
    if (is_pair_average(args_.op, args_.average_over))
      output_pairs<true>(part, others, dst);
    else
      output_pairs<false>(part, others, dst);
  }

  template <bool kAverage>
  UZIP_DEVICE void output_pairs(unsigned part, const Words<kSize> (&others)[kSegments],
                                uint8_t* dst) const {
    Words<kSize> results[kSegments];
    UZIP_UNROLL
    for (unsigned i = 0; i < kSegments; ++i)
      results[i] = combine_words<kType, kAverage, kSize>(others[i], words(part, i));
    store(part, dst, results);
  }

  /// A part of a thread's values of a whole block.
  UZIP_DEVICE void load(unsigned part, const uint8_t* src, Words<kSize> (&values)[kSegments]) const {
    if constexpr (kIsSliced<Format>) {
      load_sliced(src + fields_.first_of(part, 0), values);
    } else {
      UZIP_UNROLL
      for (unsigned i = 0; i < kSegments; ++i)
        values[i] = load_values<kSize>(src + fields_.first_of(part, i) * kSize);
    }
  }
  UZIP_DEVICE void store(unsigned part, uint8_t* dst, const Words<kSize> (&values)[kSegments]) const {
    if constexpr (kIsSliced<Format>) {
      store_sliced(dst + fields_.first_of(part, 0), values);
    } else {
      UZIP_UNROLL
      for (unsigned i = 0; i < kSegments; ++i) {
        uint8_t* const to = dst + fields_.first_of(part, i) * kSize;
        if constexpr (kSize >= 4)
          store_sectors<kSize>(to, values[i]);
        else
          store_values<kSize>(to, values[i]);
      }
    }
  }

  UZIP_DEVICE void output_some(unsigned part) const {
    UZIP_UNROLL
    for (unsigned i = 0; i < kSegments; ++i) {
      const unsigned first = fields_.first_of(part, i);
      if (first < values())
        emit<kType, kSize>(args_, view_.first + first, values() - first, view_.aligned,
                           words(part, i));
    }
  }

  const DecodeArgs& args_;
  const BlockView& view_;
  FastMemory memory_;
  const CodeTables& tables_;
  ScanSums& sums_;
  Fields fields_;
};

}  // namespace uzip::gpu
