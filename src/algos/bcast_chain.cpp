// Pipelined chain broadcast: the vector goes from rank to rank in shares; while one share is on its
// way to the next rank, the following one arrives.
//   J. Pjesivac-Grbovic, T. Angskun, G. Bosilca, G. E. Fagg, E. Gabriel, J. J. Dongarra: Performance
//   Analysis of MPI Collective Operations, Cluster Computing 10(2), 2007 (pipeline, chain).
// Steps: P-1 hops, then one for each further share (rounds follow each other without a gap).
// Bytes sent: n at every rank but the last, the minimum. Encoded once, at the root; the others pass
// the frames on. Scratch: none.
#include "algos/algorithm.hpp"
#include "algos/pipeline_costs.hpp"
#include "algos/rank_math.hpp"
#include "algos/schedule_builder.hpp"
#include "algos/shares.hpp"

namespace uzip {
namespace {

Schedule build(const Shape& shape, int rank) {
  const int size = shape.size;
  const bool first = rank == shape.root;
  const int next = rank_after(rank, 1, size);
  ScheduleBuilder builder(shape, rank);
  for (const Slice& share : pipeline_shares(shape, first ? Slot::kInput : Slot::kOutput)) {
    if (!first) builder.recv(rank_after(rank, -1, size), share);
    if (next != shape.root) builder.send(share, next);
    builder.copy(share, in(Slot::kOutput, share));
  }
  return builder.finish();
}

double cost(const Shape& shape, double bytes, const CostModel& model) {
  const CostModel near = between_neighbors(shape, model);
  return time_of(work_of({shape.size - 1, shape.size - 2}, shape, bytes, near), shape, bytes, near);
}

}  // namespace

extern const Algorithm bcast_chain = {
    "chain",
    Coll::kBcast,
    "shares follow one another from rank to rank, encoded once: P-1 hops and n bytes at every rank; "
    "for very large vectors, where neighbours are better connected than others",
    [](const Shape& shape) { return shape.coll == Coll::kBcast; },
    build,
    cost,
};

}  // namespace uzip
