// How algorithms cut vectors: into shares of nearly the same length.
#pragma once

#include "algos/schedule.hpp"

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

/// The same place in another buffer.
inline Slice in(Slot slot, Slice slice) { return {slot, slice.offset, slice.length}; }

}  // namespace uzip
