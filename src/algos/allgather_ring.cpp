// Ring all-gather: every block travels once around the ring, each rank keeping a copy and passing
// it on.
//   R. Thakur, R. Rabenseifner, W. Gropp: Optimization of Collective Communication Operations in
//   MPICH, IJHPCA 19(1), 2005.
// Steps: P-1 hops one after another. Bytes sent per rank: all blocks but one, the minimum.
// Only neighbours talk. A block is encoded once, where it comes from.
#include "algos/algorithm.hpp"
#include "algos/rank_math.hpp"
#include "algos/schedule_builder.hpp"

namespace uzip {
namespace {

Schedule build(const Shape& shape, int rank) {
  const int size = shape.size;
  ScheduleBuilder builder(shape, rank);
  Slice leaving = builder.input_block(rank);
  builder.copy(leaving, builder.output_block(rank));
  for (int step = 0; step < size - 1; ++step) {
    const Slice arriving = builder.output_block(rank_after(rank, -step - 1, size));
    builder.send(leaving, rank_after(rank, 1, size));
    builder.recv(rank_after(rank, -1, size), arriving);
    leaving = arriving;
  }
  return builder.finish();
}

double cost(const Shape& shape, double bytes, const CostModel& model) {
  const double others = shape.size - 1, moved = bytes * others / shape.size;
  return time_of({.hops = others, .steps = 1, .wire = moved, .coded = moved}, shape, bytes, model);
}

}  // namespace

extern const Algorithm allgather_ring = {
    "ring",
    Coll::kAllgather,
    "blocks travel around the ring, encoded once: P-1 hops and the fewest bytes; where neighbours "
    "are "
    "better connected than others",
    [](const Shape& shape) { return shape.coll == Coll::kAllgather; },
    build,
    cost,
};

}  // namespace uzip
