// How long an operation takes, and how many bytes it sends.
#pragma once

#include "bench_case.hpp"
#include "versus_mpi.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace perf {

/// Times in seconds for one call, over the ranks as Options::average says.
struct Timing {
  double time = 0;                      ///< mean over the timed calls, or median if Options::median
  double median = 0;                    ///< over the timed calls
  std::optional<double> versus_median;  ///< MPI's, when it was measured
  /// Sums over the ranks, for one call.
  uint64_t payload_bytes = 0;
  uint64_t wire_bytes = 0;
  /// What the library chose; "-" where it does not say.
  std::string algorithm = "-";
  std::string codec = "-";
  size_t chunk_bytes = 0;

  /// Sent bytes in units of the original ones; none if nothing was sent.
  std::optional<double> ratio() const {
    if (payload_bytes == 0) return std::nullopt;
    return static_cast<double>(wire_bytes) / static_cast<double>(payload_bytes);
  }
};

/// Times Options::iterations calls on realistic data after Options::warmup others. With `versus`,
/// each call is followed by MPI's (out of place).
Timing time_calls(const Case& bench, size_t bytes, bool in_place, const VersusMpi* versus);

}  // namespace perf
