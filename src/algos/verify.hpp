// Proves a set of schedules, one for each rank, by running them symbolically. Used by tests, tools
// and debug builds of the schedule cache.
#pragma once

#include "algos/schedule.hpp"
#include "base/status.hpp"

#include <cstdint>
#include <span>

namespace uzip {

/// Looks at every step by itself and at the two ends of every message; checks that every two steps
/// with a hazard are ordered by dependencies; and runs all ranks in `orders` random legal orders
/// with rendezvous sends (no buffering), every element a symbol that knows its index and how it was
/// computed from which ranks' contributions. The outputs must be complete, in their places, and
/// reduced in the same order on all ranks that compute the same element; a barrier must have heard
/// of everybody. `in_rank_order`: operations need not be commutative, so that every reduction must take the ranks'
/// contributions in their order. The error names rank and step. Takes about a microsecond for each step, however
/// many elements there are.
Status verify(std::span<const Schedule> schedules, const Shape& shape, int orders, uint32_t seed,
              bool in_rank_order = false);

}  // namespace uzip
