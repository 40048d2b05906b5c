// Pipelined chain reduction: partial sums go from rank to rank in shares, and end at the root; while
// one share is being reduced, the following one arrives.
//   J. Pjesivac-Grbovic, T. Angskun, G. Bosilca, G. E. Fagg, E. Gabriel, J. J. Dongarra: Performance
//   Analysis of MPI Collective Operations, Cluster Computing 10(2), 2007 (pipeline, chain).
// Steps: P-1 hops, then one for each further share (rounds follow each other without a gap).
// Bytes sent: n at every rank but the root, the minimum. The operands stand in the order of the
// ranks, beginning with the root's; the last two are reduced first. Scratch: one vector.
#include "algos/algorithm.hpp"
#include "algos/pipeline_costs.hpp"
#include "algos/rank_math.hpp"
#include "algos/schedule_builder.hpp"
#include "algos/shares.hpp"

#include <array>

namespace uzip {
namespace {

Schedule build(const Shape& shape, int rank) {
  const int size = shape.size;
  const bool last = rank == shape.root;
  const int next = rank_after(rank, 1, size);
  const int previous = rank_after(rank, -1, size);
  ScheduleBuilder builder(shape, rank);
  for (const Slice& share : pipeline_shares(shape, Slot::kInput)) {
    Slice value = share;
    if (next != shape.root) {
      const Slice arrival = builder.scratch(value.length);
      builder.recv(next, arrival);
      const Slice result = last ? in(Slot::kOutput, share) : arrival;
      builder.reduce(std::array{value, arrival}, result, last);
      value = result;
    } else if (last) {
      builder.copy(value, in(Slot::kOutput, share));
    }
    if (!last) builder.send(value, previous);
  }
  return builder.finish();
}

double cost(const Shape& shape, double bytes, const CostModel& model) {
  const CostModel near = between_neighbors(shape, model);
  return time_of(work_of_reducing({shape.size - 1, shape.size - 2}, shape, bytes, near), shape, bytes, near);
}

}  // namespace

extern const Algorithm reduce_chain = {
    "chain",
    Coll::kReduce,
    "partial sums follow one another in shares from rank to rank: P-1 hops and n bytes at every "
    "rank; for very large vectors, where neighbours are better connected than others",
    [](const Shape& shape) { return shape.coll == Coll::kReduce; },
    build,
    cost,
    Order::kFixed,
};

}  // namespace uzip
