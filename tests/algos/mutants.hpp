// Schedules with one fault each, for measuring what the verifier finds.
#pragma once

#include "algos/schedule.hpp"

#include <string>
#include <vector>

namespace uzip {

/// A schedule with one change in one step.
struct Mutant {
  std::string kind;  ///< "drop a dependency", ...
  uint32_t step;     ///< of the original
  Schedule schedule;
};

/// Every single change of `schedule` that the kinds of faults allow.
std::vector<Mutant> mutants_of(const Schedule& schedule, const Shape& shape);

}  // namespace uzip
