// Hierarchical all-reduce: a reduce-scatter over nested groups, in a socket, between the sockets of a host, between hosts;
// then an all-gather the same way back.
//   R. Thakur, R. Rabenseifner, W. Gropp: Optimization of Collective Communication Operations in
//   MPICH, IJHPCA 19(1), 2005 (the two-shot parts); M. Cho, U. Finkler, D. Kung, H. Hunter:
//   BlueConnect: Decomposing All-Reduce for Deep Learning on Heterogeneous Network Hierarchy,
//   MLSys 2019 (the decomposition).
// Steps: 1 hop in a group of each kind, and 1 back. For H hosts of L ranks, in D sockets of S, a rank sends 2 (H-1)/H n/L
// bytes to other hosts, the minimum for its host, 2 (D-1)/D n/S to other sockets, and 2 (S-1)/S n in its own.
// Only what goes to another host is encoded. The operands stand in rank order in each socket, then in the order of the
// sockets, then of the hosts: the same for all elements. Scratch: S shares of n/S, D of n/L, H-1 pieces of n/L/H.
#include "algos/algorithm.hpp"
#include "algos/group_costs.hpp"
#include "algos/group_exchange.hpp"

namespace uzip {
namespace {

Schedule build(const Shape& shape, int rank) {
  const RankGroups groups(shape, rank);
  ScheduleBuilder builder(shape, rank);
  const std::vector<OwnedPiece> output = divide_in_turn(groups, Slot::kOutput, shape.total());
  const Slice mine = piece_of(output, rank).slice;
  reduce_to_owners(groups, divide_in_turn(groups, Slot::kInput, shape.total()), Adjacent::kTogether, mine, builder);
  send_to_all(groups, output, Adjacent::kTogether, mine, builder);
  return builder.finish();
}

double cost(const Shape& shape, double bytes, const CostModel& model) {
  const GroupCosts costs(shape, model);
  const double between = bytes / costs.shares * (costs.hosts - 1) / costs.hosts;
  return costs.in_vain * (2 * costs.on_host(bytes, false) + 2 * costs.between(costs.hosts - 1, between) +
                          costs.reductions(bytes));
}

}  // namespace

extern const Algorithm allreduce_hierarchical = {
    "hierarchical",
    Coll::kAllreduce,
    "each host reduces its ranks' vectors, ranks of different hosts reduce the shares, each host "
    "hands the results round, by way of its sockets where it has several: four or six hops, 2n/L bytes to other hosts "
    "from each of L ranks; where some ranks share a host or a socket and others don't",
    [](const Shape& shape) { return shape.coll == Coll::kAllreduce; },
    build,
    cost,
    Order::kFixed,
};

}  // namespace uzip
