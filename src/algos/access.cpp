// Which of the caller's buffers lies within the other when a collective works in place.
#include "algos/access.hpp"

namespace uzip {

MemoryMap::MemoryMap(const Shape& shape, int rank)
    : in_place_(shape.in_place && shape.coll != Coll::kBarrier) {
  if (!in_place_ || shape.coll == Coll::kAllreduce) return;
  alias_ = shape.coll == Coll::kReduceScatter ? Slot::kOutput : Slot::kInput;
  shift_ = shape.offset(rank);
}

}  // namespace uzip
