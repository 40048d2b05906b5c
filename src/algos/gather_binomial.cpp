// Binomial-tree gather: every rank collects the blocks of its subtree and sends them to its parent
// in one message.
//   R. Thakur, R. Rabenseifner, W. Gropp: Optimization of Collective Communication Operations in
//   MPICH, IJHPCA 19(1), 2005.
// Steps: ceil(log2 P) hops; one message sent, ceil(log2 P) received by the root. Bytes sent: the
// blocks of the subtree. With a codec each block is a frame and a message of its own, encoded by its
// rank, passed on as it is and decoded by the root. Scratch: the blocks of the subtree, the own one
// first.
#include "algos/algorithm.hpp"
#include "algos/binomial_tree.hpp"
#include "algos/schedule_builder.hpp"

namespace uzip {
namespace {

Schedule build(const Shape& shape, int rank) {
  const BinomialTree tree(shape, rank);
  ScheduleBuilder builder(shape, rank);
  const Slice mine = builder.input_block(rank);
  if (tree.descendants() == 1) {
    if (tree.is_root()) {
      builder.copy(mine, builder.output_block(rank));
    } else {
      builder.send(mine, tree.parent());
    }
    return builder.finish();
  }

  const BlocksInTreeOrder blocks(shape, tree, builder);
  if (!tree.is_root()) builder.copy(mine, blocks.range(0, 1));
  for (int k = 0; k < tree.children(); ++k) {
    const int first = 1 << k;
    builder.recv(tree.child(k), blocks.blocks(first, first + tree.descendants(k)));
  }
  if (!tree.is_root()) {
    builder.send(blocks.blocks(0, tree.descendants()), tree.parent());
    return builder.finish();
  }
  builder.copy(mine, builder.output_block(rank));
  for (int i = 1; i < shape.size; ++i) {
    builder.copy(blocks.range(i, i + 1), builder.output_block(tree.rank_at(i)));
  }
  return builder.finish();
}

double cost(const Shape& shape, double bytes, const CostModel& model) {
  const double moved = bytes * (shape.size - 1) / shape.size;
  // Half of the blocks pass through each level of the tree; the root copies each.
  const Work work = {.hops = 1.0 * doubling_rounds(shape.size), .steps = 1.0 * shape.size, .wire = moved,
                     .operands = bytes, .coded = moved};
  return time_of(work, shape, bytes, model);
}

}  // namespace

extern const Algorithm gather_binomial = {
    "binomial",
    Coll::kGather,
    "up a binomial tree, every rank sending the blocks of its subtree at once: log2(P) hops; for "
    "small blocks on many ranks",
    [](const Shape& shape) { return shape.coll == Coll::kGather; },
    build,
    cost,
};

}  // namespace uzip
