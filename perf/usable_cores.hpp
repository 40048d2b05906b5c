// The cores that the ranks of one host have together. A launcher that binds gives each rank a core of
// its own, so no rank's affinity mask alone tells.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace perf {

/// Words of a set of cores, core c is bit c % 64 of word c / 64. Enough for every machine whose kernel
/// was built with the largest number of cores there is.
constexpr size_t kCoreSetWords = 128;

/// This process's affinity mask.
std::vector<uint64_t> own_core_set();

/// Number of cores that at least one of the ranks on rank 0's host may use. `sets` has kCoreSetWords
/// words for each rank, as World::gather() brings them.
int cores_of_first_host(const std::vector<std::string>& hosts, std::span<const uint64_t> sets);

}  // namespace perf
