// Runs the schedules of all ranks the slow way: element by element, on numbers that stand for
// values, messages delivered as soon as they are sent. It shares no code with the verifier, and so
// can judge it.
#pragma once

#include "algos/schedule.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace uzip {

/// What is in the caller's buffers of each rank afterwards, by address. Reductions of the same
/// values in the same order give the same number (of two, in either order), others another one.
using Outcome = std::vector<std::map<size_t, uint64_t>>;

/// Nothing if some steps can never be carried out.
std::optional<Outcome> run_elementwise(const std::vector<Schedule>& schedules, const Shape& shape);

/// Whether elements that are equal in one are equal in the other, too: nobody can tell them apart
/// but by the order in which they were reduced.
bool same_but_for_order(const Outcome& a, const Outcome& b);

}  // namespace uzip
