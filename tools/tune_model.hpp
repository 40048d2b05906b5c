// uzip_tune --model: the cost model of this machine that uzip_sched predicts times with, uzip_model(5).
#pragma once

#include "algos/machine_model.hpp"
#include "tune_measure.hpp"

#include <string>

namespace uzip {

/// Measures cores and messages, and takes links and codecs from `table`. What is not measured here, such as the other
/// kind of link, is typical. `codec_threads` as the setting. Collective; throws perf::Failure.
MachineModel measure_model(const perf::World& world, const JobLinks& links, const TuningTable& table, int codec_threads);

/// For a file: with a comment that says which figures were measured.
std::string model_text(const MachineModel& model);

}  // namespace uzip
