// Decodes the blocks that devices write, and those of CPUs that look like them: one tile, lower
// planes as they are, and a top plane whose fields are coded in at most two levels, or stored. Used
// by the decode kernel; all other blocks are left to the general decoder.
#pragma once

#include "codec/block.hpp"
#include "gpu/emit.hpp"

namespace uzip::gpu {

inline constexpr unsigned kDecodeImageBytes = kTileValues + 256;
inline constexpr unsigned kMostFastLevels = 2;
inline constexpr unsigned kMostCodeWidth = 4;

/// Whether the plain bytes of whole blocks are brought to shared memory ahead of their decoding.
template <class Format>
inline constexpr bool kStagesPlain = Format::plain_bytes(kTileValues) <= kTileValues;

struct FastBlock {
  uint32_t is_fast;                    ///< else nothing of the rest counts
  uint32_t levels;
  uint32_t width[kMostFastLevels];
  uint32_t count[kMostFastLevels];     ///< escapes of the level
  uint32_t words_at[kMostFastLevels];  ///< in the block's coded bytes; levels == 0: the fields
  uint32_t escapes_at;                 ///< of the last level
  uint32_t symbols[kMostFastLevels][4];
};

/// One block of a frame.
struct BlockView {
  const uint8_t* plain;
  const uint8_t* coded;
  uint32_t plain_bytes;
  uint32_t coded_bytes;
  uint64_t first;  ///< value in the frame
  uint32_t values;
  bool aligned;    ///< destination and operand
};

/// What a block needs of shared memory. All aligned to 16 bytes.
struct FastMemory {
  const uint8_t* image;  ///< the block's coded bytes, or the first kDecodeImageBytes of them
  const uint8_t* plain;  ///< its plain bytes, in shared memory or elsewhere
  uint8_t* work;         ///< kTileValues bytes
};

enum class FastResult : uint32_t { kDone, kNotFast, kWrongEscapes };

/// `kWhole`: the block has 8192 values, destination and operand are aligned, and the operation, if
/// there is one, is a sum.
template <class Format, int kType, bool kWhole>
class FastDecoder {
 public:
  static constexpr unsigned kSize = Format::kSize;

  UZIP_DEVICE FastDecoder(const DecodeArgs& args, const BlockView& view, const FastMemory& memory,
                          FastBlock& block, ScanSums& sums)
      : args_(args), view_(view), memory_(memory), block_(block), sums_(sums) {}

  /// The image, and the plain bytes if they are staged, are there for all threads.
  UZIP_DEVICE FastResult decode() {
    const bool has_plain = view_.plain_bytes >= Format::plain_bytes(values());
    Lower lower[kSegments];
    if (kLoadsEarly && has_plain) load_lower(lower);
    if (thread_index() == 0) block_.is_fast = has_plain && read_block() ? 1 : 0;
    sync();
    if (block_.is_fast == 0) return FastResult::kNotFast;
    if (kSize == 8) load_lower(lower);
    uint32_t fields[kSegments][2];
    if (block_.levels == 0)
      load_fields(fields);
    else if (!decode_levels(fields))
      return FastResult::kWrongEscapes;
    if (!kLoadsEarly && kSize != 8) load_lower(lower);
    UZIP_UNROLL
    for (unsigned i = 0; i < kSegments; ++i)
      if (exists(first_value(i))) output(first_value(i), fields[i], lower[i]);
    return FastResult::kDone;
  }

 private:
  /// When a thread loads its lower planes: what must come from far is asked for early, but 24 or 56
  /// registers are not worth that. As measured on an H200.
  static constexpr bool kLoadsEarly = !kStagesPlain<Format> && kSize <= 2;

  UZIP_DEVICE unsigned values() const { return kWhole ? kTileValues : view_.values; }
  UZIP_DEVICE bool exists(unsigned first) const { return kWhole || first < view_.values; }

  /// What the plain part says of a thread's eight values.
  struct Lower {
    uint32_t plane[Format::kLowerPlanes + 1][2];
    uint32_t bits[Format::kFieldShift + 1];
  };

  UZIP_DEVICE void load_lower(Lower (&lower)[kSegments]) const {
    const unsigned stride = Format::plane_bytes(values());
    UZIP_UNROLL
    for (unsigned i = 0; i < kSegments; ++i) {
      const unsigned first = first_value(i);
      if (!exists(first)) continue;
      const uint8_t* const planes = memory_.plain + Format::low_bytes(values()) + first;
      UZIP_UNROLL
      for (unsigned p = 0; p != Format::kLowerPlanes; ++p) {
        const uint2 v = *reinterpret_cast<const uint2*>(planes + (kSize - 2 - p) * stride);
        lower[i].plane[p][0] = v.x;
        lower[i].plane[p][1] = v.y;
      }
      UZIP_UNROLL
      for (unsigned b = 0; b != Format::kFieldShift; ++b)
        lower[i].bits[b] =
            memory_.plain[(first / 64 * Format::kFieldShift + b) * 8 + first % 64 / 8];
    }
  }

