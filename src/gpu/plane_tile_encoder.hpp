// Codes a tile of 8192 values of 16 bits and more in shared memory: splits them into byte planes, samples them, and builds the
// tile's coded and plain bytes there. Used through tile_encoder.hpp.
#pragma once

#include "gpu/byte_fields.hpp"
#include "gpu/tile_slot.hpp"

namespace uzip::gpu {

/// Encodes tiles. `kWhole`: they have all their values, and these are aligned to 16 bytes.
/// `kKeeps`: plain bytes are kept in registers until there is a place for them.
template <class Format, bool kWhole, bool kKeeps>
class PlaneTileEncoder {
 public:
  static constexpr unsigned kSize = Format::kSize;

  /// The tile's values.
  UZIP_DEVICE PlaneTileEncoder(const uint8_t* src, unsigned values)
      : segments_(thread_index(), values), src_(src) {}

  /// Reads the tile, and counts some of its fields; ends with a barrier. Plain bytes that are not
  /// kept go to `plain`, unless it is null. False: all values are the same.
  UZIP_DEVICE bool read(uint32_t* bins, uint32_t* samples, uint8_t* plain) {
    first_ = load_first();
    bool differs = false;
    UZIP_UNROLL
    for (unsigned i = 0; i < kSegments; ++i) {
      const Words<kSize> words = load(segments_.first_of(i));
      // One look is enough for nearly all tiles.
      differs |= kWhole ? word_differs(words, 0) : any_differs(words);
      const Planes<kSize> planes = split_values<kSize>(words);
      UZIP_UNROLL
      for (unsigned half = 0; half < 2; ++half)
        fields_[i][half] = planes.plane[kSize - 1][half] >> Format::kFieldShift &
                           repeat_byte(0xffu >> Format::kFieldShift);
      if constexpr (kKeeps)
        planes_[i] = planes;
      else if (plain != nullptr)
        write_plain(plain, segments_.first_of(i), planes);
    }
    if constexpr (!kWhole)
      if (plain != nullptr) pad_plain<Format>(plain, values());
    count_sample(0, fields_[0][0] & 0xffu, bins, samples);
    count_sample(2, fields_[2][1] & 0xffu, bins, samples);
    if (sync_coders_or(differs)) return true;
    if constexpr (kWhole) {
      UZIP_UNROLL
      for (unsigned i = 0; i < kSegments; ++i) differs |= any_differs(load(segments_.first_of(i)));
      return sync_coders_or(differs);
    }
    return false;
  }

  /// Puts the plain bytes in the slot, if they are kept.
  UZIP_DEVICE void keep_plain(TileSlot<Format>& slot) const {
    if constexpr (kKeeps) {
      UZIP_UNROLL
      for (unsigned i = 0; i < kSegments; ++i)
        write_plain(slot.plain, segments_.first_of(i), planes_[i]);
      if constexpr (!kWhole) pad_plain<Format>(slot.plain, values());
    }
  }

  UZIP_DEVICE ByteFields<Format, kWhole> fields() const { return {fields_, segments_, src_}; }
  UZIP_DEVICE unsigned values() const { return segments_.values(); }
  /// The bits of the tile's first value.
  UZIP_DEVICE uint64_t first_bits() const { return first_; }

  /// Reads a tile once more, for its plain bytes.
  UZIP_DEVICE void copy_plain(uint8_t* plain) {
    UZIP_UNROLL
    for (unsigned i = 0; i < kSegments; ++i) {
      const unsigned first = segments_.first_of(i);
      write_plain(plain, first, split_values<kSize>(load(first)));
    }
    if constexpr (!kWhole) pad_plain<Format>(plain, values());
  }

 private:
  UZIP_DEVICE uint64_t load_first() const {
    if constexpr (!kWhole) return load_value<kSize>(src_);
    if constexpr (kSize == 2) return *reinterpret_cast<const uint16_t*>(src_);
    if constexpr (kSize == 4) return *reinterpret_cast<const uint32_t*>(src_);
    return *reinterpret_cast<const uint64_t*>(src_);
  }

  UZIP_DEVICE Words<kSize> load(unsigned first) const {
    if constexpr (kWhole) {
      return load_values<kSize>(src_ + first * kSize);
    } else {
      const unsigned count = first < values() ? values() - first : 0;
      return load_some_values<kSize>(src_ + first * kSize,
                                     count < kSegmentValues ? count : kSegmentValues, first_);
    }
  }

  UZIP_DEVICE void count_sample(unsigned segment, uint32_t field, uint32_t* bins,
                                uint32_t* samples) const {
    if (!kWhole && segments_.first_of(segment) + (segment == 0 ? 0 : 4) >= values()) return;
    atomic_add(&bins[field], 1);
    if constexpr (!kWhole) atomic_add(samples, 1);
  }

  UZIP_DEVICE bool word_differs(const Words<kSize>& words, unsigned i) const {
    uint32_t low = static_cast<uint32_t>(first_);
    if constexpr (kSize == 2) low |= low << 16;
    const uint32_t high = kSize == 8 ? static_cast<uint32_t>(first_ >> 32) : low;
    return ((words.word[i] ^ low) | (words.word[i + 1] ^ high)) != 0;
  }
  UZIP_DEVICE bool any_differs(const Words<kSize>& words) const {
    bool differs = false;
    UZIP_UNROLL
    for (unsigned i = 0; i < 2 * kSize; i += 2) differs |= word_differs(words, i);
    return differs;
  }

  /// Eight values' bits below the fields, and their lower planes.
  UZIP_DEVICE void write_plain(uint8_t* plain, unsigned first,
                               const Planes<kSize>& planes) const {
    const uint32_t exists = segments_.valid(first);
    if constexpr (Format::kFieldShift > 0) {
      const uint32_t low = repeat_byte(Format::kLowMask);
      const uint32_t pairs =
          pair_nibbles(planes.plane[kSize - 1][0] & low, planes.plane[kSize - 1][1] & low);
      UZIP_UNROLL
      for (unsigned b = 0; b != Format::kFieldShift; ++b)
        put_bits(plain, first, Format::kFieldShift, b, gather_paired_bits(pairs, b) >> 24 & exists,
                 values());
    }
    if (exists == 0) return;
    uint8_t* const dst = plain + Format::low_bytes(values()) + first;
    uint32_t mask[2] = {~0u, ~0u};
    if (exists != 0xffu) {
      mask[0] = scatter_bits(exists & 15u) * 0xffu;
      mask[1] = scatter_bits(exists >> 4) * 0xffu;
    }
    UZIP_UNROLL
    for (unsigned p = 0; p != Format::kLowerPlanes; ++p)
      *reinterpret_cast<uint2*>(dst + (kSize - 2 - p) * Format::plane_bytes(values())) =
          make_uint2(planes.plane[p][0] & mask[0], planes.plane[p][1] & mask[1]);
  }

  ThreadSegments<Format, kWhole> segments_;
  const uint8_t* src_;
  uint64_t first_ = 0;  ///< the bits of the tile's first value
  Planes<kKeeps ? kSize : 1> planes_[kSegments];
  uint32_t fields_[kSegments][2];
};

}  // namespace uzip::gpu
