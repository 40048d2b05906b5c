// Text form of a schedule, one line a step; the golden files in tests/golden are made of it.
//
//   7  reduce scratch[0,4) + input[4,8) -> output[4,8), last  [after 3 5]
//
// is step 7: the sum of the two slices of elements, in this order, completes the output's (AVG
// divides here); it starts when steps 3 and 5 have finished. "rank 2 #1" is the second message
// between this rank and rank 2 in that direction; "wire 3 of input[0,4)" is the frame in place 3,
// encoded from those elements.
#pragma once

#include "algos/schedule.hpp"

#include <span>
#include <string>

namespace uzip {

std::string print_schedule(const Schedule& schedule);

/// The steps of some ranks as a graph in Graphviz' language: solid edges are dependencies. With all
/// ranks of the schedules also the messages, dashed.
std::string print_dot(std::span<const Schedule> schedules, std::span<const int> ranks);

/// One step without its number and dependencies.
std::string print_step(const Step& step);

}  // namespace uzip
