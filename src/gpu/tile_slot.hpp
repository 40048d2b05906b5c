// Where a tile is coded in shared memory, and what is known of it then. Used by the tile encoders and the kernels with them.
#pragma once

#include "gpu/field_coder.hpp"

namespace uzip::gpu {

/// Whether the plain bytes of a tile wait in shared memory until their place is known. Else the
/// values are read once more then, from the second-level cache.
template <class Format>
inline constexpr bool kKeepsPlain = Format::kSize <= (kHasLargeBlocks ? 4 : 2);

/// A tile that is coded, until its place is known.
template <class Format>
struct TileSlot {
  alignas(16) uint8_t image[kImageBytes<Format>];  ///< coded bytes
  alignas(16) uint8_t plain[kKeepsPlain<Format> ? Format::plain_bytes(Format::kTileValues) : 16];
};

/// What is known of a coded tile.
struct CodedTile {
  uint32_t values;
  uint32_t coded_bytes;
  bool constant;
};

/// Zeros behind the plain bytes of a tile that is not whole.
template <class Format>
UZIP_DEVICE void pad_plain(uint8_t* plain, unsigned values) {
  const unsigned used =
      Format::low_bytes(values) + Format::kLowerPlanes * Format::plane_bytes(values);
  if (used < Format::plain_bytes(values) && thread_index() == 0)
    *reinterpret_cast<uint2*>(plain + used) = make_uint2(0, 0);
}

/// Codes the fields of a tile. Publishes with `publish(coded_bytes)` as soon as that is known.
template <class Encoder, class Format, class Publish>
UZIP_DEVICE CodedTile code_tile(const Encoder& encoder, const LevelPlan& plan,
                                EncodeWork<Format>& work, TileSlot<Format>& slot,
                                const Publish& publish) {
  const auto fields = encoder.fields();
  FieldCoder coder(fields, slot.image, work);
  const unsigned bytes = coder.code(plan, publish);
  return {encoder.values(), bytes, false};
}

/// The same of a tile whose values all have the same bits.
template <class Encoder, class Format, class Publish>
UZIP_DEVICE CodedTile code_constant_tile(const Encoder& encoder, TileSlot<Format>& slot,
                                         const Publish& publish) {
  constexpr unsigned kBytes = 32;
  publish(kBytes);
  const unsigned w = thread_index();
  if (w < kBytes / 4) {
    uint32_t word = 0;
    if (w == 0) word = static_cast<uint32_t>(BlockKind::kConstant);
    if (w == 1) word = encoder.values();
    if (w == 2) word = static_cast<uint32_t>(encoder.first_bits());
    if (w == 3) word = static_cast<uint32_t>(encoder.first_bits() >> 32);
    reinterpret_cast<uint32_t*>(slot.image)[w] = word;
  }
  return {encoder.values(), kBytes, true};
}

}  // namespace uzip::gpu
