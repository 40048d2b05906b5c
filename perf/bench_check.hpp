// Whether an operation's results are right, to the bit.
#pragma once

#include "bench_case.hpp"

namespace perf {

/// The data whose result is known; made once for each type and operation.
struct ExactPatterns {
  Pattern source;
  Pattern result;
};
ExactPatterns exact_patterns(const Case& bench);

/// Runs the operation Options::checks times and returns the number of wrong elements on all ranks:
///   - data with a known result: every element of the result, and of the source, which must be
///   untouched;
///   - realistic data, without compression and with the chosen codec: every element in which the
///   two
///     results differ, and every rank whose result is not rank 0's where all must have the same;
///   - every changed byte of the guard bands around the buffers.
size_t check(const Case& bench, const ExactPatterns& exact, size_t bytes, bool in_place);

}  // namespace perf
