#include "topology_report.hpp"

#include "comm/cores.hpp"
#include "comm/sysfs.hpp"
#include "comm/topology.hpp"

#include <cstdio>
#include <string>

#include <unistd.h>

namespace uzip {
namespace {

std::string host_name() {
  char name[256] = "";
  return gethostname(name, sizeof name - 1) == 0 ? name : "?";
}

std::string number_or(int number, const char* otherwise) { return number >= 0 ? std::to_string(number) : otherwise; }

}  // namespace

Status print_locality(const Config& config) {
  // Before anything is printed: a wrong setting is an error of its own.
  UZIP_ASSIGN_OR_RETURN(const std::vector<RankLocation> pretended, pretended_locations(config, 2));
  const Cores there = cores();
  const Locality here = own_locality();
  const int nodes = numa_nodes();
  std::printf("host         %s, %d NUMA node%s\n", host_name().c_str(), nodes, nodes == 1 ? "" : "s");
  std::printf("cores        %d of the host, %d of this process\n", there.of_host, there.of_process);
  std::printf("this process on socket %s, NUMA node %s\n", number_or(here.socket, "unknown, or several").c_str(),
              number_or(here.numa, "unknown, or several").c_str());
  std::string networks;
  for (const NetworkDevice& device : network_devices())
    networks += (networks.empty() ? "" : ", ") + device.name + " on NUMA node " + std::to_string(device.numa);
  std::printf("network      %s\n", networks.empty() ? "no device whose NUMA node is known" : networks.c_str());
  if (config.topology == "auto") {
    std::printf("groups       the ranks of a host by NUMA node, if each is bound to one, or uses a GPU that is by one\n");
  } else if (config.topology == "none") {
    std::printf("groups       none in a host: UZIP_TOPOLOGY is none\n");
  } else {
    std::printf("groups       pretended: so many ranks in a row: %s\n", config.topology.c_str());
  }
  std::printf("leader       of a host: %s\n", kLeaderRule);
  return Status();
}

}  // namespace uzip
