// Hierarchical broadcast: down a binomial tree of hosts, one rank on each, which hands every share to
// the others on its host as soon as it is there.
//   R. Thakur, R. Rabenseifner, W. Gropp: Optimization of Collective Communication Operations in
//   MPICH, IJHPCA 19(1), 2005 (the tree); the two levels as in hierarchical MPI libraries.
// Steps: ceil(log2 H) hops between H hosts and one on each, then one for each further share. Bytes
// sent to other hosts: n for each child of the host in the tree. Encoded once, at the root; between
// hosts the frames are passed on, on a host the elements go as they are. Scratch: none.
#include "algos/algorithm.hpp"
#include "algos/binomial_tree.hpp"
#include "algos/host_costs.hpp"
#include "algos/schedule_builder.hpp"
#include "algos/shares.hpp"

namespace uzip {
namespace {

Schedule build(const Shape& shape, int rank) {
  const HostGroups groups(shape);
  const int host = groups.host_of(rank);
  const auto leader_of = [&](int other) {
    return other == groups.host_of(shape.root) ? shape.root : groups.member(other, 0);
  };
  Shape of_hosts;
  of_hosts.size = groups.hosts();
  of_hosts.root = groups.host_of(shape.root);
  const BinomialTree tree(of_hosts, host);
  const bool leads = rank == leader_of(host);
  ScheduleBuilder builder(shape, rank);
  for (const Slice& value : pipeline_shares(shape, rank == shape.root ? Slot::kInput : Slot::kOutput)) {
    if (!leads) {
      builder.recv(leader_of(host), value);
      continue;
    }
    if (rank != shape.root) builder.recv(leader_of(tree.parent()), value);
    for (int child = tree.children() - 1; child >= 0; --child) {
      builder.send(value, leader_of(tree.child(child)));
    }
    for (int member : groups.members(host)) {
      if (member != rank) builder.send(value, member);
    }
    builder.copy(value, in(Slot::kOutput, value));
  }
  return builder.finish();
}

double cost(const Shape& shape, double bytes, const CostModel& model) {
  const HostCosts costs(shape, model);
  const double share = share_bytes(shape, bytes, model);
  const double shares = share > 0 ? bytes / share : 1;
  const int levels = doubling_rounds(static_cast<int>(costs.hosts));
  const double others = costs.ranks - 1;
  // The root sends all shares to its children and to the ranks of its host, then the last one goes
  // down. On one host there are neither levels nor a reason: it would be a star.
  const double remote = bytes * levels + share * std::max(levels - 1, 0);
  return (costs.hosts > 1 ? 0 : costs.local_latency * doubling_rounds(shape.size)) +
         model.latency * (levels + kMessageStart * shares * levels) +
         remote * model.ratio * model.seconds_per_byte +
         (levels > 0 ? bytes * model.codec_per_byte : 0) +
         costs.on_host(others > 0 ? 1 + shares * others : 0, bytes * others);
}

}  // namespace

extern const Algorithm bcast_hierarchical = {
    "hierarchical",
    Coll::kBcast,
    "down a tree of hosts, encoded once, and from one rank on each host to the others as it is: "
    "log2(H)+1 hops for H hosts; where some ranks share a host and others don't",
    [](const Shape& shape) { return shape.coll == Coll::kBcast; },
    build,
    cost,
};

}  // namespace uzip
