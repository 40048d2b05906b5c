// What bytes cost a core by where they are: in its own cache, the host's last one, or memory; its own, or written by
// another rank. Used by tune_model.cpp.
#pragma once

#include "../perf/world.hpp"
#include "algos/machine_model.hpp"

#include <algorithm>
#include <utility>

namespace uzip {

/// Fills in copy, change, core_cache, cache, far, memory and crowd. Processor time counts, so that ranks may share cores. All
/// ranks work at the same time, but where one is measured alone. Collective.
void measure_memory(const perf::World& world, MachineModel& model);

/// Of a link whose bodies the receiver reads: fills in bandwidth, fresh and memory, from exchanges with the
/// partners that calibration_partners() gives. After measure_memory(). Collective; throws perf::Failure.
void measure_reads(const perf::World& world, std::pair<int, int> partners, const MachineModel& model, LinkModel& link);

/// Of this thread.
double processor_seconds();

/// The least processor time of some calls.
template <class Action>
double least_seconds(int calls, Action action) {
  double least = 1e9;
  for (int i = 0; i < calls; ++i) {
    const double start = processor_seconds();
    action();
    least = std::min(least, processor_seconds() - start);
  }
  return std::max(least, 1e-9);
}

}  // namespace uzip
