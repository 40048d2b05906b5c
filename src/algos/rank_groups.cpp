#include "algos/rank_groups.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace uzip {
namespace {

using Ranks = std::vector<int>;

/// What tells ranks apart, from the outermost groups to the innermost.
enum Key { kHosts, kSockets, kKeys };

int number_of(const Shape& shape, int key, int rank) {
  const std::vector<int>& numbers = key == kHosts ? shape.hosts : shape.sockets;
  return numbers.empty() ? 0 : numbers[static_cast<size_t>(rank)];
}

// The parts of a group in the order of GroupLevel::parts, the ranks of each ascending.
std::vector<Ranks> split(const Shape& shape, int key, const Ranks& group) {
  std::map<int, Ranks> by_number;
  for (int rank : group) by_number[number_of(shape, key, rank)].push_back(rank);
  std::vector<Ranks> parts;
  for (auto& [number, ranks] : by_number) parts.push_back(std::move(ranks));
  if (key == kHosts) std::sort(parts.begin(), parts.end());
  return parts;
}

// The ranks of a group that is told apart by `key` and those that follow it, in the order in which they speak for it.
Ranks speaking_order(const Shape& shape, int key, const Ranks& group) {
  if (key == kKeys) return group;
  std::vector<Ranks> parts = split(shape, key, group);
  for (Ranks& part : parts) part = speaking_order(shape, key + 1, part);
  return take_in_turn(parts);
}

GroupSizes sizes_of(const std::map<std::pair<int, int>, int>& ranks) {
  GroupSizes sizes{static_cast<int>(ranks.size()), ranks.begin()->second, 0};
  for (const auto& [group, count] : ranks) {
    sizes.smallest = std::min(sizes.smallest, count);
    sizes.largest = std::max(sizes.largest, count);
  }
  return sizes;
}

}  // namespace

RankGroups::RankGroups(const Shape& shape, int rank) : rank_(rank) {
  Ranks group(static_cast<size_t>(shape.size));
  std::iota(group.begin(), group.end(), 0);
  in_turn_ = speaking_order(shape, kHosts, group);
  for (int key = kHosts; key < kKeys; ++key) {
    std::vector<Ranks> parts = split(shape, key, group);
    for (Ranks& part : parts) {
      if (std::binary_search(part.begin(), part.end(), rank)) group = part;
      part = speaking_order(shape, key + 1, part);
    }
    if (parts.size() > 1) add_level(std::move(parts), key == kHosts);
  }
  if (group.size() > 1 || levels_.empty()) {
    std::vector<Ranks> parts;
    for (int member : group) parts.push_back({member});
    add_level(std::move(parts), false);
  }
  std::reverse(levels_.begin(), levels_.end());
}

void RankGroups::add_level(std::vector<Ranks> parts, bool between_hosts) {
  GroupLevel level;
  level.between_hosts = between_hosts;
  level.part_of.assign(in_turn_.size(), -1);
  level.place_of.assign(in_turn_.size(), -1);
  for (size_t part = 0; part < parts.size(); ++part) {
    for (size_t place = 0; place < parts[part].size(); ++place) {
      const auto member = static_cast<size_t>(parts[part][place]);
      level.part_of[member] = static_cast<int>(part);
      level.place_of[member] = static_cast<int>(place);
    }
  }
  level.own = level.part_of[static_cast<size_t>(rank_)];
  level.parts = std::move(parts);
  levels_.push_back(std::move(level));
}

GroupSizes host_sizes(const Shape& shape) {
  std::map<std::pair<int, int>, int> ranks;
  for (int rank = 0; rank < shape.size; ++rank) ++ranks[{number_of(shape, kHosts, rank), 0}];
  return sizes_of(ranks);
}

GroupSizes socket_sizes(const Shape& shape) {
  std::map<std::pair<int, int>, int> ranks;
  for (int rank = 0; rank < shape.size; ++rank)
    ++ranks[{number_of(shape, kHosts, rank), number_of(shape, kSockets, rank)}];
  return sizes_of(ranks);
}

}  // namespace uzip
