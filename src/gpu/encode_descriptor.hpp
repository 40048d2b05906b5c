// The descriptor of a block that a device encodes: one record of the top plane, and lower planes as
// they are. Used by the field coder.
#pragma once

#include "codec/block.hpp"
#include "gpu/encode_plan.hpp"
#include "gpu/value_planes.hpp"

namespace uzip::gpu {

/// Bytes of the descriptor of a block with this plan.
template <class Format>
UZIP_DEVICE unsigned described_bytes(const LevelPlan& plan) {
  const unsigned symbols = plan.symbols0() + plan.symbols1();
  const unsigned bytes = 16 + 4 * Format::kLowerPlanes + 4 * plan.levels + (symbols + 3) / 4 * 4;
  return (bytes + 7) / 8 * 8;
}

inline constexpr uint32_t kPlaneAsItIs = 8u | 0xffu << 8;

/// Writes the descriptor, padding included, each thread some of it. `counts` are the escapes of the levels.
template <class Format>
UZIP_DEVICE void write_descriptor(uint8_t* image, const LevelPlan& plan, unsigned values,
                                  const uint32_t (&counts)[kMostDeviceLevels]) {
  const unsigned lane = lane_index();
  const unsigned symbols = plan.symbols0() + plan.symbols1();
  const unsigned symbols_at = 16 + 4 * plan.levels;
  const unsigned planes_at = symbols_at + (symbols + 3) / 4 * 4;
  if (group_index() == 1 && lane < planes_at - symbols_at)
    image[symbols_at + lane] =
        static_cast<uint8_t>(lane < symbols ? plan.symbol(lane) : 0);
  if (group_index() == 2 && planes_at + 4 * lane < described_bytes<Format>(plan))
    *reinterpret_cast<uint32_t*>(image + planes_at + 4 * lane) =
        static_cast<int>(lane) < static_cast<int>(Format::kLowerPlanes) ? kPlaneAsItIs : 0;
  if (thread_index() != 0) return;
  *reinterpret_cast<uint4*>(image) =
      make_uint4(static_cast<uint32_t>(BlockKind::kPlanes), values,
                 Format::kFieldShift | Format::kLowMask << 8 |
                     static_cast<uint32_t>(kFieldsInCoded) << 24,
                 plan.levels | plan.width[0] << 8 | plan.width[1] << 12);
  if (plan.levels > 0) *reinterpret_cast<uint32_t*>(image + 16) = counts[0];
  if (plan.levels > 1) *reinterpret_cast<uint32_t*>(image + 20) = counts[1];
}

}  // namespace uzip::gpu
