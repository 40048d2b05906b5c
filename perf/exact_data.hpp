// Inputs whose result is known beforehand, to the bit, without running any operation.
//
// Sums, averages, products: integers times a power of two, divided among the ranks so that the
// result of any subset of ranks, in any order, is exactly representable: every correct reduction
// gives the same bits, however it associates. Integer types wrap, so theirs are arbitrary numbers.
// Minima and maxima are drawn from all finite numbers, both zeros included. Moves carry arbitrary
// bits, NaN payloads included. Every element depends on its index, so pieces that change places are
// noticed.
#pragma once

#include "pattern.hpp"

namespace perf {

/// Prime, so that it shares no factor with a chunk or a share of a rank.
constexpr size_t kExactPeriod = 262147;

/// What rank `rank` of `ranks` contributes to a reduction.
Pattern exact_contribution(const ElementType& type, uzip_op_t op, int rank, int ranks,
                           size_t period = kExactPeriod);
/// The reduction of the contributions of all ranks.
Pattern exact_result(const ElementType& type, uzip_op_t op, int ranks,
                     size_t period = kExactPeriod);
/// Elements to be moved: random bits, narrow exponents, zeros of both signs and small integers in
/// turn.
Pattern exact_moved(const ElementType& type, size_t period = kExactPeriod);

}  // namespace perf
