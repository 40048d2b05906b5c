// Codes a tile of 8192 8-bit values in shared memory. Used through tile_encoder.hpp.
#pragma once

#include "gpu/sliced_fields.hpp"
#include "gpu/tile_slot.hpp"

namespace uzip::gpu {

/// As PlaneTileEncoder.
template <class Format, bool kWhole, bool kKeeps>
class SlicedTileEncoder {
 public:
  UZIP_DEVICE SlicedTileEncoder(const uint8_t* src, unsigned values)
      : first_(first_sliced(thread_index())), src_(src), values_(values) {}

  UZIP_DEVICE bool read(uint32_t* bins, uint32_t* samples, uint8_t* plain) {
    first_value_ = src_[0];
    Words<1> own[kSegments];
    load(own);
    bool differs = false;
    UZIP_UNROLL
    for (unsigned i = 0; i < kSegments; ++i)
      differs |= ((own[i].word[0] ^ repeat_byte(first_value_)) |
                  (own[i].word[1] ^ repeat_byte(first_value_))) != 0;
    count_sample(0, own[0].word[0], bins, samples);
    count_sample(20, own[2].word[1], bins, samples);
    slices_ = slice_values(own);
    if (!kKeeps && plain != nullptr) write_plain(plain);
    return sync_coders_or(differs);
  }

  UZIP_DEVICE void keep_plain(TileSlot<Format>& slot) const {
    if constexpr (kKeeps) write_plain(slot.plain);
  }

  template <class Publish>
  UZIP_DEVICE CodedTile code(const LevelPlan& plan, EncodeWork& work, TileSlot<Format>& slot,
                             const Publish& publish) const {
    const SlicedFields<Format, kWhole> fields(slices_, first_, values_, src_);
    FieldCoder<Format, kWhole, SlicedFields<Format, kWhole>> coder(fields, values_, slot.image, work);
    const unsigned bytes = coder.code(plan, publish);
    return {values(), bytes, false};
  }

  template <class Publish>
  UZIP_DEVICE CodedTile code_constant(TileSlot<Format>& slot, const Publish& publish) const {
    return code_constant_tile(slot.image, values(), first_value_, publish);
  }

 private:
  UZIP_DEVICE unsigned values() const { return kWhole ? kTileValues : values_; }

  UZIP_DEVICE void load(Words<1> (&own)[kSegments]) const {
    if constexpr (kWhole) {
      load_sliced(src_ + first_, own);
    } else {
      UZIP_UNROLL
      for (unsigned i = 0; i < kSegments; ++i) own[i] = load_some(first_ + i * kSegmentValues);
    }
  }
  UZIP_DEVICE Words<1> load_some(unsigned first) const {
    const unsigned count = first < values_ ? values_ - first : 0;
    return load_some_values<1>(src_ + first, count < kSegmentValues ? count : kSegmentValues,
                               first_value_);
  }

  /// Counts the field of the lowest byte, that of the thread's value `index`.
  UZIP_DEVICE void count_sample(unsigned index, uint32_t word, uint32_t* bins,
                                uint32_t* samples) const {
    if (!kWhole && first_ + index >= values_) return;
    constexpr uint32_t kFields = (1u << Format::kFieldBits) - 1;
    atomic_add(&bins[word >> (Format::kFieldShift - 1) & kFields], 1);
    if constexpr (!kWhole) atomic_add(samples, 1);
  }

  UZIP_DEVICE void write_plain(uint8_t* plain) const {
    const uint32_t exist = kWhole ? ~0u : sliced_valid(first_, values_);
    UZIP_UNROLL
    for (unsigned b = 0; b < Format::kFieldShift; ++b)
      store_slice(plain, first_, Format::kFieldShift, b, slices_.bit[b] & exist, values());
    if constexpr (!kWhole) pad_plain<Format>(plain, values_);
  }

  unsigned first_;  ///< of this thread's values, in the tile
  const uint8_t* src_;
  unsigned values_;
  uint32_t first_value_ = 0;  ///< the bits of the tile's first value
  Slices slices_;
};

}  // namespace uzip::gpu
