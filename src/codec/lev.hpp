// Codec 1: level coding of floats. docs/FORMAT.md, section 3.
#pragma once

#include "codec/codec.hpp"

namespace uzip {

extern const Codec kLevCodec;

/// Which parts an encoding writes.
enum class LevStage : uint8_t { kPlain, kCoded, kBoth };

/// Encodes a frame, or the part of it that `stage` names, to `body`. May make the frame raw
/// (kPlain, kBoth).
Status lev_encode(LevStage stage, DataType type, CodecLevel level, const void* src, size_t count,
                  std::span<std::byte> body, CodecScratch& scratch, FrameHeader& header);

/// Decodes a frame of this codec.
Status lev_decode(const FrameHeader& header, std::span<const std::byte> plain,
                  std::span<const std::byte> coded, std::span<std::byte> dst, bool streams,
                  CodecScratch& scratch);

/// Most bytes of either part of a frame of `count` elements.
EncodedSizes lev_bound(DataType type, size_t count);

}  // namespace uzip
