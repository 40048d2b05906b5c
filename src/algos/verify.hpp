// Proves a set of schedules, one for each rank, by running them symbolically. Used by tests, tools
// and debug builds of the schedule cache.
#pragma once

#include "algos/schedule.hpp"
#include "base/status.hpp"

#include <cstdint>
#include <span>

namespace uzip {

/// Runs all ranks in `orders` random legal orders with rendezvous sends (no buffering), every
/// element a symbol that knows its index and which ranks contributed how often; and checks
/// statically that every pair of steps with a hazard is ordered by dependencies. The error names
/// rank and step.
Status verify(std::span<const Schedule> schedules, const Shape& shape, int orders, uint32_t seed);

}  // namespace uzip
