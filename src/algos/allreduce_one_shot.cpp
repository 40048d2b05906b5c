// One-shot all-reduce: every rank sends its whole vector to every other and reduces all of them
// itself.
//   The latency end of the trade in R. Thakur, R. Rabenseifner, W. Gropp: Optimization of
//   Collective Communication Operations in MPICH, IJHPCA 19(1), 2005; the name is that of GPU
//   kernels with a single hop.
// Steps: 1 hop, P-1 messages per rank. Bytes sent per rank: (P-1) n.
// All ranks reduce in rank order, so all get the same bits, rounded once. Scratch: P-1 vectors.
#include "algos/algorithm.hpp"
#include "algos/rank_math.hpp"
#include "algos/schedule_builder.hpp"

namespace uzip {
namespace {

Schedule build(const Shape& shape, int rank) {
  const int size = shape.size;
  const Slice input{Slot::kInput, 0, shape.total()};
  const Slice output{Slot::kOutput, 0, shape.total()};
  ScheduleBuilder builder(shape, rank);
  std::vector<Slice> vectors(static_cast<size_t>(size));  // by the rank they are from
  vectors[rank] = input;

  for (int i = 1; i < size; ++i) builder.send(input, rank_after(rank, i, size));
  for (int i = 1; i < size; ++i) {
    const int peer = rank_after(rank, -i, size);
    vectors[peer] = builder.scratch(input.length);
    builder.recv(peer, vectors[peer]);
  }
  builder.reduce(vectors, output, true);
  return builder.finish();
}

double cost(const Shape& shape, double bytes, const CostModel& model) {
  const double others = shape.size - 1, moved = bytes * others;
  const Work work = {.hops = 1, .messages = others - 1, .steps = 1, .wire = moved, .operands = moved + bytes,
                     .coded = moved};
  return time_of(work, shape, bytes, model);
}

}  // namespace

extern const Algorithm allreduce_one_shot = {
    "one_shot",
    Coll::kAllreduce,
    "every rank sends everything to all and reduces it itself: a single hop, P-1 times the bytes; "
    "for "
    "small vectors on few ranks",
    [](const Shape& shape) { return shape.coll == Coll::kAllreduce; },
    build,
    cost,
    Order::kRanks,
    /*in_rank_order=*/true,
    /*one_hop=*/true,
};

}  // namespace uzip
