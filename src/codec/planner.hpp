// Looks at samples of a frame and decides how to code each block. A plan is a function of the
// frame's elements, the type and the level alone, so both stages of an encoding, and every CPU,
// find the same one.
#pragma once

#include "codec/block.hpp"
#include "codec/block_sample.hpp"
#include "codec/codec.hpp"
#include "codec/cpu/kernels.hpp"
#include "codec/plan_memory.hpp"

namespace uzip {

/// What is fixed for a type.
struct LevTraits {
  size_t size;          ///< bytes
  unsigned size_class;  ///< log2 of size
  unsigned top_shift;  ///< bits below the exponent in the top plane that belong into the plain part
  unsigned wide_exponent;  ///< bits of the exponent beyond 8
};
LevTraits lev_traits(DataType type);

/// Log2 of the values in a block.
unsigned block_log2(DataType type, CodecLevel level, size_t count);

/// The best record for a sequence that is at hand, from a sample of it and the bits that occur in
/// all of it.
void plan_sequence(const uint8_t* bytes, size_t count, CodecLevel level, uint8_t all_or,
                   uint8_t all_and, SequenceRecord* record);

/// Plans the blocks of a frame, in their order.
class Planner {
 public:
  Planner(DataType type, CodecLevel level);

  /// Looks at the frame's `count` values, before the first plan(). False: coding would save next to
  /// nothing.
  bool begin(const uint8_t* src, size_t count);

  /// Plans the next block, 1 ... kMaxBlockValues values. A constant block's exceptions are counted.
  /// `after` are the values that the frame has after this block.
  void plan(const CodecKernels& kernels, const uint8_t* src, size_t count, size_t after,
            BlockDescriptor* plan);

  /// What encoding the block that was planned last has found out, for those that follow.
  PlanMemory& memory() { return memory_; }

 private:
  bool probe(const uint8_t* src, size_t count, bool whole);
  bool probe_narrow_runs(const uint8_t* src, size_t count, size_t block);
  void remember(const BlockDescriptor& plan);
  void prefetch(const uint8_t* src, const SamplePlaces& places) const;

  DataType type_;
  LevTraits traits_;
  CodecLevel level_;
  BlockSample sample_;
  PlanMemory memory_;
  BlockDescriptor only_block_;  ///< of a frame with one block
  bool has_only_block_ = false;
};

}  // namespace uzip
