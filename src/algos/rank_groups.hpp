// The ranks of a shape as nested groups, as one rank sees them: those of its socket, the sockets of its host, the hosts.
// What hierarchical algorithms are written with, whatever the depth.
#pragma once

#include "algos/schedule.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace uzip {

/// A group of ranks and the parts that it consists of: the ranks of a socket, the sockets of a host, or the hosts.
struct GroupLevel {
  /// Ranks of each part in the order in which they speak for it, the one that leads first. Parts in the order in which
  /// reductions take them: ranks and hosts by the lowest rank, sockets as Shape::sockets numbers them.
  std::vector<std::vector<int>> parts;
  int own = 0;                 ///< the part of the rank that looks
  bool between_hosts = false;  ///< the parts are hosts
  std::vector<int> part_of;    ///< by rank, of those in the group
  std::vector<int> place_of;   ///< by rank, of those in the group: in its part

  int size() const { return static_cast<int>(parts.size()); }
  /// Who in `part` deals with what `rank` deals with in its own part.
  int speaker(int part, int rank) const {
    if (part_of[static_cast<size_t>(rank)] == part) return rank;
    const std::vector<int>& ranks = parts[static_cast<size_t>(part)];
    return ranks[static_cast<size_t>(place_of[static_cast<size_t>(rank)]) % ranks.size()];
  }
  /// Who leads `part`, where `rank` does so in its own.
  int leader(int part, int rank) const {
    return part_of[static_cast<size_t>(rank)] == part ? rank : parts[static_cast<size_t>(part)][0];
  }
};

class RankGroups {
 public:
  /// Groups of one part are left out; one rank alone is a group of one part.
  RankGroups(const Shape& shape, int rank);

  int rank() const { return rank_; }
  /// The groups that hold the rank, from the innermost to that of all ranks.
  const std::vector<GroupLevel>& levels() const { return levels_; }
  /// All ranks, taken in turn from each part, and so in each part: in a buffer that is divided among ranks in this order,
  /// those that deal with adjacent pieces have the same speaker in every other part.
  const std::vector<int>& in_turn() const { return in_turn_; }
  /// Who in the group at `level` deals with what is `owner`'s in the end.
  int speaker(size_t level, int owner) const {
    for (size_t i = levels_.size(); --i > level;) owner = levels_[i].speaker(levels_[i].own, owner);
    return owner;
  }

 private:
  void add_level(std::vector<std::vector<int>> parts, bool between_hosts);

  int rank_;
  std::vector<GroupLevel> levels_;
  std::vector<int> in_turn_;
};

/// One of each part after the other, for as long as there are any.
template <class T>
std::vector<T> take_in_turn(const std::vector<std::vector<T>>& parts) {
  std::vector<T> all;
  size_t largest = 0;
  for (const std::vector<T>& part : parts) largest = std::max(largest, part.size());
  for (size_t place = 0; place < largest; ++place) {
    for (const std::vector<T>& part : parts)
      if (place < part.size()) all.push_back(part[place]);
  }
  return all;
}

/// How many ranks the smallest and the largest of the hosts, or of all sockets, have; all ranks, if they are not told
/// apart.
struct GroupSizes {
  int count = 1;
  int smallest = 0;
  int largest = 0;
};
GroupSizes host_sizes(const Shape& shape);
GroupSizes socket_sizes(const Shape& shape);

}  // namespace uzip
