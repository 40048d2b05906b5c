// The commands of uzip_sched(1) that predict times: simulate, json and model.
#pragma once

#include "sched_options.hpp"

namespace uzip {

/// One line for each number of ranks, count and algorithm.
Status print_simulations(const SchedOptions& options);
/// The trace of one simulated call.
Status print_simulated_trace(const SchedOptions& options);
/// The model that was asked for as text; without one, the names of those that are always there.
Status print_model(const SchedOptions& options);

}  // namespace uzip
