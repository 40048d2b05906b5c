// Direct all-gather, the second shot of the two-shot all-reduce: every rank sends its block
// straight to all.
//   R. Thakur, R. Rabenseifner, W. Gropp: Optimization of Collective Communication Operations in
//   MPICH, IJHPCA 19(1), 2005 (for the alternatives).
// Steps: 1 hop, P-1 messages per rank. Bytes sent per rank: P-1 times its block.
// A block is encoded once.
#include "algos/algorithm.hpp"
#include "algos/rank_math.hpp"
#include "algos/schedule_builder.hpp"

namespace uzip {
namespace {

Schedule build(const Shape& shape, int rank) {
  const int size = shape.size;
  ScheduleBuilder builder(shape, rank);
  const Slice mine = builder.input_block(rank);
  for (int i = 1; i < size; ++i) builder.send(mine, rank_after(rank, i, size));
  builder.copy(mine, builder.output_block(rank));
  for (int i = 1; i < size; ++i) {
    const int peer = rank_after(rank, -i, size);
    builder.recv(peer, builder.output_block(peer));
  }
  return builder.finish();
}

double cost(const Shape& shape, double bytes, const CostModel& model) {
  const double others = shape.size - 1, moved = bytes * others / shape.size;
  return time_of({.messages = others - 1, .steps = 1, .wire = moved, .coded = moved}, shape, bytes, model);
}

}  // namespace

extern const Algorithm allgather_two_shot = {
    "two_shot",
    Coll::kAllgather,
    "every rank sends its block, encoded once, straight to all others: one hop and the fewest "
    "bytes; "
    "where all ranks reach each other equally well",
    [](const Shape& shape) { return shape.coll == Coll::kAllgather; },
    build,
    cost,
    Order::kMoves,
    /*in_rank_order=*/false,
    /*one_hop=*/true,
};

}  // namespace uzip
