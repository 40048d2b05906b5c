// Reduction straight from frames: decodes a piece of every frame into the cache and reduces it
// there, so that the decoded operands never go to memory. The same bits as decoding everything and
// then base/reduce.hpp's reduce().
#pragma once

#include "base/reduce.hpp"
#include "codec/codec.hpp"

#include <cstddef>
#include <span>

namespace uzip {

/// One operand: plain elements, or a frame.
struct ReduceOperand {
  const void* elements = nullptr;       ///< null: a frame
  const FrameHeader* header = nullptr;  ///< of any codec
  std::span<const std::byte> plain;
  std::span<const std::byte> coded;
};

inline constexpr size_t kMostReduceOperands = 64;

/// Working memory for `frames` operands that are frames: this many bytes, whatever the count.
size_t reduce_frames_bytes(DataType type, size_t frames);

/// dst[i] = operands[0][i] op operands[1][i] op ..., as reduce(). `dst` may be the elements of an
/// operand, not part of a frame. Every frame must hold `count` elements of `type`.
/// UZIP_ERR_CORRUPT: a frame is damaged or doesn't fit; found before anything is written. For that,
/// a frame with a checksum is decoded twice. UZIP_ERR_INVALID: `work` is too small.
Status reduce_frames(ReduceOp op, DataType type, void* dst, std::span<const ReduceOperand> operands,
                     size_t count, size_t average_over, std::span<std::byte> work,
                     CodecScratch& scratch);

}  // namespace uzip