  // ---- The descriptor, read by one thread ----------------------------------------------------------

  UZIP_DEVICE uint32_t image_word(unsigned at) const {
    return *reinterpret_cast<const uint32_t*>(memory_.image + at);
  }
  UZIP_DEVICE static unsigned packed(unsigned count, unsigned width) {
    return (count + 63) / 64 * 8 * width;
  }

  /// True when the block is of the fast kind, and all that its descriptor says is allowed.
  UZIP_DEVICE bool read_block() const {
    constexpr uint32_t kTop = Format::kFieldShift | Format::kLowMask << 8 |
                              static_cast<uint32_t>(kFieldsInCoded) << 24;
    // So short a block is left to the general way, which looks at every length.
    if (view_.coded_bytes < 16 + 4 * kMostFastLevels + 32 + 4 * Format::kLowerPlanes) return false;
    if (image_word(0) != static_cast<uint32_t>(BlockKind::kPlanes) || image_word(4) != values() ||
        image_word(8) != kTop)
      return false;
    const uint32_t levels = image_word(12);
    block_.levels = levels & 0xffu;
    block_.width[0] = levels >> 8 & 15u;
    block_.width[1] = levels >> 12 & 15u;
    if (levels >> 16 != 0 || block_.levels > kMostFastLevels) return false;
    unsigned at = 16;
    uint32_t coded = values();
    UZIP_UNROLL
    for (unsigned l = 0; l < kMostFastLevels; ++l) {
      if (l >= block_.levels) {
        if (block_.width[l] != 0) return false;
        continue;
      }
      if (block_.width[l] < 1 || block_.width[l] > kMostCodeWidth) return false;
      block_.count[l] = image_word(at);
      if (block_.count[l] > coded) return false;
      coded = block_.count[l];
      at += 4;
    }
    unsigned symbols = 0;
    if (!read_symbols(at, &symbols)) return false;
    at += (symbols + 3) / 4 * 4;
    UZIP_UNROLL
    for (unsigned p = 0; p != Format::kLowerPlanes; ++p, at += 4)
      if (image_word(at) != (8u | 0xffu << 8)) return false;
    return find_sections((at + 7) / 8 * 8);
  }

  UZIP_DEVICE bool read_symbols(unsigned at, unsigned* symbols) const {
    uint32_t any = 0;
    *symbols = 0;
    for (unsigned l = 0; l < block_.levels; ++l) {
      const unsigned count = (1u << block_.width[l]) - 1;
      const unsigned shift = *symbols % 4 * 8;
      const unsigned from = at + *symbols / 4 * 4;
      UZIP_UNROLL
      for (unsigned w = 0; w < 4; ++w) {
        const uint64_t two = image_word(from + 4 * w) |
                             static_cast<uint64_t>(image_word(from + 4 * w + 4)) << 32;
        const unsigned left = count > 4 * w ? count - 4 * w : 0;
        const uint32_t mask = left >= 4 ? ~0u : (1u << (8 * left)) - 1;
        const auto word = static_cast<uint32_t>(two >> shift) & mask;
        any |= word;
        block_.symbols[l][w] = word;
      }
      *symbols += count;
    }
    return (any & repeat_byte(0xffu << Format::kFieldBits & 0xffu)) == 0;
  }

  UZIP_DEVICE bool find_sections(unsigned at) const {
    block_.words_at[0] = at;
    if (block_.levels == 0) {
      at += Format::kFieldShift == 0 ? Format::plane_bytes(values())
                                     : packed(values(), Format::kFieldBits);
    } else {
      uint32_t coded = values();
      for (unsigned l = 0; l < block_.levels; ++l) {
        block_.words_at[l] = at;
        at += packed(coded, block_.width[l]);
        coded = block_.count[l];
      }
      block_.escapes_at = at;
      at += (coded + 7) / 8 * 8;
    }
    return at <= view_.coded_bytes && at <= kDecodeImageBytes;
  }

  // ---- Codes to fields -----------------------------------------------------------------------------

