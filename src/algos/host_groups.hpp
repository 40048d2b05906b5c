// The ranks of a shape by the host that they are on, for hierarchical algorithms.
#pragma once

#include "algos/schedule.hpp"

#include <algorithm>
#include <unordered_map>
#include <vector>

namespace uzip {

class HostGroups {
 public:
  /// Hosts in the order of their first ranks. Without hosts in the shape all ranks are on one.
  explicit HostGroups(const Shape& shape) {
    std::unordered_map<int, size_t> numbers;
    for (int rank = 0; rank < shape.size; ++rank) {
      const int name = shape.hosts.empty() ? 0 : shape.hosts[static_cast<size_t>(rank)];
      const size_t host = numbers.try_emplace(name, members_.size()).first->second;
      if (host == members_.size()) members_.emplace_back();
      host_of_.push_back(static_cast<int>(host));
      local_rank_.push_back(static_cast<int>(members_[host].size()));
      members_[host].push_back(rank);
    }
  }

  int hosts() const { return static_cast<int>(members_.size()); }
  int host_of(int rank) const { return host_of_[static_cast<size_t>(rank)]; }
  /// The rank's place among those of its host.
  int local_rank(int rank) const { return local_rank_[static_cast<size_t>(rank)]; }
  /// The ranks of a host, ascending.
  const std::vector<int>& members(int host) const { return members_[static_cast<size_t>(host)]; }
  int member(int host, int local_rank) const { return members(host)[static_cast<size_t>(local_rank)]; }
  /// All places on a host, beginning after `local_rank` and ending with it: in this order ranks do the same as seen from
  /// where they stand.
  std::vector<int> places_after(int host, int local_rank) const {
    const int size = static_cast<int>(members(host).size());
    std::vector<int> places;
    for (int i = 1; i <= size; ++i) places.push_back((local_rank + i) % size);
    return places;
  }
  /// Who on `host` deals with the block of `rank`; on the rank's own host, the rank itself.
  int handler(int host, int rank) const {
    return member(host, local_rank(rank) % static_cast<int>(members(host).size()));
  }
  int smallest() const {
    size_t size = members_[0].size();
    for (const auto& ranks : members_) size = std::min(size, ranks.size());
    return static_cast<int>(size);
  }
  int largest() const {
    size_t size = 0;
    for (const auto& ranks : members_) size = std::max(size, ranks.size());
    return static_cast<int>(size);
  }

 private:
  std::vector<int> host_of_;
  std::vector<int> local_rank_;
  std::vector<std::vector<int>> members_;
};

}  // namespace uzip
