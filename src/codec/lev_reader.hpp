// Reads a lev frame block by block. Used by decode, which wants the whole frame, and by
// reduce_frames(), which wants pieces that stay in the cache.
#pragma once

#include "codec/block_decoder.hpp"
#include "codec/codec.hpp"
#include "codec/cpu/kernels.hpp"
#include "codec/lev_layout.hpp"
#include "codec/planner.hpp"
#include "codec/scratch.hpp"

namespace uzip {

class LevReader {
 public:
  /// Checks everything but the codes themselves. The parts must stay until the last next(), and so
  /// must `kept`, where what the first blocks say is kept instead of read again.
  Status open(const FrameHeader& header, std::span<const std::byte> plain,
              std::span<const std::byte> coded, std::span<BlockSections> kept = {});

  size_t count() const { return count_; }
  /// Values in every block but the last.
  size_t block_values() const { return size_t{1} << log2_; }

  /// Checks the codes, too, so that nothing decoded after it can be an error. Before the first
  /// block.
  Status check_codes(CodecScratch::State& scratch);

  /// Decodes the next block to `dst`, which has room for it. Not after the last one. An error says
  /// that the codes contradict the descriptor.
  Status next(CodecScratch::State& scratch, const Output& dst);

  /// The same in pieces, until nothing is left of the block; the last one is followed by
  /// block().finish(). Until then nobody else uses `scratch`, nor `room`, which holds a block.
  Status start_block(CodecScratch::State& scratch, uint8_t* room);
  BlockDecoder& block() { return decoder_; }

  /// Back to the first block.
  void rewind();

 private:
  Status check_table();
  /// Reads and checks the next block's descriptor.
  Status read_block(BlockSections* block);
  Status next_block(const BlockSections** block);
  void pass_block(LevTableEntry sizes);

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
  std::span<BlockSections> kept_;
  BlockSections block_;  ///< the last one that was read; to clear one each time takes longer than to read it
  BlockDecoder decoder_;
};

}  // namespace uzip
