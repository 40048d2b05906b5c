#include "algos/rank_sample.hpp"

#include <algorithm>
#include <numeric>

namespace uzip {

RankSample all_ranks(int size) {
  RankSample sample;
  sample.ranks.resize(static_cast<size_t>(size));
  std::iota(sample.ranks.begin(), sample.ranks.end(), 0);
  sample.standing.assign(sample.ranks.begin(), sample.ranks.end());
  return sample;
}

RankSample first_host(int size, int host) {
  RankSample sample;
  for (int rank = 0; rank < size; ++rank) {
    if (rank < host) sample.ranks.push_back(rank);
    sample.standing.push_back(static_cast<uint32_t>(rank % host));
  }
  return sample;
}

RankSample spread_ranks(int size, int host, int root, int groups) {
  RankSample sample;
  sample.standing.resize(static_cast<size_t>(size));
  const int whole = size / host;
  const auto take = [&](int of_host) {
    const int end = std::min((of_host + 1) * host, size);
    for (int rank = of_host * host; rank < end; ++rank) sample.ranks.push_back(rank);
  };
  const auto stand_for = [&](int of_host) {
    const int end = std::min((of_host + 1) * host, size);
    const size_t base = sample.ranks.size() - static_cast<size_t>(end - of_host * host);
    for (int rank = of_host * host; rank < end; ++rank)
      sample.standing[static_cast<size_t>(rank)] = static_cast<uint32_t>(base + static_cast<size_t>(rank % host));
  };
  // From the root's host on. An incomplete host stands last, so that all others begin at a multiple of `host`.
  const int root_host = root / host;
  std::vector<int> others;
  for (int i = 0; i < whole; ++i) {
    const int one = (std::min(root_host, whole - 1) + i) % whole;
    if (one != root_host) others.push_back(one);
  }
  if (root_host < whole) {
    take(root_host);
    stand_for(root_host);
  }
  const int count = static_cast<int>(others.size());
  groups = std::clamp(groups, 1, std::max(count, 1));
  for (int i = 0, group = -1; i < count; ++i) {
    const int its = static_cast<int>(static_cast<int64_t>(i) * groups / count);
    if (its != group) take(others[static_cast<size_t>(i)]);
    group = its;
    stand_for(others[static_cast<size_t>(i)]);
  }
  if (size % host != 0) {
    take(whole);
    stand_for(whole);
  }
  return sample;
}

}  // namespace uzip
