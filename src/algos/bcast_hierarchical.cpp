// Hierarchical broadcast: down a binomial tree of hosts, one rank on each, from there to one rank in each other socket, and
// from there to the others. Every share is handed on as soon as it is there.
//   R. Thakur, R. Rabenseifner, W. Gropp: Optimization of Collective Communication Operations in
//   MPICH, IJHPCA 19(1), 2005 (the tree); the levels as in hierarchical MPI libraries.
// Steps: ceil(log2 H) hops between H hosts, one between sockets and one in each, then one for each further share. Bytes
// sent to other hosts: n for each child of the host in the tree. Encoded once, at the root; between
// hosts the frames are passed on, on a host the elements go as they are. Scratch: none.
#include "algos/algorithm.hpp"
#include "algos/binomial_tree.hpp"
#include "algos/group_costs.hpp"
#include "algos/pipeline_costs.hpp"
#include "algos/rank_groups.hpp"
#include "algos/schedule_builder.hpp"
#include "algos/shares.hpp"

#include <ranges>
#include <utility>

namespace uzip {
namespace {

Schedule build(const Shape& shape, int rank) {
  const RankGroups groups(shape, rank);
  ScheduleBuilder builder(shape, rank);
  for (const Slice& value : pipeline_shares(shape, rank == shape.root ? Slot::kInput : Slot::kOutput)) {
    int source = shape.root;  // of the group
    for (const GroupLevel& level : std::views::reverse(groups.levels())) {
      const int from = std::exchange(source, level.leader(level.own, source));
      if (source != rank) continue;
      Shape parts;
      parts.size = level.size();
      parts.root = level.part_of[static_cast<size_t>(from)];
      const BinomialTree tree(parts, level.own);
      // On a host those that receive fetch the elements themselves, all at once.
      if (rank != from) builder.recv(level.between_hosts ? level.leader(tree.parent(), from) : from, value);
      for (int child = tree.children(); level.between_hosts && child-- > 0;)
        builder.send(value, level.leader(tree.child(child), from));
      for (int part = 0; !level.between_hosts && rank == from && part < level.size(); ++part)
        if (part != level.own) builder.send(value, level.leader(part, from));
    }
    builder.copy(value, in(Slot::kOutput, value));
  }
  return builder.finish();
}

double cost(const Shape& shape, double bytes, const CostModel& model) {
  const GroupCosts costs(shape, model);
  const double share = share_bytes(shape, bytes, model);
  const double shares = share > 0 ? bytes / share : 1;
  const int levels = doubling_rounds(static_cast<int>(costs.hosts));
  const double others = costs.in_socket - 1, other_sockets = costs.sockets - 1;
  // The root sends all shares to its children and to the ranks of its host, then the last one goes down. Each level gets
  // on with one share while the next is on its way to it. On one host there are neither levels nor a reason: a star.
  const double to_hosts = bytes * levels + share * std::max(levels - 1, 0);
  const double network = model.latency * levels + 2 * model.message * shares * levels +
                         to_hosts * model.ratio * alone_per_byte(model) + (levels > 0 ? bytes * model.codec_per_byte : 0);
  const double sockets = costs.across(1 + shares * other_sockets, bytes * other_sockets, 1);
  const double socket = costs.star(shares * others, bytes);
  const double longest = std::max({network, sockets, socket});
  const bool star = costs.hosts == 1 && costs.sockets == 1 && model.ranks_per_socket == 0;
  return (longest + (network + sockets + socket - longest) / shares) * (star ? 2 : 1);
}

}  // namespace

extern const Algorithm bcast_hierarchical = {
    "hierarchical",
    Coll::kBcast,
    "down a tree of hosts, encoded once, and from one rank on each host to the others as it is, by way of its sockets where "
    "it has several: log2(H)+1 or +2 hops for H hosts; where some ranks share a host or a socket and others don't",
    [](const Shape& shape) { return shape.coll == Coll::kBcast; },
    build,
    cost,
};

}  // namespace uzip
