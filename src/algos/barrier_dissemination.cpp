// Dissemination barrier: in round k, every rank tells the rank 2^k after it about all that it has
// heard from.
//   D. Hensgen, R. Finkel, U. Manber: Two Algorithms for Barrier Synchronization,
//   Int. J. Parallel Programming 17(1), 1988.
// Steps: ceil(log2 P) hops, for any P. Bytes: none.
#include "algos/algorithm.hpp"
#include "algos/rank_math.hpp"
#include "algos/schedule_builder.hpp"

namespace uzip {
namespace {

Schedule build(const Shape& shape, int rank) {
  ScheduleBuilder builder(shape, rank);
  for (int distance = 1; distance < shape.size; distance *= 2) {
    builder.signal(rank_after(rank, distance, shape.size));
    builder.await_signal(rank_after(rank, -distance, shape.size));
  }
  return builder.finish();
}

double cost(const Shape& shape, double, const CostModel& model) {
  return model.latency * doubling_rounds(shape.size);
}

}  // namespace

extern const Algorithm barrier_dissemination = {
    "dissemination",
    Coll::kBarrier,
    "in round k, every rank signals the rank 2^k after it: log2(P) hops",
    [](const Shape& shape) { return shape.coll == Coll::kBarrier; },
    build,
    cost,
};

}  // namespace uzip
