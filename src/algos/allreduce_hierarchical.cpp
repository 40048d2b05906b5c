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
#include "algos/host_groups.hpp"
#include "algos/schedule_builder.hpp"

namespace uzip {
namespace {

// `parts` consecutive parts of a range of the vector.
std::vector<Slice> divide(Slice whole, int parts) {
  std::vector<Slice> slices;
  for (size_t begin = whole.offset; size_t length : even_shares(whole.length, parts)) {
    slices.push_back({whole.slot, begin, length});
    begin += length;
  }
  return slices;
}

Slice in(Slot slot, Slice slice) { return {slot, slice.offset, slice.length}; }

class Build {
 public:
  Build(const Shape& shape, int rank)
      : groups_(shape),
        rank_(rank),
        host_(groups_.host_of(rank)),
        place_(groups_.local_rank(rank)),
        members_(groups_.members(host_)),
        shares_(divide({Slot::kInput, 0, shape.total()}, groups_.smallest())),
        builder_(shape, rank) {}

  Schedule schedule() {
    for (size_t share = 0; share < shares_.size(); ++share) {
      if (members_[share] != rank_) builder_.send(shares_[share], members_[share]);
    }
    if (owns_share()) {
      const Slice& share = shares_[static_cast<size_t>(place_)];
      reduce_between_hosts(share, reduce_on_host(share));
    }
    hand_round();
    return builder_.finish();
  }

 private:
  bool owns_share() const { return static_cast<size_t>(place_) < shares_.size(); }

  // What the ranks of this host make of a share; where it is.
  Slice reduce_on_host(const Slice& share) {
    if (members_.size() == 1) return share;
    std::vector<Slice> operands;
    for (int member : members_) {
      operands.push_back(member == rank_ ? share : builder_.scratch(share.length));
      if (member != rank_) builder_.recv(member, operands.back());
    }
    const bool last = groups_.hosts() == 1;
    const Slice sum = last ? in(Slot::kOutput, share) : builder_.scratch(share.length);
    builder_.reduce(operands, sum, last);
    return sum;
  }

  // Two-shot between the ranks that have this share, one on each host; piece k is reduced on host k.
  void reduce_between_hosts(const Slice& share, const Slice& sum) {
    const int hosts = groups_.hosts();
    const std::vector<Slice> pieces = divide(sum, hosts);
    const std::vector<Slice> results = divide(in(Slot::kOutput, share), hosts);
    if (hosts == 1) return builder_.copy(sum, in(Slot::kOutput, share));
    for (int i = 1; i < hosts; ++i) {
      const int host = (host_ + i) % hosts;
      builder_.send(pieces[host], groups_.member(host, place_));
    }
    std::vector<Slice> operands(static_cast<size_t>(hosts));
    for (int host = 0; host < hosts; ++host) {
      operands[host] = host == host_ ? pieces[host] : builder_.scratch(pieces[host_].length);
      if (host != host_) builder_.recv(groups_.member(host, place_), operands[host]);
    }
    builder_.reduce(operands, results[host_], true);
    for (int i = 1; i < hosts; ++i) {
      builder_.send(results[host_], groups_.member((host_ + i) % hosts, place_));
    }
    for (int host = 0; host < hosts; ++host) {
      if (host != host_) builder_.recv(groups_.member(host, place_), results[host]);
    }
  }

  void hand_round() {
    if (owns_share()) {
      const Slice result = in(Slot::kOutput, shares_[static_cast<size_t>(place_)]);
      for (int member : members_) {
        if (member != rank_) builder_.send(result, member);
      }
    }
    for (size_t share = 0; share < shares_.size(); ++share) {
      if (members_[share] != rank_) builder_.recv(members_[share], in(Slot::kOutput, shares_[share]));
    }
  }

  const HostGroups groups_;
  const int rank_;
  const int host_;
  const int place_;
  const std::vector<int>& members_;
  const std::vector<Slice> shares_;  // of the input; one for each of the first members of a host
  ScheduleBuilder builder_;
};

Schedule build(const Shape& shape, int rank) { return Build(shape, rank).schedule(); }

double cost(const Shape& shape, double bytes, const CostModel& model) {
  const HostGroups groups(shape);
  const double hosts = groups.hosts(), shares = groups.smallest(), ranks = groups.largest();
  const double on_host = bytes * (ranks - 1) / ranks, between = bytes / shares * (hosts - 1) / hosts;
  const bool one_link = shape.hosts.empty() || model.local_latency == 0;
  const double local_latency = one_link ? model.latency : model.local_latency;
  const double local_byte = one_link ? model.seconds_per_byte : model.local_seconds_per_byte;
  return local_latency * (2 + 2 * kMessageStart * std::max(ranks - 2, 0.0)) +
         on_host * (2 * local_byte + model.reduce_per_byte) +
         (hosts > 1 ? model.latency * (2 + 2 * kMessageStart * (hosts - 2)) : 0) +
         between * (2 * model.ratio * model.seconds_per_byte + model.reduce_per_byte +
                    2 * model.codec_per_byte);
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
