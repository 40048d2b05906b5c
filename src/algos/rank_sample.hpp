// Which ranks are simulated, and for which others each of them stands. Used by simulated_programs.cpp.
#pragma once

#include <cstdint>
#include <vector>

namespace uzip {

struct RankSample {
  std::vector<int> ranks;         ///< those that are simulated: whole hosts
  std::vector<uint32_t> standing; ///< by rank: the place in `ranks` of the one that stands for it
};

/// Every rank for itself.
RankSample all_ranks(int size);
/// Those of the first host for those of all others.
RankSample first_host(int size, int host);
/// Where ranks differ, but those that are near each other, counted from the root, differ little: the root's host, an
/// incomplete last one, and of the others the first of each of about `groups` groups.
RankSample spread_ranks(int size, int host, int root, int groups);

}  // namespace uzip
