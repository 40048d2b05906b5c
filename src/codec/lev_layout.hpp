// Where the parts of a lev frame begin; shared by encoder and decoder. docs/FORMAT.md, section 3.
#pragma once

#include "codec/block.hpp"

#include <cstdint>

namespace uzip {

/// In front of the coded part, then one LevTableEntry for each block.
struct LevHead {
  uint8_t block_log2 = 0;
  uint8_t reserved[3] = {};
  uint32_t blocks = 0;
};
static_assert(sizeof(LevHead) == 8);

struct LevTableEntry {
  uint32_t plain = 0;
  uint32_t coded = 0;
};
static_assert(sizeof(LevTableEntry) == 8);

constexpr size_t lev_block_count(size_t count, unsigned block_log2) {
  return ((count - 1) >> block_log2) + 1;
}
/// Offset of the first block in the coded part.
constexpr size_t lev_first_block(size_t blocks) {
  return padded(sizeof(LevHead) + blocks * sizeof(LevTableEntry), kBlockAlignment);
}

}  // namespace uzip
