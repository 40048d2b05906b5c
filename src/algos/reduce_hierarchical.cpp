// Hierarchical reduction: a reduce-scatter over nested groups, in a socket, between the sockets of a host, between hosts;
// then each piece goes to the root.
//   As allreduce_hierarchical.cpp, whose first half this is; R. Thakur, R. Rabenseifner, W. Gropp: Optimization of
//   Collective Communication Operations in MPICH, IJHPCA 19(1), 2005 (reduce-scatter and gather).
// Steps: 1 hop in a group of each kind, 1 to the root. For H hosts of L ranks, in D sockets of S, a rank sends (H-1)/H n/L
// bytes to other hosts and a piece of n/L/H to the root, (D-1)/D n/S to other sockets, and (S-1)/S n in its own.
// Only what goes to another host is encoded. The operands stand in rank order in each socket, then in the order of the
// sockets, then of the hosts: the same for all elements. Scratch: S shares of n/S, D of n/L, H pieces of n/L/H.
#include "algos/algorithm.hpp"
#include "algos/group_costs.hpp"
#include "algos/group_exchange.hpp"
#include "algos/rank_math.hpp"

namespace uzip {
namespace {

Schedule build(const Shape& shape, int rank) {
  const RankGroups groups(shape, rank);
  ScheduleBuilder builder(shape, rank);
  const std::vector<OwnedPiece> output = divide_in_turn(groups, Slot::kOutput, shape.total());
  const bool is_root = rank == shape.root;
  const Slice place = piece_of(output, rank).slice;
  const Slice mine = is_root ? place : builder.scratch(place.length);
  reduce_to_owners(groups, divide_in_turn(groups, Slot::kInput, shape.total()), Adjacent::kTogether, mine, builder);
  if (!is_root) builder.send(mine, shape.root);
  for (int i = shape.size; is_root && --i > 0;) {
    const int owner = rank_after(rank, i, shape.size);
    builder.recv(owner, piece_of(output, owner).slice);
  }
  return builder.finish();
}

double cost(const Shape& shape, double bytes, const CostModel& model) {
  const GroupCosts costs(shape, model);
  const double on_host = bytes * (costs.ranks - 1) / costs.ranks;
  const double between = bytes / costs.shares * (costs.hosts - 1) / costs.hosts;
  // At the root all pieces come in one after another. Hosts get on with one round while others are on the network.
  const double at_root = alone_per_byte(model) / model.seconds_per_byte;
  const double network = costs.between(costs.hosts - 1, between) +
                         costs.between((costs.hosts - 1) * costs.shares / 2, bytes * (costs.hosts - 1) / costs.hosts * at_root);
  const double hosts = costs.on_host(bytes, false) + costs.reductions(bytes) +
                       costs.inside(costs.ranks - 1, on_host / costs.hosts);
  const double hidden = std::min(hosts, network) * (1 - 1 / rounds_of(shape, bytes, model));
  return costs.in_vain * (hosts + network - hidden);
}

}  // namespace

extern const Algorithm reduce_hierarchical = {
    "hierarchical",
    Coll::kReduce,
    "each host reduces its ranks' vectors, by socket where it has several, ranks of different hosts reduce the shares, the "
    "pieces go to the root: three or four hops, about n/L bytes to other hosts from each of L ranks; where some ranks share "
    "a host or a socket and others don't",
    [](const Shape& shape) { return shape.coll == Coll::kReduce; },
    build,
    cost,
    Order::kFixed,
};

}  // namespace uzip
