// Looks at a sample of a block and decides how to code it. A plan is a function of the block's
// elements, the type and the level alone, so both stages of an encoding, and every CPU, find the
// same one.
#pragma once

#include "codec/block.hpp"
#include "codec/codec.hpp"
#include "codec/cpu/kernels.hpp"

namespace uzip {

/// What is fixed for a type.
struct LevTraits {
  size_t size;          ///< bytes
  unsigned size_class;  ///< log2 of size
  unsigned top_shift;  ///< bits below the exponent in the top plane that belong into the plain part
};
LevTraits lev_traits(DataType type);

/// Log2 of the values in a block.
unsigned block_log2(DataType type, CodecLevel level, size_t count);

/// Plans the block of `count` values, 1 ... kMaxBlockValues. A constant block's exceptions are
/// counted.
void plan_block(const CodecKernels& kernels, DataType type, CodecLevel level, const uint8_t* src,
                size_t count, BlockDescriptor* plan);

/// False when a sample of the whole frame says that coding would save next to nothing.
bool coding_pays(DataType type, CodecLevel level, const uint8_t* src, size_t count);

/// The best record for a sequence that is at hand, from the histogram of all of it.
void plan_sequence(const uint8_t* bytes, size_t count, CodecLevel level, SequenceRecord* record);

}  // namespace uzip
