// Pairwise all-to-all, also of blocks of different sizes: every rank sends each block straight to its
// owner, to the next rank first, so that in each step every rank sends to one and receives from
// another.
//   R. Thakur, R. Rabenseifner, W. Gropp: Optimization of Collective Communication Operations in
//   MPICH, IJHPCA 19(1), 2005.
// Steps: 1 hop, P-1 messages per rank. Bytes sent per rank: all blocks but its own, the minimum.
// A block is encoded once. Scratch: none; in place all blocks but the own one, since a block leaves
// the place into which another one comes.
#include "algos/algorithm.hpp"
#include "algos/rank_math.hpp"
#include "algos/schedule_builder.hpp"

namespace uzip {
namespace {

Schedule build(const Shape& shape, int rank) {
  const int size = shape.size;
  ScheduleBuilder builder(shape, rank);
  for (int i = 1; i < size; ++i) {
    const int peer = rank_after(rank, i, size);
    Slice block = builder.input_block(peer);
    if (shape.in_place) {
      const Slice leaving = builder.scratch(block.length);
      builder.copy(block, leaving);
      block = leaving;
    }
    builder.send(block, peer);
  }
  builder.copy(builder.input_block(rank), builder.output_block(rank));
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

bool blocks_are_alike(const Shape& shape) {
  return shape.coll == Coll::kAlltoall &&
         std::all_of(shape.counts.begin(), shape.counts.end(),
                     [&](size_t count) { return count == shape.counts[0]; });
}

constexpr const char* kSummary =
    "every rank sends each block, encoded once, straight to its owner: one hop and the fewest bytes";

}  // namespace

extern const Algorithm alltoall_pairwise = {
    "pairwise",
    Coll::kAlltoall,
    kSummary,
    blocks_are_alike,
    build,
    cost,
    Order::kMoves,
    /*in_rank_order=*/false,
    /*one_hop=*/true,
};

extern const Algorithm alltoallv_pairwise = {
    "pairwise",
    Coll::kAlltoallv,
    kSummary,
    [](const Shape& shape) {
      const size_t ranks = static_cast<size_t>(shape.size);
      return shape.coll == Coll::kAlltoallv &&
             (shape.counts.size() == ranks * ranks || shape.recv_counts.size() == ranks);
    },
    build,
    cost,
};

}  // namespace uzip
