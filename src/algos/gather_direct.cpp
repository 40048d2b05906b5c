// Direct gather: every rank sends its block straight to the root.
//   R. Thakur, R. Rabenseifner, W. Gropp: Optimization of Collective Communication Operations in
//   MPICH, IJHPCA 19(1), 2005 (for the alternative).
// Steps: 1 hop, P-1 messages to the root. Bytes sent per rank: its block, the minimum.
// A block is encoded once. Scratch: none.
#include "algos/algorithm.hpp"
#include "algos/rank_math.hpp"
#include "algos/schedule_builder.hpp"

namespace uzip {
namespace {

Schedule build(const Shape& shape, int rank) {
  const int size = shape.size;
  ScheduleBuilder builder(shape, rank);
  if (rank != shape.root) {
    builder.send(builder.input_block(rank), shape.root);
    return builder.finish();
  }
  builder.copy(builder.input_block(rank), builder.output_block(rank));
  for (int i = 1; i < size; ++i) {
    const int peer = rank_after(rank, i, size);
    builder.recv(peer, builder.output_block(peer));
  }
  return builder.finish();
}

double cost(const Shape& shape, double bytes, const CostModel& model) {
  const double others = shape.size - 1, moved = bytes * others / shape.size;
  const Work work = {.messages = (others - 1) / 2, .steps = 1, .wire = moved, .coded = moved};
  return time_of(work, shape, bytes, of_one_rank(model));
}

}  // namespace

extern const Algorithm gather_direct = {
    "direct",
    Coll::kGather,
    "every rank sends its block, encoded once, straight to the root: one hop and the fewest bytes",
    [](const Shape& shape) { return shape.coll == Coll::kGather; },
    build,
    cost,
    Order::kMoves,
    /*in_rank_order=*/false,
    /*one_hop=*/true,
};

}  // namespace uzip
