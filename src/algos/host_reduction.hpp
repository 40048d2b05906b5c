// The reduction that hierarchical algorithms on vectors have in common: each host reduces its ranks' vectors, every
// share on another rank; then the ranks that have the same share on all hosts reduce it between them, every piece of it
// on another host.
#pragma once

#include "algos/host_groups.hpp"
#include "algos/rank_math.hpp"
#include "algos/schedule_builder.hpp"
#include "algos/shares.hpp"

#include <vector>

namespace uzip {

class HostReduction {
 public:
  HostReduction(const Shape& shape, int rank, ScheduleBuilder& builder)
      : groups_(shape),
        host_(groups_.host_of(rank)),
        place_(groups_.local_rank(rank)),
        members_(groups_.members(host_)),
        shares_(divide({Slot::kInput, 0, shape.total()}, groups_.smallest())),
        builder_(builder) {}

  const HostGroups& groups() const { return groups_; }
  int host() const { return host_; }
  int place() const { return place_; }
  const std::vector<int>& members() const { return members_; }
  /// One for each of the first ranks of a host, as places in the vector (the slot is kInput).
  const std::vector<Slice>& shares() const { return shares_; }
  /// The piece of a share that is reduced on each host.
  std::vector<Slice> pieces(int share) const { return divide(shares_[static_cast<size_t>(share)], groups_.hosts()); }
  bool owns_share() const { return static_cast<size_t>(place_) < shares_.size(); }
  /// The other hosts, beginning after this one, so that ranks do the same as seen from where they stand.
  int other_host(int step) const { return rank_after(host_, step, groups_.hosts()); }

  /// Both hops. The rank's piece, if it owns a share, is written to its place in `result`, or with kScratch to new
  /// scratch. Returns where it is.
  Slice reduce(Slot result) {
    for (int share : groups_.places_after(host_, place_)) {
      if (share != place_ && share < groups_.smallest()) builder_.send(shares_[share], members_[share]);
    }
    if (!owns_share()) return {};
    const Slice& share = shares_[static_cast<size_t>(place_)];
    if (groups_.hosts() == 1) return reduce_on_host(share, place_for(result, share), true);
    if (members_.size() == 1) return reduce_between_hosts(share, result);
    return reduce_between_hosts(reduce_on_host(share, builder_.scratch(share.length), false), result);
  }

 private:
  Slice place_for(Slot result, Slice piece) {
    return result == Slot::kScratch ? builder_.scratch(piece.length) : in(result, piece);
  }

  // In the order of the ranks.
  Slice reduce_on_host(const Slice& share, Slice sum, bool last) {
    if (members_.size() == 1) {
      builder_.copy(share, sum);
      return sum;
    }
    std::vector<Slice> operands(members_.size(), share);
    for (int place : groups_.places_after(host_, place_)) {
      if (place == place_) continue;
      operands[place] = builder_.scratch(share.length);
      builder_.recv(members_[place], operands[place]);
    }
    builder_.reduce(operands, sum, last);
    return sum;
  }

  // In the order of the hosts.
  Slice reduce_between_hosts(const Slice& sum, Slot result) {
    const int hosts = groups_.hosts();
    const std::vector<Slice> parts = divide(sum, hosts);
    for (int i = 1; i < hosts; ++i) {
      builder_.send(parts[other_host(i)], groups_.member(other_host(i), place_));
    }
    std::vector<Slice> operands(static_cast<size_t>(hosts), parts[host_]);
    for (int i = 1; i < hosts; ++i) {
      operands[other_host(i)] = builder_.scratch(parts[host_].length);
      builder_.recv(groups_.member(other_host(i), place_), operands[other_host(i)]);
    }
    const Slice reduced = place_for(result, pieces(place_)[host_]);
    builder_.reduce(operands, reduced, true);
    return reduced;
  }

  const HostGroups groups_;
  const int host_;
  const int place_;  // among the ranks of the host
  const std::vector<int>& members_;
  const std::vector<Slice> shares_;
  ScheduleBuilder& builder_;
};

}  // namespace uzip
