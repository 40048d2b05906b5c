// Which of the caller's buffers lies within the other when a collective works in place.
#include "algos/access.hpp"

namespace uzip {

MemoryMap::MemoryMap(const Shape& shape, int rank) {
  const Layout input = shape.layout(Slot::kInput, rank);
  const Layout output = shape.layout(Slot::kOutput, rank);
  in_place_ = shape.in_place && input != Layout::kNothing && output != Layout::kNothing;
  if (!in_place_ || input == output) return;
  alias_ = output == Layout::kOwnBlock ? Slot::kOutput : Slot::kInput;
  shift_ = shape.offset(rank);
}

}  // namespace uzip
