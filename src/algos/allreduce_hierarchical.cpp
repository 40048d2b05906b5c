// Hierarchical all-reduce: each host reduces its ranks' vectors, every share on another rank; the
// ranks that have the same share on all hosts reduce it between them, two-shot; then each host hands
// the results round.
//   R. Thakur, R. Rabenseifner, W. Gropp: Optimization of Collective Communication Operations in
//   MPICH, IJHPCA 19(1), 2005 (the two-shot parts); M. Cho, U. Finkler, D. Kung, H. Hunter:
//   BlueConnect: Decomposing All-Reduce for Deep Learning on Heterogeneous Network Hierarchy,
//   MLSys 2019 (the decomposition).
// Steps: 1 hop on the host, 2 between hosts, 1 on the host. For H hosts of L ranks, a rank sends
// 2 (H-1)/H n/L bytes to other hosts, the minimum for its host, and 2 (L-1)/L n on its own. If hosts
// differ in size, the smallest says how many shares there are.
// Only what goes to another host is encoded. The operands stand in rank order on each host, then in
// the order of the hosts: the same for all elements. Scratch: L shares, and H pieces of one.
#include "algos/algorithm.hpp"
#include "algos/host_costs.hpp"
#include "algos/host_reduction.hpp"

namespace uzip {
namespace {

Schedule build(const Shape& shape, int rank) {
  ScheduleBuilder builder(shape, rank);
  HostReduction hosts(shape, rank, builder);
  const Slice mine = hosts.reduce(Slot::kOutput);
  const HostGroups& groups = hosts.groups();
  const std::vector<int> places = groups.places_after(hosts.host(), hosts.place());
  if (hosts.owns_share()) {
    // Between the hosts: everybody's piece of the share.
    const std::vector<Slice> pieces = hosts.pieces(hosts.place());
    for (int i = 1; i < groups.hosts(); ++i) {
      builder.send(mine, groups.member(hosts.other_host(i), hosts.place()));
    }
    for (int i = 1; i < groups.hosts(); ++i) {
      builder.recv(groups.member(hosts.other_host(i), hosts.place()), in(Slot::kOutput, pieces[hosts.other_host(i)]));
    }
    // On the host: the whole share.
    const Slice share = in(Slot::kOutput, hosts.shares()[static_cast<size_t>(hosts.place())]);
    for (int place : places) {
      if (place != hosts.place()) builder.send(share, hosts.members()[place]);
    }
  }
  for (int share : places) {
    if (share == hosts.place() || share >= groups.smallest()) continue;
    builder.recv(hosts.members()[share], in(Slot::kOutput, hosts.shares()[share]));
  }
  return builder.finish();
}

double cost(const Shape& shape, double bytes, const CostModel& model) {
  const HostCosts costs(shape, model);
  const double on_host = bytes * (costs.ranks - 1) / costs.ranks;
  const double between = bytes / costs.shares * (costs.hosts - 1) / costs.hosts;
  return costs.in_vain + 2 * costs.on_host(costs.ranks - 1, on_host) + 2 * costs.between(costs.hosts - 1, between) +
         (on_host + between) * model.reduce_per_byte;
}

}  // namespace

extern const Algorithm allreduce_hierarchical = {
    "hierarchical",
    Coll::kAllreduce,
    "each host reduces its ranks' vectors, ranks of different hosts reduce the shares, each host "
    "hands the results round: four hops, 2n/L bytes to other hosts from each of L ranks; where some "
    "ranks share a host and others don't",
    [](const Shape& shape) { return shape.coll == Coll::kAllreduce; },
    build,
    cost,
    Order::kFixed,
};

}  // namespace uzip
