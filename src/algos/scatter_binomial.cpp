// Binomial-tree scatter: the root sends each child the blocks of the child's subtree in one message,
// and so does every rank that has children.
//   R. Thakur, R. Rabenseifner, W. Gropp: Optimization of Collective Communication Operations in
//   MPICH, IJHPCA 19(1), 2005.
// Steps: ceil(log2 P) hops; ceil(log2 P) messages sent by the root. Bytes sent: the blocks of the
// subtree but the own one. With a codec each block is a frame and a message of its own, encoded by
// the root, passed on as it is and decoded by its rank. Scratch: the blocks of the subtree, the own
// one first.
#include "algos/algorithm.hpp"
#include "algos/binomial_tree.hpp"
#include "algos/schedule_builder.hpp"

namespace uzip {
namespace {

Schedule build(const Shape& shape, int rank) {
  const BinomialTree tree(shape, rank);
  ScheduleBuilder builder(shape, rank);
  if (tree.descendants() == 1) {
    if (tree.is_root()) {
      builder.copy(builder.input_block(rank), builder.output_block(rank));
    } else {
      builder.recv(tree.parent(), builder.output_block(rank));
    }
    return builder.finish();
  }

  const BlocksInTreeOrder blocks(shape, tree, builder);
  if (tree.is_root()) {
    for (int i = 1; i < shape.size; ++i) {
      builder.copy(builder.input_block(tree.rank_at(i)), blocks.range(i, i + 1));
    }
  } else {
    builder.recv(tree.parent(), blocks.blocks(0, tree.descendants()));
  }
  // The child with the largest subtree first: its blocks have the longest way to go.
  for (int k = tree.children() - 1; k >= 0; --k) {
    const int first = 1 << k;
    builder.send(blocks.blocks(first, first + tree.descendants(k)), tree.child(k));
  }
  builder.copy(tree.is_root() ? builder.input_block(rank) : blocks.range(0, 1),
               builder.output_block(rank));
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

extern const Algorithm scatter_binomial = {
    "binomial",
    Coll::kScatter,
    "down a binomial tree, every child getting the blocks of its subtree at once: log2(P) hops; for "
    "small blocks on many ranks",
    [](const Shape& shape) { return shape.coll == Coll::kScatter; },
    build,
    cost,
};

}  // namespace uzip
