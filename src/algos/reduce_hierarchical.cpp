// Hierarchical reduction: each host reduces its ranks' vectors, every share on another rank; the ranks that have the
// same share on all hosts reduce it between them, every piece on another host; each piece goes to the root.
//   As allreduce_hierarchical.cpp, whose first two hops these are; R. Thakur, R. Rabenseifner, W. Gropp: Optimization of
//   Collective Communication Operations in MPICH, IJHPCA 19(1), 2005 (reduce-scatter and gather).
// Steps: 1 hop on the host, 1 between hosts, 1 to the root. For H hosts of L ranks, a rank sends (H-1)/H n/L bytes to
// other hosts and a piece of n/L/H to the root, and (L-1)/L n on its own host. If hosts differ in size, the smallest
// says how many shares there are.
// Only what goes to another host is encoded. The operands stand in rank order on each host, then in the order of the
// hosts: the same for all elements. Scratch: L shares, and H+1 pieces of one.
#include "algos/algorithm.hpp"
#include "algos/host_costs.hpp"
#include "algos/host_reduction.hpp"

namespace uzip {
namespace {

Schedule build(const Shape& shape, int rank) {
  ScheduleBuilder builder(shape, rank);
  HostReduction reduction(shape, rank, builder);
  const Slice mine = reduction.reduce(rank == shape.root ? Slot::kOutput : Slot::kScratch);
  if (rank != shape.root) {
    builder.send(mine, shape.root);
    return builder.finish();
  }
  const HostGroups& groups = reduction.groups();
  for (int share = 0; share < groups.smallest(); ++share) {
    const std::vector<Slice> pieces = reduction.pieces(share);
    for (int i = 0; i < groups.hosts(); ++i) {
      const int host = reduction.other_host(i), owner = groups.member(host, share);
      if (owner != rank) builder.recv(owner, in(Slot::kOutput, pieces[host]));
    }
  }
  return builder.finish();
}

double cost(const Shape& shape, double bytes, const CostModel& model) {
  const HostCosts costs(shape, model);
  const double on_host = bytes * (costs.ranks - 1) / costs.ranks;
  const double between = bytes / costs.shares * (costs.hosts - 1) / costs.hosts;
  // At the root all pieces come in one after another.
  return costs.in_vain + costs.on_host(costs.ranks - 1, on_host) + costs.between(costs.hosts - 1, between) +
         (on_host + between) * model.reduce_per_byte + costs.on_host(costs.ranks - 1, on_host / costs.hosts) +
         costs.between((costs.hosts - 1) * costs.shares, bytes * (costs.hosts - 1) / costs.hosts);
}

}  // namespace

extern const Algorithm reduce_hierarchical = {
    "hierarchical",
    Coll::kReduce,
    "each host reduces its ranks' vectors, ranks of different hosts reduce the shares, the pieces go to the root: "
    "three hops, about n/L bytes to other hosts from each of L ranks; where some ranks share a host and others don't",
    [](const Shape& shape) { return shape.coll == Coll::kReduce; },
    build,
    cost,
    Order::kFixed,
};

}  // namespace uzip
