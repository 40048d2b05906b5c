// Two-shot reduction: a direct reduce-scatter, then a gather. Every rank sends share j straight to
// rank j, which reduces all of them at once and sends the result to the root.
//   R. Thakur, R. Rabenseifner, W. Gropp: Optimization of Collective Communication Operations in
//   MPICH, IJHPCA 19(1), 2005 (reduce-scatter and gather).
// Steps: 2 hops. Messages sent: P, at the root P-1. Bytes sent: n, at the root (P-1)/P n.
// The sources of the one reduction stand in rank order, so the bits do not depend on who reduces,
// and floats of 8 and 16 bits are rounded once. Scratch: P-1 shares, and one for the result.
#include "algos/algorithm.hpp"
#include "algos/rank_math.hpp"
#include "algos/schedule_builder.hpp"

namespace uzip {
namespace {

Schedule build(const Shape& shape, int rank) {
  const int size = shape.size;
  const int root = shape.root;
  ScheduleBuilder builder(shape, rank);
  std::vector<Slice> pieces(
      static_cast<size_t>(size));  // of this rank's share, by the rank they are from
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
  if (rank != root) {
    const Slice result = builder.scratch(pieces[rank].length);
    builder.reduce(pieces, result, true);
    builder.send(result, root);
    return builder.finish();
  }
  builder.reduce(pieces, builder.output_block(rank), true);
  for (int i = 1; i < size; ++i) {
    const int peer = rank_after(rank, -i, size);
    builder.recv(peer, builder.output_block(peer));
  }
  return builder.finish();
}

double cost(const Shape& shape, double bytes, const CostModel& model) {
  const double others = shape.size - 1, moved = bytes * others / shape.size;
  const double at_root = alone_per_byte(model) / model.seconds_per_byte;
  // At the root all pieces come in one after another.
  const Work work = {.hops = 2, .messages = 1.5 * (others - 1), .steps = 1, .wire = moved * (1 + at_root),
                     .operands = bytes, .coded = 2 * moved};
  return time_of(work, shape, bytes, model);
}

}  // namespace

extern const Algorithm reduce_two_shot = {
    "two_shot",
    Coll::kReduce,
    "every rank reduces one share of all ranks at once and sends it to the root: two hops, 2n bytes "
    "at the root; for large vectors where all ranks reach each other equally well",
    [](const Shape& shape) { return shape.coll == Coll::kReduce; },
    build,
    cost,
    Order::kRanks,
    /*in_rank_order=*/true,
};

}  // namespace uzip
