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

/// Word `w` of the descriptor, padding included. `counts` are the escapes of the levels.
template <class Format>
UZIP_DEVICE uint32_t descriptor_word(unsigned w, const LevelPlan& plan, unsigned values,
                                     const uint32_t (&counts)[kMostDeviceLevels]) {
  if (w == 0) return static_cast<uint32_t>(BlockKind::kPlanes);
  if (w == 1) return values;
  if (w == 2)
    return Format::kFieldShift | Format::kLowMask << 8 |
           static_cast<uint32_t>(kFieldsInCoded) << 24;
  if (w == 3) return plan.levels | plan.width[0] << 8 | plan.width[1] << 12;
  w -= 4;
  if (w < plan.levels) return w == 0 ? counts[0] : counts[1];
  w -= plan.levels;
  const unsigned symbols = plan.symbols0() + plan.symbols1();
  const unsigned symbol_words = (symbols + 3) / 4;
  if (w >= symbol_words)
    // Of types without lower planes there are none to compare with.
    return static_cast<int>(w - symbol_words) < static_cast<int>(Format::kLowerPlanes)
               ? kPlaneAsItIs
               : 0;
  uint32_t word = 0;
  for (unsigned k = 0; k < 4 && 4 * w + k < symbols; ++k) word |= plan.symbol(4 * w + k) << (8 * k);
  return word;
}

}  // namespace uzip::gpu
