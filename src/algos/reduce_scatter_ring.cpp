// Ring reduce-scatter: the partial sum of each block travels once around the ring, grows at every
// rank, and ends at its owner.
//   P. Patarasuk, X. Yuan: Bandwidth Optimal All-reduce Algorithms for Clusters of Workstations,
//   J. Parallel Distrib. Comput. 69(2), 2009.
// Steps: P-1 hops one after another. Bytes sent per rank: all blocks but one, the minimum.
// Only neighbours talk. The operands of a block stand in ring order, beginning after its owner.
// Scratch: three blocks, for what is being received, reduced and sent.
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
  std::vector<Slice> places;
  for (int i = 0; i < std::min(3, size - 1); ++i) places.push_back(builder.scratch(longest));

  Slice leaving = builder.input_block(previous);
  for (int step = 0; step < size - 1; ++step) {
    const int block = rank_after(rank, -step - 2, size);
    const bool last = step == size - 2;
    Slice partial = places[step % 3];
    partial.length = shape.counts[block];
    builder.send(leaving, next);
    builder.recv(previous, partial);
    builder.reduce(std::array{partial, builder.input_block(block)},
                   last ? builder.output_block(rank) : partial, last);
    leaving = partial;
  }
  return builder.finish();
}

double cost(const Shape& shape, double bytes, const CostModel& model) {
  const double others = shape.size - 1, moved = bytes * others / shape.size;
  const Work work = {.hops = others, .steps = others, .wire = moved, .operands = 2 * moved, .coded = moved};
  return time_of(work, shape, bytes, model);
}

}  // namespace

extern const Algorithm reduce_scatter_ring = {
    "ring",
    Coll::kReduceScatter,
    "partial sums travel around the ring to their owners: P-1 hops and the fewest bytes; where "
    "neighbours are better connected than others",
    [](const Shape& shape) { return shape.coll == Coll::kReduceScatter; },
    build,
    cost,
    Order::kByPlace,
};

}  // namespace uzip
