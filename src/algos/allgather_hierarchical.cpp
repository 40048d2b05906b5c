// Hierarchical all-gather: every block goes to one rank on each other host, which hands it to the others there.
//   R. Thakur, R. Rabenseifner, W. Gropp: Optimization of Collective Communication Operations in MPICH, IJHPCA 19(1),
//   2005 (the direct exchange); the two levels as in hierarchical MPI libraries.
// Steps: 1 hop between hosts, 1 on the host. For H hosts of L ranks and n bytes in all blocks, a rank sends
// (H-1)/H n/L bytes to other hosts, the minimum for its host, and (L-1)/L n on its own.
// Only what goes to another host is encoded, once for all hosts; on a host the elements go as they are. Scratch: none.
#include "algos/algorithm.hpp"
#include "algos/host_costs.hpp"
#include "algos/rank_math.hpp"
#include "algos/schedule_builder.hpp"

namespace uzip {
namespace {

Schedule build(const Shape& shape, int rank) {
  const HostGroups groups(shape);
  const int hosts = groups.hosts(), host = groups.host_of(rank);
  ScheduleBuilder builder(shape, rank);
  const Slice mine = builder.input_block(rank);
  std::vector<int> others;  // on this host
  for (int place : groups.places_after(host, groups.local_rank(rank))) {
    if (groups.member(host, place) != rank) others.push_back(groups.member(host, place));
  }
  const auto hand_round = [&](const Slice& block) {
    for (int other : others) builder.send(block, other);
  };

  for (int i = 1; i < hosts; ++i) builder.send(mine, groups.handler(rank_after(host, i, hosts), rank));
  hand_round(mine);
  builder.copy(mine, builder.output_block(rank));
  for (int other : others) builder.recv(other, builder.output_block(other));
  // Beginning with the next host, so that ranks do the same as seen from where they stand.
  for (int i = 1; i < hosts; ++i) {
    for (int other : groups.members(rank_after(host, i, hosts))) {
      const Slice block = builder.output_block(other);
      const int handler = groups.handler(host, other);
      builder.recv(handler == rank ? other : handler, block);
      if (handler == rank) hand_round(block);
    }
  }
  return builder.finish();
}

double cost(const Shape& shape, double bytes, const CostModel& model) {
  const HostCosts costs(shape, model);
  const double between = bytes / costs.shares * (costs.hosts - 1) / costs.hosts;
  return costs.in_vain + costs.between(costs.hosts - 1, between) +
         costs.on_host((costs.ranks - 1) * costs.hosts, bytes * (costs.ranks - 1) / costs.ranks);
}

}  // namespace

extern const Algorithm allgather_hierarchical = {
    "hierarchical",
    Coll::kAllgather,
    "every block goes to one rank on each other host, encoded once, and there to the others as it is: two hops, n/L "
    "bytes to other hosts from each of L ranks; where some ranks share a host and others don't",
    [](const Shape& shape) { return shape.coll == Coll::kAllgather; },
    build,
    cost,
};

}  // namespace uzip
