// Reads a lev frame block by block. Used by decode, which wants the whole frame, and by
// reduce_frames(), which wants pieces that stay in the cache.
#pragma once

#include "codec/block.hpp"
#include "codec/codec.hpp"
#include "codec/cpu/kernels.hpp"
#include "codec/lev_layout.hpp"
#include "codec/planner.hpp"
#include "codec/scratch.hpp"

namespace uzip {

class LevReader {
 public:
  /// Checks everything but the codes themselves. The parts must stay until the last next().
  Status open(const FrameHeader& header, std::span<const std::byte> plain,
              std::span<const std::byte> coded);

  size_t count() const { return count_; }
  /// Values in every block but the last.
  size_t block_values() const { return size_t{1} << log2_; }

  /// Decodes the next block to `dst`, which has room for it. Not after the last one. An error says
  /// that the codes contradict the descriptor.
  Status next(CodecScratch::State& scratch, const Output& dst);

 private:
  struct Block {
    std::span<const std::byte> plain;
    std::span<const std::byte> coded;
    size_t values = 0;
  };

  Status check_table();
  Block block(size_t index, size_t plain_begin, size_t coded_begin) const;
  Status decode_block(const Block& block, CodecScratch::State& scratch, const Output& dst);
  bool fits_top_kernels(const BlockDescriptor& descriptor) const;

  const CodecKernels* kernels_ = nullptr;
  LevTraits traits_{};
  size_t count_ = 0;
  std::span<const std::byte> plain_;
  std::span<const std::byte> coded_;
  unsigned log2_ = 0;
  size_t blocks_ = 0;
  // The next block.
  size_t next_ = 0;
  size_t plain_begin_ = 0;
  size_t coded_begin_ = 0;
};

}  // namespace uzip
