// Binomial-tree reduction: every rank reduces what its children send with its own vector and sends
// the result to its parent.
//   R. Thakur, R. Rabenseifner, W. Gropp: Optimization of Collective Communication Operations in
//   MPICH, IJHPCA 19(1), 2005.
// Steps: ceil(log2 P) hops. Bytes sent: n at every rank but the root, the minimum; received: n from
// each child, ceil(log2 P) n at the root. The operands stand in the order of the ranks, beginning
// with the root's. Scratch: two vectors, one being received while the other is reduced.
#include "algos/algorithm.hpp"
#include "algos/binomial_tree.hpp"
#include "algos/pipeline_costs.hpp"
#include "algos/schedule_builder.hpp"

#include <array>

namespace uzip {
namespace {

Schedule build(const Shape& shape, int rank) {
  const BinomialTree tree(shape, rank);
  const int children = tree.children();
  ScheduleBuilder builder(shape, rank);
  Slice value{Slot::kInput, 0, shape.total()};  // reduced so far

  std::array<Slice, 2> arrivals;
  for (int i = 0; i < std::min(2, children); ++i) arrivals[i] = builder.scratch(shape.total());
  for (int k = 0; k < children; ++k) {
    const Slice arrival = arrivals[k % 2];
    const bool last = tree.is_root() && k == children - 1;
    builder.recv(tree.child(k), arrival);
    const Slice result = last ? Slice{Slot::kOutput, 0, shape.total()} : arrival;
    builder.reduce(std::array{value, arrival}, result, last);
    value = result;
  }
  if (!tree.is_root()) {
    builder.send(value, tree.parent());
  } else if (children == 0) {
    builder.copy(value, {Slot::kOutput, 0, shape.total()});
  }
  return builder.finish();
}

double cost(const Shape& shape, double bytes, const CostModel& model) {
  const double hops = doubling_rounds(shape.size), moved = hops * bytes;
  const Work work = {.hops = 1.0 * doubling_depth(shape.size), .steps = hops, .wire = moved, .operands = 2 * moved,
                     .coded = moved};
  return time_of(work, shape, bytes, between_neighbors(shape, model));
}

}  // namespace

extern const Algorithm reduce_binomial = {
    "binomial",
    Coll::kReduce,
    "up a binomial tree, every rank reducing what its children send: log2(P) hops of n bytes; for "
    "small vectors",
    [](const Shape& shape) { return shape.coll == Coll::kReduce; },
    build,
    cost,
    Order::kFixed,
};

}  // namespace uzip
