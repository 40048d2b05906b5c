// Direct scatter: the root sends every rank its block.
//   R. Thakur, R. Rabenseifner, W. Gropp: Optimization of Collective Communication Operations in
//   MPICH, IJHPCA 19(1), 2005 (for the alternative).
// Steps: 1 hop, P-1 messages from the root. Bytes sent by the root: all blocks but its own, the
// minimum. A block is encoded once. Scratch: none.
#include "algos/algorithm.hpp"
#include "algos/rank_math.hpp"
#include "algos/schedule_builder.hpp"

namespace uzip {
namespace {

Schedule build(const Shape& shape, int rank) {
  const int size = shape.size;
  ScheduleBuilder builder(shape, rank);
  if (rank != shape.root) {
    builder.recv(shape.root, builder.output_block(rank));
    return builder.finish();
  }
  for (int i = 1; i < size; ++i) {
    const int peer = rank_after(rank, i, size);
    builder.send(builder.input_block(peer), peer);
  }
  builder.copy(builder.input_block(rank), builder.output_block(rank));
  return builder.finish();
}

double cost(const Shape& shape, double bytes, const CostModel& model) {
  const double others = shape.size - 1, moved = bytes * others / shape.size;
  const Work work = {.messages = (others - 1) / 2, .steps = 1, .wire = moved, .coded = moved};
  return time_of(work, shape, bytes, of_one_rank(model));
}

}  // namespace

extern const Algorithm scatter_direct = {
    "direct",
    Coll::kScatter,
    "the root sends every rank its block, encoded once: one hop and the fewest bytes",
    [](const Shape& shape) { return shape.coll == Coll::kScatter; },
    build,
    cost,
    Order::kMoves,
    /*in_rank_order=*/false,
    /*one_hop=*/true,
};

}  // namespace uzip
