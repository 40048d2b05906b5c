// Where the ranks of a job are on their hosts: told once, when the job begins. How hierarchical algorithms group the ranks
// of a host, and who leads, follows from it alone, so that all ranks come to the same.
#pragma once

#include "base/config.hpp"
#include "base/status.hpp"
#include "comm/bootstrap.hpp"
#include "comm/gpu_devices.hpp"

#include <span>
#include <string>
#include <vector>

namespace uzip {

/// Numbers are those of the system; -1 and "": not known, or not one.
struct RankLocation {
  int socket = -1;            ///< that all processors of its affinity mask are on
  int numa = -1;              ///< NUMA node, likewise
  std::string gpu;            ///< PCI place of the current GPU, if the process uses one
  int gpu_numa = -1;
  bool near_network = false;  ///< a device to other hosts is on its node

  /// The node that its work is near: of a rank that is not bound, that of its GPU.
  int node() const { return numa >= 0 ? numa : gpu_numa; }
  bool operator==(const RankLocation&) const = default;
};

/// Of this process, as it is now.
RankLocation own_location(GpuDevices& gpus);

/// As UZIP_TOPOLOGY says, for so many ranks; none, if it is `auto`. Error: the setting has another form.
Result<std::vector<RankLocation>> pretended_locations(const Config& config, int ranks);

/// The locations of all ranks, by rank. Collective.
Result<std::vector<RankLocation>> exchange_locations(Bootstrap& bootstrap, const RankLocation& mine);

/// By rank: the group within its host, as Shape::sockets has it. `hosts`: by rank, which host it is on. On each host, the
/// ranks of one NUMA node are a group. The one that leads is that where a device to other hosts is, of several the one with
/// most ranks, of several the one with the lowest rank; it has the number 0, the others follow by the same rule, and the
/// lowest rank of a group leads it. A host with a rank that is on no one node is one group. Empty: no host has several
/// groups, or all groups have one rank.
std::vector<int> group_by_node(std::span<const RankLocation> locations, std::span<const int> hosts);

/// The rule of group_by_node(), for people.
extern const char* const kLeaderRule;

}  // namespace uzip
