// Codes the fields of a tile's top plane in one or two levels, or stores them, and builds the tile's
// coded bytes in shared memory. Used by the tile encoders, which hold the fields in different ways.
#pragma once

#include "gpu/encode_descriptor.hpp"
#include "gpu/second_level.hpp"

namespace uzip::gpu {

/// Of a tile: descriptor, and the fields as they are.
template <class Format>
inline constexpr unsigned kImageBytes = Format::field_bytes(Format::kTileValues) + 256;

/// What all threads of a block share to plan and to code a tile.
template <class Format>
struct EncodeWork {
  ScanSums sums;
  alignas(16) uint8_t list[Format::kTileValues];  ///< fields that level 0 lacks, if there is a second one
  uint32_t bins[2][kHistogramBins + kHistogramPadding];  ///< of tiles in turn
  uint32_t samples;  ///< in the bins, if that is not kSamples
  uint32_t plan;     ///< pack_plan()
};

/// `Fields`: ByteFields or SlicedFields, each thread's of a tile.
template <class Format, class Fields>
class FieldCoder {
 public:
  UZIP_DEVICE FieldCoder(const Fields& fields, uint8_t* image, EncodeWork<Format>& work)
      : fields_(fields), image_(image), work_(work) {}

  /// Returns the number of coded bytes, and calls `publish` with it as early as possible.
  template <class Publish>
  UZIP_DEVICE unsigned code(const LevelPlan& plan, const Publish& publish) {
    plan_ = plan;
    described_ = described_bytes<Format>(plan_);
    if (plan_.levels > 0) code_levels(publish);
    if (plan_.levels > 0) return coded_bytes_;
    const uint32_t counts[kMostDeviceLevels] = {0, 0};
    described_ = described_bytes<Format>(plan_);
    finish(raw_field_bytes(), publish);
    fields_.store(image_ + described_);
    pad(raw_field_bytes());
    write_descriptor<Format>(image_, plan_, values(), counts);
    return coded_bytes_;
  }

 private:
  UZIP_DEVICE unsigned values() const { return fields_.values(); }
  UZIP_DEVICE unsigned raw_field_bytes() const { return Format::field_bytes(values()); }

  /// Sets plan_.levels to 0 and leaves the image to others when the levels don't pay.
  template <class Publish>
  UZIP_DEVICE void code_levels(const Publish& publish) {
    const unsigned width = plan_.width[0];
    typename Fields::Codes codes;
    const auto escaped = fields_.code(width, plan_.base[0], codes);
    const auto ranks = fields_.rank(escaped, work_.sums, 0);
    uint32_t counts[kMostDeviceLevels] = {ranks.total, 0};
    uint32_t last = ranks.total;
    unsigned written = packed_bytes(values(), width);
    const bool two = plan_.levels == 2;
    if (!pays(written + (two ? packed_bytes(last, plan_.width[1]) : (last + 7) / 8 * 8))) return;
    if (two) {
      fields_.list_many(escaped, ranks, work_.list);
      sync_coders();
      counts[1] = code_second_level<Format>(work_.list, last, pack_plan(plan_), image_ + described_ + written,
                                    image_ + kImageBytes<Format>, work_.sums);
      written += packed_bytes(last, plan_.width[1]);
      last = counts[1];
      if (!pays(written + (last + 7) / 8 * 8)) return sync_coders();
    }
    finish(written + (last + 7) / 8 * 8, publish);
    fields_.store_codes(codes, width, image_ + described_);
    if (!two) fields_.list_few(escaped, ranks, image_ + described_ + written);
    pad(written + last);
    write_descriptor<Format>(image_, plan_, values(), counts);
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

  /// Zeros behind so many bytes of sections, by one group: they end at the next multiple of 8, the tile at one of 16.
  UZIP_DEVICE void pad(unsigned section_bytes) const {
    const unsigned at = described_ + section_bytes + lane_index();
    if (group_index() == kGroups / 2 && at < coded_bytes_) image_[at] = 0;
  }

  const Fields& fields_;
  uint8_t* image_;
  EncodeWork<Format>& work_;
  LevelPlan plan_{};
  unsigned described_ = 0;
  unsigned coded_bytes_ = 0;
};

}  // namespace uzip::gpu
