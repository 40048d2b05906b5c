// Linear prefix reductions (scan and exclusive scan): the reduction of all ranks before goes from
// rank to rank in shares, each rank adding its own; while one share is being reduced, the following
// one arrives.
//   W. D. Hillis, G. L. Steele Jr.: Data Parallel Algorithms, Comm. ACM 29(12), 1986 (for the
//   alternative); the pipeline as in the chain reduction.
// Steps: P-1 hops, then one for each further share. Bytes sent: n at every rank but the last, the
// minimum. The operands stand in rank order, the first two reduced first. Scratch: one vector.
#include "algos/algorithm.hpp"
#include "algos/pipeline_costs.hpp"
#include "algos/schedule_builder.hpp"
#include "algos/shares.hpp"

#include <array>

namespace uzip {
namespace {

Schedule build(const Shape& shape, int rank) {
  const bool inclusive = shape.coll == Coll::kScan;
  const bool first = rank == 0;
  const bool last = rank == shape.size - 1;
  ScheduleBuilder builder(shape, rank);
  for (const Slice& share : pipeline_shares(shape, Slot::kInput)) {
    Slice value = share;
    const Slice output = in(Slot::kOutput, share);  // rank 0 of an exclusive scan has none
    if (!first) {
      // Exclusive and in place, the own elements are still needed when those before arrive.
      const Slice before = builder.scratch(value.length);
      builder.recv(rank - 1, before);
      const Slice sum = inclusive ? output : builder.scratch(last ? 0 : value.length);
      if (inclusive || !last) builder.reduce(std::array{before, value}, sum, false);
      if (!inclusive) builder.copy(before, output);
      value = sum;
    } else if (inclusive) {
      builder.copy(value, output);
    }
    if (!last) builder.send(value, rank + 1);
  }
  return builder.finish();
}

double cost(const Shape& shape, double bytes, const CostModel& model) {
  const CostModel near = between_neighbors(shape, model);
  return time_of(work_of_reducing({shape.size - 1, shape.size - 2}, shape, bytes, near), shape, bytes, near);
}

constexpr const char* kSummary =
    "the reduction of the ranks before goes from rank to rank in shares: P-1 hops and n bytes at "
    "every rank; for large vectors";

}  // namespace

extern const Algorithm scan_linear = {
    "linear",  Coll::kScan, kSummary, [](const Shape& shape) { return shape.coll == Coll::kScan; },
    build,     cost,
    Order::kFixed,
    /*in_rank_order=*/true,
};

extern const Algorithm exscan_linear = {
    "linear",  Coll::kExscan, kSummary, [](const Shape& shape) { return shape.coll == Coll::kExscan; },
    build,     cost,
    Order::kFixed,
    /*in_rank_order=*/true,
};

}  // namespace uzip
