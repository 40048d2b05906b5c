// Codes the fields of a tile's top plane in one or two levels, or stores them, and builds the tile's
// coded bytes in shared memory. Used by the tile encoder.
#pragma once

#include "gpu/encode_descriptor.hpp"
#include "gpu/second_level.hpp"

namespace uzip::gpu {

/// Of a tile: descriptor, and the fields as they are.
inline constexpr unsigned kImageBytes = kTileValues + 256;

/// What all threads of a block share to plan and to code a tile.
struct EncodeWork {
  ScanSums sums;
  alignas(16) uint8_t list[kTileValues];  ///< fields that level 0 lacks, if there is a second one
  uint32_t bins[2][kHistogramBins + kHistogramPadding];  ///< of tiles in turn
  uint32_t samples;  ///< in the bins, if that is not kSamples
  uint32_t plan;     ///< pack_plan()
};

/// Eight bits of a sequence of `count` things that is stored in `width` words for each 64; `first`
/// is the first thing's index.
UZIP_DEVICE void put_bits(uint8_t* words, unsigned first, unsigned width, unsigned bit,
                          uint32_t bits, unsigned count) {
  if (first / 64 * 64 < count)
    words[(first / 64 * width + bit) * 8 + first % 64 / 8] = static_cast<uint8_t>(bits);
}

template <class Format, bool kWhole>
class FieldCoder {
 public:
  /// Each thread has its fields of the tile's `values` values, from `first_value` on.
  UZIP_DEVICE FieldCoder(const uint32_t (&fields)[kSegments][2], unsigned first_value,
                         unsigned values, uint8_t* image, EncodeWork& work)
      : fields_(fields), first_value_(first_value), values_(values), image_(image), work_(work) {}

  /// Returns the number of coded bytes, and calls `publish` with it as early as possible.
  /// load_field(i) gives the field of value i again.
  template <class LoadField, class Publish>
  UZIP_DEVICE unsigned code(const LevelPlan& plan, const LoadField& load_field,
                            const Publish& publish) {
    plan_ = plan;
    described_ = described_bytes<Format>(plan_);
    if (plan_.levels > 0) code_levels(load_field, publish);
    if (plan_.levels > 0) return coded_bytes_;
    const uint32_t counts[kMostDeviceLevels] = {0, 0};
    described_ = described_bytes<Format>(plan_);
    finish(raw_field_bytes(), publish);
    store_fields();
    write_descriptor(counts);
    return coded_bytes_;
  }

 private:
  UZIP_DEVICE unsigned values() const { return kWhole ? kTileValues : values_; }
  UZIP_DEVICE unsigned first_value_of(unsigned segment) const {
    return first_value_ + segment * (kGroupLanes * kSegmentValues);
  }
  UZIP_DEVICE uint32_t valid(unsigned first) const {
    return kWhole ? 0xffu : valid_bits(first, values_);
  }
  UZIP_DEVICE unsigned raw_field_bytes() const {
    return Format::kFieldShift == 0 ? (values() + 7) / 8 * 8
                                    : packed_bytes(values(), Format::kFieldBits);
  }

  /// Sets plan_.levels to 0 and leaves the image to others when the levels don't pay.
  template <class LoadField, class Publish>
  UZIP_DEVICE void code_levels(const LoadField& load_field, const Publish& publish) {
    const unsigned width = plan_.width[0];
    uint32_t bits[kMostWidth];
    const uint32_t escaped = code_level_0(bits);
    const SegmentRanks ranks = rank_segments(escaped, work_.sums, 0);
    uint32_t counts[kMostDeviceLevels] = {ranks.total, 0};
    uint32_t last = ranks.total;
    unsigned written = packed_bytes(values(), width);
    const bool two = plan_.levels == 2;
    if (!pays(written + (two ? packed_bytes(last, plan_.width[1]) : (last + 7) / 8 * 8))) return;
    if (two) {
      list_many_escapes(escaped, ranks, work_.list);
      sync_coders();
      counts[1] = code_second_level(work_.list, last, pack_plan(plan_), image_ + described_ + written,
                                    image_ + kImageBytes, work_.sums);
      written += packed_bytes(last, plan_.width[1]);
      last = counts[1];
      if (!pays(written + (last + 7) / 8 * 8)) return sync_coders();
    }
    finish(written + (last + 7) / 8 * 8, publish);
    store_words(bits);
    if (!two) list_few_escapes(escaped, ranks, load_field, image_ + described_ + written);
    for (unsigned i = described_ + written + last + thread_index(); i < coded_bytes_; i += kThreads)
      image_[i] = 0;
    write_descriptor(counts);
  }

