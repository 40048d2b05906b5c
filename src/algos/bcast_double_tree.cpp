// Double-tree broadcast: every other share of the vector goes down one binary tree, the rest down another one, in which
// the ranks that pass things on are others; one share follows another.
//   P. Sanders, J. Speck, J. L. Traeff: Two-Tree Algorithms for Full Bandwidth Broadcast, Reduction and Scan, Parallel
//   Computing 35(12), 2009.
// Steps: ceil(log2 P) hops, then one for each further share (rounds follow each other without a gap). Bytes sent: n at
// the root and at ranks with two children, n/2 at those with one, nothing at a leaf of both. Encoded once, at the root;
// the others pass the frames on. Scratch: none.
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
  const Slot from = trees.is_root() ? Slot::kInput : Slot::kOutput;
  for (int tree = 0; const Slice& share : pipeline_shares(shape, from)) {
    if (!trees.is_root()) builder.recv(trees.parent(tree), share);
    const DoubleTree::Children children = trees.children(tree);
    if (children.left >= 0) builder.send(share, children.left);
    if (children.right >= 0) builder.send(share, children.right);
    builder.copy(share, in(Slot::kOutput, share));
    tree = (tree + 1) % DoubleTree::kTrees;
  }
  return builder.finish();
}

double cost(const Shape& shape, double bytes, const CostModel& model) {
  // A share waits for its neighbour at every rank that has two children, and for those of the other tree.
  const int hops = doubling_rounds(shape.size);
  const CostModel near = between_neighbors(shape, model);
  return time_of(work_of({hops, 2 * (hops - 1), kTreeWire}, shape, bytes, near), shape, bytes, near);
}

}  // namespace

extern const Algorithm bcast_double_tree = {
    "double_tree",
    Coll::kBcast,
    "shares follow one another down two binary trees, encoded once: log2(P) hops and at most n bytes from every rank; for "
    "large vectors on many ranks",
    [](const Shape& shape) { return shape.coll == Coll::kBcast; },
    build,
    cost,
};

}  // namespace uzip