  /// Symbols of four codes, which are in four bytes.
  template <unsigned kWidth>
  UZIP_DEVICE static uint32_t look_up(const uint32_t (&symbols)[4], uint32_t codes) {
    const uint32_t selector = byte_permute(codes | codes >> 4, 0, 0x4420);
    if constexpr (kWidth < 4) return byte_permute(symbols[0], symbols[1], selector & 0x7777u);
    const uint32_t low = byte_permute(symbols[0], symbols[1], selector & 0x7777u);
    const uint32_t high = byte_permute(symbols[2], symbols[3], selector & 0x7777u);
    const uint32_t upper = (codes >> 3 & 0x01010101u) * 0xffu;
    return (low & ~upper) | (high & upper);
  }

  template <unsigned kWidth>
  UZIP_DEVICE static uint32_t four_codes(const uint32_t (&bits)[kMostCodeWidth], unsigned shift) {
    uint32_t codes = 0;
    UZIP_UNROLL
    for (unsigned b = 0; b < kWidth; ++b)
      codes |= ((bits[b] >> shift & 15u) * (0x00204081u << b)) & (0x01010101u << b);
    return codes;
  }

  template <unsigned kWidth>
  UZIP_DEVICE static void look_up_all(const uint32_t (&table)[4],
                                      const uint32_t (&bits)[kMostCodeWidth],
                                      uint32_t (&fields)[kSegments][2]) {
    const uint32_t symbols[4] = {table[0], table[1], table[2], table[3]};
    UZIP_UNROLL
    for (unsigned i = 0; i < kSegments; ++i) {
      UZIP_UNROLL
      for (unsigned half = 0; half < 2; ++half)
        fields[i][half] =
            look_up<kWidth>(symbols, four_codes<kWidth>(bits, 8 * i + 4 * half));
    }
  }

  UZIP_DEVICE static void look_up_all(unsigned width, const uint32_t (&table)[4],
                                      const uint32_t (&bits)[kMostCodeWidth],
                                      uint32_t (&fields)[kSegments][2]) {
    switch (width) {
      case 1: return look_up_all<1>(table, bits, fields);
      case 2: return look_up_all<2>(table, bits, fields);
      case 3: return look_up_all<3>(table, bits, fields);
      default: return look_up_all<4>(table, bits, fields);
    }
  }

  /// False: the codes contradict the descriptor.
  UZIP_DEVICE bool decode_levels(uint32_t (&fields)[kSegments][2]) const {
    if (block_.levels == 2 && !decode_level_1()) return false;
    const unsigned width = block_.width[0];
    uint32_t bits[kMostCodeWidth] = {0, 0, 0, 0};
    uint32_t escaped = ~0u;
    const uint8_t* const words = memory_.image + block_.words_at[0];
    UZIP_UNROLL
    for (unsigned b = 0; b < kMostCodeWidth; ++b) {
      if (b >= width) continue;
      UZIP_UNROLL
      for (unsigned i = 0; i < kSegments; ++i) {
        const unsigned first = first_value(i);
        if (exists(first))
          bits[b] |= static_cast<uint32_t>(words[(first / 64 * width + b) * 8 + first % 64 / 8])
                     << (8 * i);
      }
      escaped &= bits[b];
    }
    if constexpr (!kWhole) {
      uint32_t valid = 0;
      UZIP_UNROLL
      for (unsigned i = 0; i < kSegments; ++i)
        valid |= valid_bits(first_value(i), values()) << (8 * i);
      escaped &= valid;
    }
    const SegmentRanks ranks = rank_segments(escaped, sums_, 0);
    if (ranks.total != block_.count[0]) return false;
    look_up_all(width, block_.symbols[0], bits, fields);
    if (block_.levels == 2)
      put_many_escapes(escaped, ranks, fields);
    else
      put_few_escapes(escaped, ranks, fields);
    return true;
  }

  /// A thread has one or two of 32: they are put in place in shared memory, because registers
  /// can't be indexed.
  UZIP_DEVICE void put_few_escapes(uint32_t escaped, const SegmentRanks& ranks,
                                   uint32_t (&fields)[kSegments][2]) const {
    UZIP_UNROLL
    for (unsigned i = 0; i < kSegments; ++i)
      *reinterpret_cast<uint2*>(memory_.work + first_value(i)) =
          make_uint2(fields[i][0], fields[i][1]);
    const uint32_t low = ranks.first[0] | ranks.first[1] << 16;
    const uint32_t high = ranks.first[2] | ranks.first[3] << 16;
    const uint8_t* const escapes = memory_.image + block_.escapes_at;
    for (uint32_t mask = escaped; mask != 0; mask &= mask - 1) {
      const unsigned bit = lowest_bit(mask);
      const unsigned segment = bit / 8;
      const uint32_t before = escaped & ((1u << bit) - 1) & (~0u << (8 * segment));
      const uint32_t rank = ((segment < 2 ? low : high) >> (segment % 2 * 16) & 0xffffu) +
                            count_bits(before);
      memory_.work[first_value(segment) + bit % 8] = escapes[rank];
    }
    UZIP_UNROLL
    for (unsigned i = 0; i < kSegments; ++i) {
      const uint2 v = *reinterpret_cast<const uint2*>(memory_.work + first_value(i));
      fields[i][0] = v.x;
      fields[i][1] = v.y;
    }
  }

