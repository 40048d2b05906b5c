// Direct reduce-scatter, the first shot of the two-shot all-reduce: every rank sends block j
// straight to rank j, which reduces all of them at once.
//   R. Thakur, R. Rabenseifner, W. Gropp: Optimization of Collective Communication Operations in
//   MPICH, IJHPCA 19(1), 2005 (pairwise exchange).
// Steps: 1 hop, P-1 messages per rank. Bytes sent per rank: all blocks but one, the minimum.
// The sources stand in rank order and floats of 8 and 16 bits are rounded once. Scratch: P-1
// blocks.
#include "algos/algorithm.hpp"
#include "algos/rank_math.hpp"
#include "algos/schedule_builder.hpp"

namespace uzip {
namespace {

Schedule build(const Shape& shape, int rank) {
  const int size = shape.size;
  ScheduleBuilder builder(shape, rank);
  std::vector<Slice> pieces(
      static_cast<size_t>(size));  // of this rank's block, by the rank they are from
  pieces[rank] = builder.input_block(rank);

  for (int i = 1; i < size; ++i) {
    const int peer = rank_after(rank, i, size);
    builder.send(builder.input_block(peer), peer);
  }
  for (int i = 1; i < size; ++i) {
    const int peer = rank_after(rank, -i, size);
    pieces[peer] = builder.scratch(pieces[rank].length);
    builder.recv(peer, pieces[peer]);
  }
  builder.reduce(pieces, builder.output_block(rank), true);
  return builder.finish();
}

double cost(const Shape& shape, double bytes, const CostModel& model) {
  const double others = shape.size - 1, moved = bytes * others / shape.size;
  const Work work = {.messages = others - 1, .steps = 1, .wire = moved, .operands = bytes, .coded = moved};
  return time_of(work, shape, bytes, model);
}

}  // namespace

extern const Algorithm reduce_scatter_two_shot = {
    "two_shot",
    Coll::kReduceScatter,
    "every rank sends each block straight to its owner, which reduces all at once: one hop and the "
    "fewest bytes; where all ranks reach each other equally well",
    [](const Shape& shape) { return shape.coll == Coll::kReduceScatter; },
    build,
    cost,
    Order::kRanks,
    /*in_rank_order=*/true,
    /*one_hop=*/true,
};

}  // namespace uzip
