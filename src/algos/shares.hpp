// How algorithms cut vectors: into shares of nearly the same length.
#pragma once

#include "algos/algorithm.hpp"
#include "algos/pipeline_costs.hpp"

#include <vector>

namespace uzip {

/// `parts` consecutive parts of a slice, as even_shares() cuts it.
inline std::vector<Slice> divide(Slice whole, int parts) {
  std::vector<Slice> slices;
  for (size_t begin = whole.offset; size_t length : even_shares(whole.length, parts)) {
    slices.push_back({whole.slot, begin, length});
    begin += length;
  }
  return slices;
}

/// A vector as the shares that a pipeline sends one after another: one for each rank, but not more than kMostShares.
inline std::vector<Slice> pipeline_shares(const Shape& shape, Slot slot) {
  if (shape.size > kMostShares) return divide({slot, 0, shape.total()}, kMostShares);
  std::vector<Slice> shares;
  for (size_t begin = 0; size_t length : shape.counts) {
    shares.push_back({slot, begin, length});
    begin += length;
  }
  return shares;
}

/// The same place in another buffer.
inline Slice in(Slot slot, Slice slice) { return {slot, slice.offset, slice.length}; }

}  // namespace uzip