  UZIP_DEVICE bool pays(unsigned section_bytes) {
    if (section_bytes + described_ <= raw_field_bytes() + 16) return true;
    plan_.store_fields();
    return false;
  }

  template <class Publish>
  UZIP_DEVICE void finish(unsigned section_bytes, const Publish& publish) {
    coded_bytes_ = (described_ + section_bytes + 15) / 16 * 16;
    publish(coded_bytes_);
  }

  UZIP_DEVICE void write_descriptor(const uint32_t (&counts)[kMostDeviceLevels]) const {
    const unsigned w = thread_index();
    if (w < described_ / 4)
      reinterpret_cast<uint32_t*>(image_)[w] =
          descriptor_word<Format>(w, plan_, values(), counts);
  }

  static constexpr unsigned kMostWidth = 4;

  /// Codes of all fields, byte i of bits[b] for segment i; returns which are escapes.
  UZIP_DEVICE uint32_t code_level_0(uint32_t (&bits)[kMostWidth]) const {
    UZIP_UNROLL
    for (unsigned b = 0; b < kMostWidth; ++b) bits[b] = 0;
    switch (plan_.width[0]) {
      case 1: return code_level_0_of<1>(bits);
      case 2: return code_level_0_of<2>(bits);
      case 3: return code_level_0_of<3>(bits);
      default: return code_level_0_of<4>(bits);
    }
  }

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
  UZIP_DEVICE uint32_t code_level_0_of(uint32_t (&bits)[kMostWidth]) const {
    const uint32_t minus_base = ((0u - plan_.base[0]) & 0xffu) * 0x01000100u;
    uint32_t pairs[kSegments];
    UZIP_UNROLL
    for (unsigned i = 0; i < kSegments; ++i)
      pairs[i] = pair_nibbles(codes_of<kWidth>(fields_[i][0], minus_base),
                              codes_of<kWidth>(fields_[i][1], minus_base));
    uint32_t exist = ~0u;
    if constexpr (!kWhole) {
      exist = 0;
      UZIP_UNROLL
      for (unsigned i = 0; i < kSegments; ++i) exist |= valid(first_value_of(i)) << (8 * i);
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

  UZIP_DEVICE void store_words(const uint32_t (&bits)[kMostWidth]) {
    const unsigned width = plan_.width[0];
    UZIP_UNROLL
    for (unsigned b = 0; b < kMostWidth; ++b) {
      if (b >= width) continue;
      UZIP_UNROLL
      for (unsigned i = 0; i < kSegments; ++i)
        put_bits(image_ + described_, first_value_of(i), width, b, byte_of(bits[b], i), values());
    }
  }

  /// The escaped fields, in the order of the values. A thread has one or two of 32: it loads them
  /// again, because registers can't be indexed.
  template <class LoadField>
  UZIP_DEVICE void list_few_escapes(uint32_t escaped, const SegmentRanks& ranks,
                                    const LoadField& load_field, uint8_t* list) const {
    const ThreadRanks by_number(escaped, ranks);
    uint32_t number = 0;
    for (uint32_t mask = escaped; mask != 0; mask &= mask - 1, ++number) {
      const unsigned bit = lowest_bit(mask);
      list[by_number.rank(bit / 8, number)] =
          static_cast<uint8_t>(load_field(first_value_of(bit / 8) + bit % 8));
    }
  }

  /// The same without branches.
  UZIP_DEVICE void list_many_escapes(uint32_t escaped, const SegmentRanks& ranks,
                                     uint8_t* list) const {
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
  UZIP_DEVICE void store_fields() {
    uint8_t* const dst = image_ + described_;
    UZIP_UNROLL
    for (unsigned i = 0; i < kSegments; ++i) {
      const unsigned first = first_value_of(i);
      const uint32_t exists = valid(first);
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
    for (unsigned i = described_ + raw_field_bytes() + thread_index(); i < coded_bytes_;
         i += kThreads)
      image_[i] = 0;
  }

  const uint32_t (&fields_)[kSegments][2];
  unsigned first_value_;
  unsigned values_;
  uint8_t* image_;
  EncodeWork& work_;
  LevelPlan plan_{};
  unsigned described_ = 0;
  unsigned coded_bytes_ = 0;
};

}  // namespace uzip::gpu
