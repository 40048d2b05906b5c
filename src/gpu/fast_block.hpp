// The descriptors of the blocks that devices write, and of those of CPUs that look like them: lower
// planes as they are, and a top plane whose fields are coded in at most two levels, or stored. Used
// by the fast decoder; all other blocks are left to the general one.
#pragma once

#include "codec/block.hpp"
#include "gpu/encode_descriptor.hpp"

namespace uzip::gpu {

template <class Format>
inline constexpr unsigned kDecodeImageBytes = Format::field_bytes(Format::kTileValues) + 256;

/// Where things are in the coded bytes of a block. Every thread has its own: reading it costs less
/// than waiting for another that reads.
struct FastBlock {
  uint32_t plan;    ///< levels | widths << 8 and << 12, as in the descriptor; widths are 0 for levels that are not there
  uint32_t places;  ///< of level 0's words, or of fields that are stored, and << 16 of the last level's escapes
  uint32_t words1_at;
  uint32_t count0, count1;  ///< escapes of the levels

  UZIP_DEVICE unsigned levels() const { return plan & 0xffu; }
  UZIP_DEVICE unsigned width0() const { return plan >> 8 & 15u; }
  UZIP_DEVICE unsigned width1() const { return plan >> 12; }
  UZIP_DEVICE unsigned symbols0() const { return (1u << width0()) - 1; }
  UZIP_DEVICE unsigned symbols1() const { return (1u << width1()) - 1; }
  /// The symbols of level 0, and behind them those of level 1.
  UZIP_DEVICE unsigned symbols_at() const { return 16 + 4 * levels(); }
  UZIP_DEVICE unsigned words0_at() const { return places & 0xffffu; }
  UZIP_DEVICE unsigned escapes_at() const { return places >> 16; }
};

UZIP_DEVICE uint32_t image_word(const uint8_t* image, unsigned at) {
  return *reinterpret_cast<const uint32_t*>(image + at);
}

/// True when the block is of this kind, and all that its descriptor says is allowed. `image` has the
/// first kDecodeImageBytes of its `coded_bytes`, if there are so many. Called by all threads, with
/// the same result.
template <class Format>
UZIP_DEVICE bool read_fast_block(const uint8_t* image, unsigned coded_bytes, unsigned values,
                                 FastBlock* block) {
  constexpr uint32_t kTop = Format::kFieldShift | Format::kLowMask << 8 |
                            static_cast<uint32_t>(kFieldsInCoded) << 24;
  // So short a block is left to the general way, which looks at every length.
  if (coded_bytes < 16 + 4 * kMostDeviceLevels + 32 + 4 * Format::kLowerPlanes) return false;
  const uint4 head = *reinterpret_cast<const uint4*>(image);
  if (head.x != static_cast<uint32_t>(BlockKind::kPlanes) || head.y != values || head.z != kTop ||
      head.w >> 16 != 0)
    return false;
  FastBlock found;
  found.plan = head.w;
  const unsigned levels = found.levels();
  if (levels > kMostDeviceLevels || found.width0() > kMostWidth || found.width1() > kMostWidth ||
      (found.width0() > 0) != (levels > 0) || (found.width1() > 0) != (levels > 1))
    return false;
  found.count0 = levels > 0 ? image_word(image, 16) : 0;
  found.count1 = levels > 1 ? image_word(image, 20) : 0;
  if (found.count0 > values || found.count1 > found.count0) return false;
  const unsigned symbols = found.symbols0() + found.symbols1();
  if constexpr (Format::kFieldBits < 8) {
    const bool wrong = lane_index() < symbols &&
                       image[found.symbols_at() + lane_index()] >> Format::kFieldBits != 0;
    if (ballot(wrong) != 0) return false;
  }
  unsigned at = found.symbols_at() + (symbols + 3) / 4 * 4;
  UZIP_UNROLL
  for (unsigned p = 0; p != Format::kLowerPlanes; ++p, at += 4)
    if (image_word(image, at) != kPlaneAsItIs) return false;
  at = (at + 7) / 8 * 8;
  found.places = at;
  if (levels == 0) {
    at += Format::field_bytes(values);
  } else {
    at += packed_bytes(values, found.width0());
    found.words1_at = at;
    at += packed_bytes(found.count0, found.width1());
    found.places |= at << 16;
    at += ((levels == 1 ? found.count0 : found.count1) + 7) / 8 * 8;
  }
  *block = found;
  return at <= coded_bytes && at <= kDecodeImageBytes<Format>;
}

}  // namespace uzip::gpu
