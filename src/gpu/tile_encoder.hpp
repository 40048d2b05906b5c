// The encoder of a tile, by format. Used by the encode kernel, and by the kernel that stores tiles into other ranks' memory,
// which know where they belong.
#pragma once

#include "gpu/plane_tile_encoder.hpp"
#include "gpu/sliced_tile_encoder.hpp"

#include <type_traits>

namespace uzip::gpu {

template <class Format, bool kWhole, bool kKeeps = kKeepsPlain<Format>>
using TileEncoder = std::conditional_t<kIsSliced<Format>, SlicedTileEncoder<Format, kWhole, kKeeps>,
                                       PlaneTileEncoder<Format, kWhole, kKeeps>>;

}  // namespace uzip::gpu
