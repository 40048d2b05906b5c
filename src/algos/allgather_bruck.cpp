// Bruck's all-gather: what a rank has doubles with every hop, from the rank as far after it as it
// has blocks.
//   J. Bruck, C.-T. Ho, S. Kipnis, E. Upfal, D. Weathersby: Efficient Algorithms for All-to-All
//   Communications in Multiport Message-Passing Systems, IEEE TPDS 8(11), 1997.
// Steps: ceil(log2 P) hops, for any P, one message each. Bytes sent per rank: about (P-1)/P n, the
// minimum. With a codec each block is a frame and a message of its own, encoded by its rank and
// passed on as it is. Blocks are collected in scratch, the own one first, so that every message is
// one slice. Scratch: all blocks.
#include "algos/algorithm.hpp"
#include "algos/rank_math.hpp"
#include "algos/schedule_builder.hpp"

#include <algorithm>

namespace uzip {
namespace {

Schedule build(const Shape& shape, int rank) {
  const int size = shape.size;
  ScheduleBuilder builder(shape, rank);
  const Slice mine = builder.input_block(rank);
  if (size == 1) {
    builder.copy(mine, builder.output_block(rank));
    return builder.finish();
  }

  // starts[i]: where the block of rank + i stands in scratch.
  std::vector<size_t> starts{0};
  for (int i = 0; i < size; ++i) {
    starts.push_back(starts.back() + shape.counts[rank_after(rank, i, size)]);
  }
  const Slice scratch = builder.scratch(starts.back());
  std::vector<Slice> blocks;
  for (int i = 0; i < size; ++i) {
    blocks.push_back({Slot::kScratch, scratch.offset + starts[i], starts[i + 1] - starts[i]});
  }
  const std::span<const Slice> all(blocks);

  // Up to three ranks send single blocks only, this one from where it is.
  if (size <= 3) {
    blocks[0] = mine;
  } else {
    builder.copy(mine, blocks[0]);
  }
  for (int have = 1; have < size; have *= 2) {
    const size_t more = static_cast<size_t>(std::min(have, size - have));
    builder.send(all.first(more), rank_after(rank, -have, size));
    builder.recv(rank_after(rank, have, size), all.subspan(static_cast<size_t>(have), more));
  }
  builder.copy(mine, builder.output_block(rank));
  for (int i = 1; i < size; ++i) {
    builder.copy(blocks[i], builder.output_block(rank_after(rank, i, size)));
  }
  return builder.finish();
}

double cost(const Shape& shape, double bytes, const CostModel& model) {
  const double moved = bytes * (shape.size - 1) / shape.size;
  // Every block is copied out of scratch.
  const Work work = {.hops = 1.0 * doubling_rounds(shape.size), .steps = 1.0 * shape.size, .wire = moved,
                     .operands = bytes, .coded = moved};
  return time_of(work, shape, bytes, model);
}

}  // namespace

extern const Algorithm allgather_bruck = {
    "bruck",
    Coll::kAllgather,
    "what a rank has doubles with every hop, collected in scratch: log2(P) hops; for small blocks "
    "on "
    "many ranks",
    [](const Shape& shape) { return shape.coll == Coll::kAllgather; },
    build,
    cost,
};

}  // namespace uzip
