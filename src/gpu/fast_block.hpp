// The descriptors of the blocks that devices write, and of those of CPUs that look like them: lower
// planes as they are, and a top plane whose fields are coded in at most two levels, or stored. Used
// by the fast decoder; all other blocks are left to the general one.
#pragma once

#include "codec/block.hpp"
#include "gpu/encode_descriptor.hpp"

namespace uzip::gpu {

inline constexpr unsigned kDecodeImageBytes = kTileValues + 256;

/// Where things are in the coded bytes of a block. Every thread has its own: reading it costs less
/// than waiting for another that reads.
struct FastBlock {
  uint32_t levels;
  uint32_t width0, width1;  ///< 0 for levels that are not there
  uint32_t count0, count1;  ///< escapes of the levels
  uint32_t symbols_at;      ///< those of level 0, and behind them those of level 1
  uint32_t words0_at, words1_at;  ///< levels == 0: words0_at is where the fields are
  uint32_t escapes_at;      ///< of the last level

  UZIP_DEVICE unsigned symbols0() const { return (1u << width0) - 1; }
  UZIP_DEVICE unsigned symbols1() const { return (1u << width1) - 1; }
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
  block->levels = head.w & 0xffu;
  block->width0 = head.w >> 8 & 15u;
  block->width1 = head.w >> 12;
  if (block->levels > kMostDeviceLevels || block->width0 > kMostWidth ||
      block->width1 > kMostWidth || (block->width0 > 0) != (block->levels > 0) ||
      (block->width1 > 0) != (block->levels > 1))
    return false;
  block->count0 = block->levels > 0 ? image_word(image, 16) : 0;
  block->count1 = block->levels > 1 ? image_word(image, 20) : 0;
  if (block->count0 > values || block->count1 > block->count0) return false;
  block->symbols_at = 16 + 4 * block->levels;
  const unsigned symbols = block->symbols0() + block->symbols1();
  if constexpr (Format::kFieldBits < 8) {
    const bool wrong = lane_index() < symbols &&
                       image[block->symbols_at + lane_index()] >> Format::kFieldBits != 0;
    if (ballot(wrong) != 0) return false;
  }
  unsigned at = block->symbols_at + (symbols + 3) / 4 * 4;
  UZIP_UNROLL
  for (unsigned p = 0; p != Format::kLowerPlanes; ++p, at += 4)
    if (image_word(image, at) != kPlaneAsItIs) return false;
  at = (at + 7) / 8 * 8;
  block->words0_at = at;
  if (block->levels == 0) {
    at += Format::kFieldShift == 0 ? Format::plane_bytes(values)
                                   : packed_bytes(values, Format::kFieldBits);
  } else {
    at += packed_bytes(values, block->width0);
    block->words1_at = at;
    at += packed_bytes(block->count0, block->width1);
    block->escapes_at = at;
    at += ((block->levels == 1 ? block->count0 : block->count1) + 7) / 8 * 8;
  }
  return at <= coded_bytes && at <= kDecodeImageBytes;
}

}  // namespace uzip::gpu
