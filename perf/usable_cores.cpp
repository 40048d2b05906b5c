#include "usable_cores.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <bit>

namespace perf {

std::vector<uint64_t> own_core_set() {
  std::vector<uint64_t> set(kCoreSetWords);
  auto* mask = reinterpret_cast<cpu_set_t*>(set.data());
  if (sched_getaffinity(0, set.size() * sizeof(uint64_t), mask) == 0) return set;
  const long online = std::max(sysconf(_SC_NPROCESSORS_ONLN), 1L);
  for (size_t core = 0; core < std::min<size_t>(online, kCoreSetWords * 64); ++core)
    set[core / 64] |= uint64_t{1} << core % 64;
  return set;
}

int cores_of_first_host(const std::vector<std::string>& hosts, std::span<const uint64_t> sets) {
  std::vector<uint64_t> together(kCoreSetWords);
  for (size_t rank = 0; rank < hosts.size(); ++rank) {
    if (hosts[rank] != hosts.front()) continue;
    for (size_t word = 0; word < kCoreSetWords; ++word)
      together[word] |= sets[rank * kCoreSetWords + word];
  }
  int cores = 0;
  for (uint64_t word : together) cores += std::popcount(word);
  return std::max(cores, 1);
}

}  // namespace perf
