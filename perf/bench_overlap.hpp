// How much of a nonblocking call passes while the program computes (--overlap).
#pragma once

#include "bench_case.hpp"

namespace perf {

/// Seconds, means over the ranks of the medians over the calls.
struct Overlap {
  double call = 0;     ///< the blocking call alone
  double compute = 0;  ///< the computation alone: as much work as takes about as long as the call
  double both = 0;     ///< the call started, the same work done, then waited for

  /// The part of the shorter one that passed during the other: 0 is one after the other, 1 is all of it.
  double hidden() const;
};

/// In turns with each other, Options::iterations times each, out of place. The operation has a nonblocking form.
Overlap measure_overlap(const Case& bench, size_t bytes);

}  // namespace perf
