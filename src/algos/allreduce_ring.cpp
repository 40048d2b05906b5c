// Ring all-reduce: partial sums travel once around the ring and grow (reduce-scatter), then the
// results travel once around it (all-gather).
//   P. Patarasuk, X. Yuan: Bandwidth Optimal All-reduce Algorithms for Clusters of Workstations,
//   J. Parallel Distrib. Comput. 69(2), 2009.
// Steps: 2(P-1) hops one after another. Bytes sent per rank: 2 (P-1)/P n, the minimum.
// Only neighbours talk. The result's operands stand in ring order, beginning after the rank that
// completes it. Partial sums stay in the output; scratch: two shares, one being received while the
// other is reduced.
#include "algos/algorithm.hpp"
#include "algos/rank_math.hpp"
#include "algos/schedule_builder.hpp"

#include <algorithm>
#include <array>

namespace uzip {
namespace {

Schedule build(const Shape& shape, int rank) {
  const int size = shape.size;
  const int next = rank_after(rank, 1, size);
  const int previous = rank_after(rank, -1, size);
  ScheduleBuilder builder(shape, rank);
  if (size == 1) builder.copy(builder.input_block(rank), builder.output_block(rank));

  const size_t longest = *std::max_element(shape.counts.begin(), shape.counts.end());
  std::vector<Slice> arrivals;
  for (int i = 0; i < std::min(2, size - 1); ++i) arrivals.push_back(builder.scratch(longest));

  for (int step = 0; step < size - 1; ++step) {
    const int leaving = rank_after(rank, -step - 1, size);
    const int arriving = rank_after(rank, -step - 2, size);
    Slice arrival = arrivals[step % 2];
    arrival.length = shape.counts[arriving];
    builder.send(step == 0 ? builder.input_block(leaving) : builder.output_block(leaving), next);
    builder.recv(previous, arrival);
    builder.reduce(std::array{arrival, builder.input_block(arriving)},
                   builder.output_block(arriving), step == size - 2);
  }
  for (int step = 0; step < size - 1; ++step) {
    builder.send(builder.output_block(rank_after(rank, -step, size)), next);
    builder.recv(previous, builder.output_block(rank_after(rank, -step - 1, size)));
  }
  return builder.finish();
}

double cost(const Shape& shape, double bytes, const CostModel& model) {
  const double others = shape.size - 1, moved = bytes * others / shape.size;
  const Work work = {.hops = 2 * others, .steps = others, .wire = 2 * moved, .operands = 2 * moved,
                     .coded = 2 * moved};
  return time_of(work, shape, bytes, model);
}

}  // namespace

extern const Algorithm allreduce_ring = {
    "ring",
    Coll::kAllreduce,
    "partial sums and then results travel around the ring: 2(P-1) hops and the fewest bytes; for "
    "large "
    "vectors where neighbours are better connected than others",
    [](const Shape& shape) { return shape.coll == Coll::kAllreduce; },
    build,
    cost,
    Order::kByPlace,
};

}  // namespace uzip
