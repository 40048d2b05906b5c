// Looks for races the slow way: every pair of steps, element by element. It shares no code with the
// builder and the verifier, which find hazards with interval maps, and so can judge them.
#pragma once

#include "algos/schedule.hpp"

#include <string>
#include <vector>

namespace uzip {

/// "step 3 and step 7" if both touch the same memory, one of them writing, and neither has to wait
/// for the other; "" if there are no such two steps.
std::string find_race(const Schedule& schedule, const Shape& shape, int rank);

/// A dependency that others imply, "step 7 on step 3"; "" if there is none.
std::string find_redundant_dependency(const Schedule& schedule);

/// Where a slice lies in one flat memory of a rank, in which buffers that are the same in place
/// have the same addresses; and whether an address is in one of the caller's buffers.
size_t address_of(const Slice& slice, const Shape& shape, int rank);
bool is_callers(size_t address);

/// Whether every rank has heard, directly or by others, of all ranks when it has finished.
bool is_barrier(const std::vector<Schedule>& schedules);

}  // namespace uzip
