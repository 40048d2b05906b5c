// Hierarchical reduce-scatter: each socket reduces what its ranks have of every block, then each host, then the block's
// rank reduces the sums of all hosts.
//   M. Cho, U. Finkler, D. Kung, H. Hunter: BlueConnect: Decomposing All-Reduce for Deep Learning on Heterogeneous
//   Network Hierarchy, MLSys 2019 (the first half).
// Steps: 1 hop in a group of each kind. For H hosts of L ranks, in D sockets of S, and n bytes in all blocks, a rank sends
// (H-1)/H n/L bytes to other hosts, the minimum for its host, (D-1)/D n/S to other sockets, and (S-1)/S n in its own,
// block by block.
// Only what goes to another host is encoded: a sum, once. The operands stand in rank order in each socket, then in the
// order of the sockets, then of the hosts: the same for all elements. Scratch: S of the blocks that the rank deals with in
// its socket, D of those on its host, H-1 blocks.
#include "algos/algorithm.hpp"
#include "algos/group_costs.hpp"
#include "algos/group_exchange.hpp"

namespace uzip {
namespace {

Schedule build(const Shape& shape, int rank) {
  const RankGroups groups(shape, rank);
  ScheduleBuilder builder(shape, rank);
  std::vector<OwnedPiece> blocks;
  for (int block = 0; block < shape.size; ++block) blocks.push_back({block, builder.input_block(block)});
  reduce_to_owners(groups, std::move(blocks), Adjacent::kApart, builder.output_block(rank), builder);
  return builder.finish();
}

double cost(const Shape& shape, double bytes, const CostModel& model) {
  const GroupCosts costs(shape, model);
  const double between = bytes / costs.shares * (costs.hosts - 1) / costs.hosts;
  return costs.in_vain * (costs.on_host(bytes, true) + costs.between(costs.hosts - 1, between) + costs.reductions(bytes));
}

}  // namespace

extern const Algorithm reduce_scatter_hierarchical = {
    "hierarchical",
    Coll::kReduceScatter,
    "each host reduces what its ranks have of every block, by socket where it has several, and the block's rank reduces the "
    "sums of all hosts: two or three hops, n/L bytes to other hosts from each of L ranks; where some ranks share a host or a "
    "socket and others don't",
    [](const Shape& shape) { return shape.coll == Coll::kReduceScatter; },
    build,
    cost,
    Order::kFixed,
};

}  // namespace uzip