  UZIP_DEVICE void put_many_escapes(uint32_t escaped, const SegmentRanks& ranks,
                                    uint32_t (&fields)[kSegments][2]) const {
    UZIP_UNROLL
    for (unsigned i = 0; i < kSegments; ++i) {
      uint32_t rank = ranks.first[i];
      UZIP_UNROLL
      for (unsigned k = 0; k < kSegmentValues; ++k) {
        if ((escaped >> (8 * i + k) & 1u) == 0) continue;
        const unsigned shift = 8 * (k % 4);
        fields[i][k / 4] = (fields[i][k / 4] & ~(0xffu << shift)) |
                           static_cast<uint32_t>(memory_.work[rank++]) << shift;
      }
    }
  }

  /// Level 1: what level 0 lacks, into the list. Each thread decodes 32 fields.
  UZIP_DEVICE bool decode_level_1() const {
    const uint32_t count = block_.count[0];
    const unsigned width = block_.width[1];
    const unsigned first = thread_index() * 32;
    uint32_t bits[kMostCodeWidth] = {0, 0, 0, 0};
    uint32_t escaped = 0;
    if (first < count) {
      escaped = count - first < 32 ? (1u << (count - first)) - 1 : ~0u;
      UZIP_UNROLL
      for (unsigned b = 0; b < kMostCodeWidth; ++b) {
        if (b >= width) continue;
        bits[b] = image_word(block_.words_at[1] + (first / 64 * width + b) * 8 + first % 64 / 8);
        escaped &= bits[b];
      }
    }
    uint32_t total = 0;
    uint32_t rank = rank_threads(count_bits(escaped), sums_, 1, &total);
    if (total != block_.count[1]) return false;
    if (first < count) {
      uint32_t fields[kSegments][2];
      look_up_all(width, block_.symbols[1], bits, fields);
      UZIP_UNROLL
      for (unsigned k = 0; k < 8; ++k)
        reinterpret_cast<uint32_t*>(memory_.work + first)[k] = fields[k / 2][k % 2];
      for (; escaped != 0; escaped &= escaped - 1)
        memory_.work[first + lowest_bit(escaped)] = memory_.image[block_.escapes_at + rank++];
    }
    sync();
    return true;
  }

  /// Fields that are stored as they are.
  UZIP_DEVICE void load_fields(uint32_t (&fields)[kSegments][2]) const {
    const uint8_t* const at = memory_.image + block_.words_at[0];
    UZIP_UNROLL
    for (unsigned i = 0; i < kSegments; ++i) {
      const unsigned first = first_value(i);
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

  UZIP_DEVICE void output(unsigned first, const uint32_t (&fields)[2], const Lower& lower) const {
    Planes<kSize> planes;
    UZIP_UNROLL
    for (unsigned half = 0; half < 2; ++half) {
      UZIP_UNROLL
      for (unsigned p = 0; p != Format::kLowerPlanes; ++p)
        planes.plane[p][half] = lower.plane[p][half];
      uint32_t top =
          (fields[half] & repeat_byte((1u << Format::kFieldBits) - 1)) << Format::kFieldShift;
      UZIP_UNROLL
      for (unsigned b = 0; b != Format::kFieldShift; ++b)
        top |= scatter_bits(lower.bits[b] >> (4 * half) & 15u) << b;
      planes.plane[kSize - 1][half] = top;
    }
    const Words<kSize> words = merge_values<kSize>(planes);
    if constexpr (kWhole)
      emit_sum<kType, kSize>(args_, view_.first + first, words);
    else
      emit<kType, kSize>(args_, view_.first + first, view_.values - first, view_.aligned, words);
  }

  const DecodeArgs& args_;
  BlockView view_;
  FastMemory memory_;
  FastBlock& block_;
  ScanSums& sums_;
};

}  // namespace uzip::gpu
