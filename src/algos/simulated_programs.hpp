// Schedules in the form in which they are simulated: numbers only, with every message's other end.
// Used by simulate.cpp.
#pragma once

#include "algos/simulate.hpp"
#include "algos/symmetry.hpp"

namespace uzip {

/// A step: what it costs, and what comes after it.
struct SimulatedStep {
  Verb verb;
  Distance distance;      ///< a message: of its two ends
  uint32_t partner_rank;  ///< a message: the other end, by its place among the simulated ranks
  uint32_t partner_step;
  uint32_t waits_for;  ///< number of steps before it
  uint32_t dependents_begin;
  uint32_t dependents_end;
  double core;   ///< seconds
  double bytes;  ///< of a message, its head included
};

struct SimulatedProgram {
  std::vector<SimulatedStep> steps;
  std::vector<uint32_t> dependents;
};

/// The programs of all simulated ranks for each kind of round.
struct SimulatedPrograms {
  int ranks = 0;                                     ///< that are simulated: 0 to ranks - 1
  int host = 1;                                      ///< ranks of one host
  std::vector<std::vector<SimulatedProgram>> kinds;  ///< by kind and rank
};

Result<SimulatedPrograms> make_programs(const CallModel& call, const MachineModel& machine);

}  // namespace uzip
