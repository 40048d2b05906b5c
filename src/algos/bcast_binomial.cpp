// Binomial-tree broadcast: every rank that has the vector sends it to one that hasn't, so the number
// of those that have it doubles with every hop.
//   R. Thakur, R. Rabenseifner, W. Gropp: Optimization of Collective Communication Operations in
//   MPICH, IJHPCA 19(1), 2005.
// Steps: ceil(log2 P) hops. Bytes sent: n for each child, at most ceil(log2 P) n at the root.
// Encoded once, at the root; the others pass the frame on. Scratch: none.
#include "algos/algorithm.hpp"
#include "algos/binomial_tree.hpp"
#include "algos/pipeline_costs.hpp"
#include "algos/schedule_builder.hpp"

namespace uzip {
namespace {

Schedule build(const Shape& shape, int rank) {
  const BinomialTree tree(shape, rank);
  const Slice output{Slot::kOutput, 0, shape.total()};
  ScheduleBuilder builder(shape, rank);
  Slice value = output;
  if (tree.is_root()) {
    value.slot = Slot::kInput;
  } else {
    builder.recv(tree.parent(), output);
  }
  // The child with the largest subtree first: it has the longest way to go.
  for (int child = tree.children() - 1; child >= 0; --child) builder.send(value, tree.child(child));
  builder.copy(value, output);
  return builder.finish();
}

double cost(const Shape& shape, double bytes, const CostModel& model) {
  // A rank sends to its children one after another, unless it is they whose cores carry the bytes.
  const CostModel near = between_neighbors(shape, model);
  const double depth = doubling_depth(shape.size), children = doubling_rounds(shape.size);
  const double sent = near.cores_carry ? depth : children;
  // Where the last child has no subtree to wait for, the messages before its own are what it waits for.
  return time_of({.hops = depth, .messages = (children - depth) / 2, .wire = sent * bytes, .coded = bytes}, shape, bytes, near);
}

}  // namespace

extern const Algorithm bcast_binomial = {
    "binomial",
    Coll::kBcast,
    "down a binomial tree, encoded once: log2(P) hops of n bytes; for small vectors",
    [](const Shape& shape) { return shape.coll == Coll::kBcast; },
    build,
    cost,
};

}  // namespace uzip
