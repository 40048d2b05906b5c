// Bruck's all-to-all: a block with d ranks to go travels along the one bits of d, all that take the
// same hop in one message.
//   J. Bruck, C.-T. Ho, S. Kipnis, E. Upfal, D. Weathersby: Efficient Algorithms for All-to-All
//   Communications in Multiport Message-Passing Systems, IEEE TPDS 8(11), 1997.
// Steps: ceil(log2 P) hops, for any P, one message each. Bytes sent per rank: P/2 blocks a hop at
// most. With a codec each block is a frame and a message of its own, encoded where it begins, passed
// on as it is and decoded where it ends. Scratch: at most P/2 blocks to send and P/2 to receive for
// each hop.
#include "algos/algorithm.hpp"
#include "algos/rank_math.hpp"
#include "algos/schedule_builder.hpp"

namespace uzip {
namespace {

Schedule build(const Shape& shape, int rank) {
  const int size = shape.size;
  const size_t block = shape.counts[0];
  ScheduleBuilder builder(shape, rank);
  // places[d]: the block that is here and has d ranks to go from where it began.
  std::vector<Slice> places;
  for (int d = 0; d < size; ++d) places.push_back(builder.input_block(rank_after(rank, d, size)));

  for (int hop = 1; hop < size; hop *= 2) {
    std::vector<int> moving;
    for (int d = hop; d < size; ++d) {
      if (d & hop) moving.push_back(d);
    }
    std::vector<Slice> leaving, arriving;
    for (size_t i = 0; i < moving.size(); ++i) leaving.push_back(builder.scratch(block));
    for (size_t i = 0; i < moving.size(); ++i) arriving.push_back(builder.scratch(block));
    for (size_t i = 0; i < moving.size(); ++i) {
      builder.copy(places[moving[i]], leaving[i]);
      places[moving[i]] = arriving[i];
    }
    builder.send(leaving, rank_after(rank, hop, size));
    builder.recv(rank_after(rank, -hop, size), arriving);
  }
  for (int d = 0; d < size; ++d) {
    builder.copy(places[d], builder.output_block(rank_after(rank, -d, size)));
  }
  return builder.finish();
}

double cost(const Shape& shape, double bytes, const CostModel& model) {
  const double hops = doubling_rounds(shape.size), moved = bytes / 2 * hops;
  // Every block is copied into a message and out of it.
  const Work work = {.hops = hops, .steps = shape.size * (hops / 2 + 1), .wire = moved, .operands = moved + bytes,
                     .coded = bytes * (shape.size - 1) / shape.size};
  return time_of(work, shape, bytes, model);
}

}  // namespace

extern const Algorithm alltoall_bruck = {
    "bruck",
    Coll::kAlltoall,
    "blocks travel along the one bits of their distance, those of a hop in one message: log2(P) hops "
    "of half of all blocks; for small blocks on many ranks",
    [](const Shape& shape) {
      return shape.coll == Coll::kAlltoall &&
             std::all_of(shape.counts.begin(), shape.counts.end(),
                         [&](size_t count) { return count == shape.counts[0]; });
    },
    build,
    cost,
};

}  // namespace uzip
