// Codes a tile of 16384 8-bit values in shared memory. Used through tile_encoder.hpp.
#pragma once

#include "gpu/sliced_fields.hpp"
#include "gpu/tile_slot.hpp"

namespace uzip::gpu {

/// As PlaneTileEncoder.
template <class Format, bool kWhole, bool kKeeps>
class SlicedTileEncoder {
 public:
  UZIP_DEVICE SlicedTileEncoder(const uint8_t* src, unsigned values) : src_(src), values_(values) {}

  UZIP_DEVICE bool read(uint32_t* bins, uint32_t* samples, uint8_t* plain) {
    first_value_ = src_[0];
    Words<1> own[kSlicedParts][kSegments];
    UZIP_UNROLL
    for (unsigned p = 0; p < kSlicedParts; ++p) load(first(p), own[p]);
    bool differs = false;
    UZIP_UNROLL
    for (unsigned p = 0; p < kSlicedParts; ++p)
      UZIP_UNROLL
      for (unsigned i = 0; i < kSegments; ++i)
        differs |= ((own[p][i].word[0] ^ repeat_byte(first_value_)) |
                    (own[p][i].word[1] ^ repeat_byte(first_value_))) != 0;
    count_sample(first(0), own[0][0].word[0], bins, samples);
    count_sample(first(1) + 20, own[1][2].word[1], bins, samples);
    UZIP_UNROLL
    for (unsigned p = 0; p < kSlicedParts; ++p) slices_[p] = slice_values(own[p]);
    if (!kKeeps && plain != nullptr) write_plain(plain);
    return sync_coders_or(differs);
  }

  UZIP_DEVICE void keep_plain(TileSlot<Format>& slot) const {
    if constexpr (kKeeps) write_plain(slot.plain);
  }

  UZIP_DEVICE SlicedFields<Format, kWhole> fields() const { return {slices_, values_, src_}; }
  UZIP_DEVICE unsigned values() const { return kWhole ? Format::kTileValues : values_; }
  UZIP_DEVICE uint64_t first_bits() const { return first_value_; }

 private:
  UZIP_DEVICE static unsigned first(unsigned part) { return first_sliced(thread_index(), part); }

  UZIP_DEVICE void load(unsigned first, Words<1> (&own)[kSegments]) const {
    if constexpr (kWhole) {
      load_sliced(src_ + first, own);
    } else {
      UZIP_UNROLL
      for (unsigned i = 0; i < kSegments; ++i) own[i] = load_some(first + i * kSegmentValues);
    }
  }
  UZIP_DEVICE Words<1> load_some(unsigned first) const {
    const unsigned count = first < values_ ? values_ - first : 0;
    return load_some_values<1>(src_ + first, count < kSegmentValues ? count : kSegmentValues,
                               first_value_);
  }

  /// Counts the field of the lowest byte, that of value `index`.
  UZIP_DEVICE void count_sample(unsigned index, uint32_t word, uint32_t* bins,
                                uint32_t* samples) const {
    if (!kWhole && index >= values_) return;
    constexpr uint32_t kFields = (1u << Format::kFieldBits) - 1;
    atomic_add(&bins[word >> (Format::kFieldShift - 1) & kFields], 1);
    if constexpr (!kWhole) atomic_add(samples, 1);
  }

  UZIP_DEVICE void write_plain(uint8_t* plain) const {
    UZIP_UNROLL
    for (unsigned p = 0; p < kSlicedParts; ++p) {
      const uint32_t exist = kWhole ? ~0u : sliced_valid(first(p), values_);
      UZIP_UNROLL
      for (unsigned b = 0; b < Format::kFieldShift; ++b)
        store_slice(plain, first(p), Format::kFieldShift, b, slices_[p].bit[b] & exist, values());
    }
    if constexpr (!kWhole) pad_plain<Format>(plain, values_);
  }

  const uint8_t* src_;
  unsigned values_;
  uint32_t first_value_ = 0;  ///< the bits of the tile's first value
  Slices slices_[kSlicedParts];
};

}  // namespace uzip::gpu
