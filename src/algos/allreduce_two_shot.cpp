// Two-shot all-reduce: a direct reduce-scatter, then a direct all-gather. Every rank sends share j
// straight to rank j, which reduces all of them at once and sends the result straight to everybody.
//   R. Thakur, R. Rabenseifner, W. Gropp: Optimization of Collective Communication Operations in
//   MPICH, IJHPCA 19(1), 2005 (pairwise exchange); the name is that of GPU kernels with one hop
//   each way.
// Steps: 2 hops, 2(P-1) messages per rank. Bytes sent per rank: 2 (P-1)/P n, the minimum.
// The sources of the one reduction stand in rank order, so the bits do not depend on who reduces,
// and floats of 8 and 16 bits are rounded once. Scratch: P-1 shares.
#include "algos/algorithm.hpp"
#include "algos/rank_math.hpp"
#include "algos/schedule_builder.hpp"

namespace uzip {
namespace {

Schedule build(const Shape& shape, int rank) {
  const int size = shape.size;
  ScheduleBuilder builder(shape, rank);
  std::vector<Slice> pieces(
      static_cast<size_t>(size));  // of this rank's share, by the rank they are from
  pieces[rank] = builder.input_block(rank);
  const Slice result = builder.output_block(rank);

  for (int i = 1; i < size; ++i) {
    const int peer = rank_after(rank, i, size);
    builder.send(builder.input_block(peer), peer);
  }
  for (int i = 1; i < size; ++i) {
    const int peer = rank_after(rank, -i, size);
    pieces[peer] = builder.scratch(result.length);
    builder.recv(peer, pieces[peer]);
  }
  builder.reduce(pieces, result, true);
  for (int i = 1; i < size; ++i) builder.send(result, rank_after(rank, i, size));
  for (int i = 1; i < size; ++i) {
    const int peer = rank_after(rank, -i, size);
    builder.recv(peer, builder.output_block(peer));
  }
  return builder.finish();
}

double cost(const Shape& shape, double bytes, const CostModel& model) {
  const double others = shape.size - 1, moved = bytes * others / shape.size;
  const Work work = {.hops = 2, .messages = 2 * (others - 1), .steps = 1, .wire = 2 * moved, .operands = bytes,
                     .coded = 2 * moved};
  return time_of(work, shape, bytes, model);
}

}  // namespace

extern const Algorithm allreduce_two_shot = {
    "two_shot",
    Coll::kAllreduce,
    "every rank reduces one share of all ranks at once and sends it to all: two hops and the "
    "fewest "
    "bytes; for large vectors where all ranks reach each other equally well",
    [](const Shape& shape) { return shape.coll == Coll::kAllreduce; },
    build,
    cost,
    Order::kRanks,
    /*in_rank_order=*/true,
};

}  // namespace uzip
