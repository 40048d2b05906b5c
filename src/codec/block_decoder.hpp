// Decodes one block of a lev frame: all steps but the last at once, the last in pieces that the
// caller takes one after another. Used by LevReader.
#pragma once

#include "codec/block.hpp"
#include "codec/cpu/kernels.hpp"
#include "codec/planner.hpp"
#include "codec/scratch.hpp"
#include "codec/sequence.hpp"

#include <array>

namespace uzip {

/// Counts what a block's codes and bits say: escapes of every level, values that are not zero. An
/// error when that contradicts the descriptor. Writes nothing but scratch.
Status check_block_codes(const CodecKernels& kernels, const LevTraits& traits,
                         const BlockSections& block, CodecScratch::State& scratch);

class SectionReader;

class BlockDecoder {
 public:
  /// `block` and `scratch` are left alone until the last take(). `room` holds all of the block's
  /// values, for a block whose last step can't be done in pieces.
  Status start(const CodecKernels& kernels, const LevTraits& traits, const BlockSections& block,
               CodecScratch::State& scratch, uint8_t* room);

  size_t left() const { return left_; }
  /// The next `count` values: a multiple of 64, or all that are left. Returns where they are:
  /// dst.values, or in `room`.
  const uint8_t* take(size_t count, const Output& dst);
  /// Whether the last step is done in pieces, so that take() hands Output::sum to a kernel.
  bool ends_in_kernel() const {
    return step_ != LastStep::kNone && (step_ != LastStep::kUndelta || traits_.size >= 4);
  }
  /// After the last value: an error when the codes contradicted the descriptor.
  Status finish() const;

 private:
  enum class LastStep : uint8_t { kNone, kTop, kMerge, kUndelta };

  bool fits_top_kernels(const BlockDescriptor& block) const;
  Status start_top(const BlockDescriptor& block, SectionReader& sections,
                   CodecScratch::State& scratch);
  Status start_planes(const BlockSections& block, CodecScratch::State& scratch);
  Status decode_whole(const BlockSections& block, CodecScratch::State& scratch, uint8_t* room);
  Status decode_kept(const BlockDescriptor& block, SectionReader& sections,
                     CodecScratch::State& scratch);
  void take_top(size_t count, const Output& dst);
  Status check_top() const;
  void take_planes(size_t count, const Output& dst);
  void merge_planes(size_t count, const Output& dst);

  const CodecKernels* kernels_ = nullptr;
  LevTraits traits_{};
  LastStep step_ = LastStep::kNone;
  size_t left_ = 0;
  const uint8_t* whole_ = nullptr;  ///< kNone: the next values
  // kTop
  ConstTopPlane top_{};
  unsigned width_ = 0;
  SymbolTable symbols_;
  const uint8_t* escapes_ = nullptr;
  size_t escapes_used_ = 0;
  size_t escapes_expected_ = 0;
  // kMerge, kUndelta
  CodecScratch::State* scratch_ = nullptr;
  std::array<SequenceDecoder, kMaxTypeSize> planes_;
  unsigned rotation_ = 0;
  uint64_t base_ = 0;  ///< kUndelta: the value before the next, rotated left by one
};

}  // namespace uzip
