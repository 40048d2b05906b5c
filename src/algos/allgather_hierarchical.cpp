// Hierarchical all-gather: every block goes to one rank on each other host, from there to one in each other socket, and
// from there to the others.
//   R. Thakur, R. Rabenseifner, W. Gropp: Optimization of Collective Communication Operations in MPICH, IJHPCA 19(1),
//   2005 (the direct exchange); the levels as in hierarchical MPI libraries.
// Steps: 1 hop between hosts, 1 between sockets, 1 in a socket. For H hosts of L ranks, in D sockets of S, and n bytes in
// all blocks, a rank sends (H-1)/H n/L bytes to other hosts, the minimum for its host, (D-1)/D n/S to other sockets, and
// (S-1)/S n in its own.
// Only what goes to another host is encoded, once for all hosts; on a host the elements go as they are. Scratch: none.
#include "algos/algorithm.hpp"
#include "algos/group_costs.hpp"
#include "algos/group_exchange.hpp"

namespace uzip {
namespace {

Schedule build(const Shape& shape, int rank) {
  const RankGroups groups(shape, rank);
  ScheduleBuilder builder(shape, rank);
  std::vector<OwnedPiece> blocks;
  for (int block = 0; block < shape.size; ++block) blocks.push_back({block, builder.output_block(block)});
  send_to_all(groups, blocks, Adjacent::kApart, builder.input_block(rank), builder);
  return builder.finish();
}

double cost(const Shape& shape, double bytes, const CostModel& model) {
  const GroupCosts costs(shape, model);
  const double between = bytes / costs.shares * (costs.hosts - 1) / costs.hosts;
  return costs.in_vain * (model.step + costs.between(costs.hosts - 1, between) + costs.on_host(bytes, true));
}

}  // namespace

extern const Algorithm allgather_hierarchical = {
    "hierarchical",
    Coll::kAllgather,
    "every block goes to one rank on each other host, encoded once, and there to the others as it is, by way of its sockets "
    "where it has several: two or three hops, n/L bytes to other hosts from each of L ranks; where some ranks share a host "
    "or a socket and others don't",
    [](const Shape& shape) { return shape.coll == Coll::kAllgather; },
    build,
    cost,
};

}  // namespace uzip
