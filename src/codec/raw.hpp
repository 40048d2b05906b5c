// The codec that leaves the elements as they are; also what other codecs fall back to.
#pragma once

#include "codec/codec.hpp"

namespace uzip {

extern const Codec kRawCodec;

/// Makes `header` describe `count` raw elements and leaves its stamp and flags alone. The body is
/// the source itself.
void make_raw(DataType type, size_t count, FrameHeader& header);

/// Decodes the body of a raw frame: compares the sizes, then copies.
Status decode_raw(const FrameHeader& header, std::span<const std::byte> plain,
                  std::span<const std::byte> coded, std::span<std::byte> dst);

}  // namespace uzip
