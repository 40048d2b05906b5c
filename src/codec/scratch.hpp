// The working memory behind CodecScratch: room for one block in every form it takes.
#pragma once

#include "codec/block.hpp"
#include "codec/codec.hpp"
#include "codec/cpu/kernels.hpp"

namespace uzip {

struct CodecScratch::State {
  static constexpr size_t kBytes = kMaxBlockValues + kKernelSlack;
  /// Values that go through several kernels do so in pieces of this size.
  static constexpr size_t kPieceBytes = size_t{64} << 10;

  BlockSections sections[16];  ///< of a frame's first blocks, while it is decoded
  alignas(64) uint8_t planes[kMaxTypeSize][kBytes];
  alignas(64) uint8_t low[kBytes];         ///< stored bits of a plane that also has fields
  alignas(64) uint8_t escapes[2][kBytes];  ///< of two neighbouring levels
  alignas(64) uint8_t discarded[kBytes];   ///< what the other stage writes
  alignas(64) uint8_t kept_bits[kMaxBlockValues / 8 + kKernelSlack];
  alignas(64) uint8_t sign_bits[kMaxBlockValues / 8 + kKernelSlack];
  alignas(64) uint8_t values[kMaxBlockValues * kMaxTypeSize + kKernelSlack];
  alignas(64) uint8_t piece[kPieceBytes + kKernelSlack];
  alignas(64) uint8_t piece_planes[kPieceBytes + kMaxTypeSize * kKernelSlack];  ///< the planes of as many values
};

}  // namespace uzip
