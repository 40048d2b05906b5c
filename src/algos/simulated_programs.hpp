// Schedules in the form in which they are simulated: numbers only, with every message's other end.
// Used by simulate.cpp.
#pragma once

#include "algos/simulate.hpp"
#include "algos/symmetry.hpp"

namespace uzip {

/// The message goes to a rank that is not simulated, and no simulated one stands for it.
inline constexpr uint32_t kNobody = UINT32_MAX;

/// A step: what it costs, and what comes after it.
struct SimulatedStep {
  Verb verb;
  Distance distance;      ///< a message: of its two ends
  bool for_threads;       ///< a codec thread may do it
  bool twin;              ///< a receive: of one that another rank like its sender sends it at the same time
  uint32_t partner_rank;  ///< a message: the other end, by its place among the simulated ranks, or kNobody
  uint32_t partner_step;
  uint32_t next_rank;     ///< a receive: another one that the same send stands for, or kNobody
  uint32_t next_step;
  uint32_t waits_for;  ///< number of steps before it
  uint32_t dependents_begin;
  uint32_t dependents_end;
  double core;    ///< seconds
  double memory;  ///< seconds that its bytes in memory take besides, while no other core uses it
  double bytes;  ///< of a message, its head included
};

struct SimulatedProgram {
  std::vector<SimulatedStep> steps;
  std::vector<uint32_t> dependents;
};

/// The programs of all simulated ranks for each kind of round.
struct SimulatedPrograms {
  std::vector<int> ranks;                            ///< that are simulated
  int host = 1;                                      ///< ranks of one host
  std::vector<std::vector<SimulatedProgram>> kinds;  ///< by kind and rank
};

Result<SimulatedPrograms> make_programs(const CallModel& call, const MachineModel& machine);

}  // namespace uzip
