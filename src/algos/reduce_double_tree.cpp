// Double-tree reduction: every other share of the vector is reduced up one binary tree, the rest up another one, in which
// the ranks that reduce are others; one share follows another.
//   P. Sanders, J. Speck, J. L. Traeff: Two-Tree Algorithms for Full Bandwidth Broadcast, Reduction and Scan, Parallel
//   Computing 35(12), 2009.
// Steps: ceil(log2 P) hops, then one for each further share (rounds follow each other without a gap). Bytes sent: n at
// every rank but the root, the minimum; received: n at most. A rank reduces what comes from the left, its own and what
// comes from the right, at once and in this order; in the second tree the order of the ranks is another, so the order of
// operands depends on the element's place. Scratch: one vector at most.
#include "algos/algorithm.hpp"
#include "algos/double_tree.hpp"
#include "algos/pipeline_costs.hpp"
#include "algos/schedule_builder.hpp"
#include "algos/shares.hpp"

namespace uzip {
namespace {

Schedule build(const Shape& shape, int rank) {
  const DoubleTree trees(shape, rank);
  ScheduleBuilder builder(shape, rank);
  for (int tree = 0; const Slice& share : pipeline_shares(shape, Slot::kInput)) {
    const DoubleTree::Children children = trees.children(tree);
    std::vector<Slice> operands;
    const auto arrival = [&](int child) {
      operands.push_back(builder.scratch(share.length));
      builder.recv(child, operands.back());
    };
    if (children.left >= 0) arrival(children.left);
    operands.push_back(share);
    if (children.right >= 0) arrival(children.right);
    if (trees.is_root()) {
      builder.reduce(operands, in(Slot::kOutput, share), true);
    } else if (operands.size() == 1) {
      builder.send(share, trees.parent(tree));
    } else {
      const Slice sum = operands[children.left >= 0 ? 0 : 1];
      builder.reduce(operands, sum, false);
      builder.send(sum, trees.parent(tree));
    }
    tree = (tree + 1) % DoubleTree::kTrees;
  }
  return builder.finish();
}

double cost(const Shape& shape, double bytes, const CostModel& model) {
  // A share waits for its neighbour at every rank that has two children, and for those of the other tree.
  const int hops = doubling_rounds(shape.size);
  const CostModel near = between_neighbors(shape, model);
  return time_of(work_of_reducing({hops, 2 * (hops - 1), kTreeWire}, shape, bytes, near), shape, bytes, near);
}

}  // namespace

extern const Algorithm reduce_double_tree = {
    "double_tree",
    Coll::kReduce,
    "shares follow one another up two binary trees: log2(P) hops and n bytes from every rank; for large vectors on many "
    "ranks",
    [](const Shape& shape) { return shape.coll == Coll::kReduce; },
    build,
    cost,
    Order::kByPlace,
};

}  // namespace uzip
