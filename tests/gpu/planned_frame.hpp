// Encodes a lev frame on the CPU as the descriptors of another frame plan it, so that the bytes that
// a device wrote can be compared with the CPU's for the same plan. Used by the tests of src/gpu.
#pragma once

#include "codec/codec_harness.hpp"

namespace uzip {

/// The frame that the CPU's kernels write for `elements` with the plans of `frame`'s blocks: the
/// same blocks, and in each the same widths, symbols and places. Escapes are counted anew.
EncodedFrame encode_as_planned(const EncodedFrame& frame, std::span<const uint8_t> elements);

}  // namespace uzip
