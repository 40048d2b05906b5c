// Which algorithms may stand in for one another when bits must not depend on the size of a call.
#include "algos/algorithm.hpp"

#include <array>
#include <vector>

namespace uzip {
namespace {

std::vector<const Algorithm*> find_reproducible(Coll coll) {
  std::vector<const Algorithm*> found;
  const auto collect = [&](Order order) {
    for (const Algorithm* algorithm : algorithms()) {
      if (algorithm->coll == coll && algorithm->order == order) found.push_back(algorithm);
    }
  };
  collect(Order::kMoves);
  if (found.empty()) collect(Order::kRanks);
  if (found.empty()) {
    collect(Order::kFixed);
    if (found.size() > 1) found.resize(1);
  }
  return found;
}

}  // namespace

std::span<const Algorithm* const> reproducible_algorithms(Coll coll) {
  static const std::array<std::vector<const Algorithm*>, kCollCount> kFound = [] {
    std::array<std::vector<const Algorithm*>, kCollCount> found;
    for (int c = 0; c < kCollCount; ++c) found[static_cast<size_t>(c)] = find_reproducible(static_cast<Coll>(c));
    return found;
  }();
  return kFound[static_cast<size_t>(coll)];
}

}  // namespace uzip
