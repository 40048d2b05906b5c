// What is worth knowing about a run besides its results: where, with what, under which settings.
#pragma once

#include "bench_options.hpp"
#include "world.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace perf {

/// Rank 0's host.
struct Machine {
  std::string processor;  ///< its name, and what vector instructions it has
  uint64_t cores = 0;     ///< that are online
  uint64_t memory_bytes = 0;
  std::string system;  ///< name and release of the kernel
};

/// Everything about a run that does not change from line to line.
struct RunFacts {
  const Operation& operation;
  const Options& options;
  std::vector<std::string> arguments;
  std::string start_time;
  std::string launched_by;
  std::vector<std::string> hosts;        ///< of each rank
  std::vector<uint64_t> processes;       ///< process id of each rank
  std::vector<std::string> environment;  ///< NAME=value of the variables that matter
  std::string commit;                    ///< that this program was built from, "" if unknown
  Machine machine;
  std::string mpi;                       ///< version, "" if MPI is not used
  std::vector<std::string> notes;        ///< sentences about this run

  int ranks() const { return static_cast<int>(hosts.size()); }
  /// More than one data type or operation is measured.
  bool many_cases() const { return options.types.size() * options.ops.size() > 1; }
};

/// Collective.
RunFacts collect_facts(const World& world, const Operation& operation, const Options& options,
                       int argc, char** argv);

}  // namespace perf
