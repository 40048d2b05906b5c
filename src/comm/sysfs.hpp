// What the system says of NUMA nodes, sockets and devices, read from /sys. Every function takes the folder to read, so that
// tests can have hosts of their own; -1 or nothing is what can't be told.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace uzip {

inline constexpr const char* kSysfs = "/sys";

/// The one NUMA node that all these processors belong to.
int numa_of_cpus(std::span<const int> cpus, const std::string& sys = kSysfs);
/// The one socket (physical package) that all these processors belong to.
int socket_of_cpus(std::span<const int> cpus, const std::string& sys = kSysfs);
/// The NUMA node of a PCI device, by its place: "0000:1b:00.0".
int numa_of_pci(const std::string& bus, const std::string& sys = kSysfs);

/// A device that leads to other hosts.
struct NetworkDevice {
  std::string name;
  int numa = -1;
};
/// InfiniBand devices, or, where there are none, Ethernet devices that are up; those whose NUMA node is known, by name.
std::vector<NetworkDevice> network_devices(const std::string& sys = kSysfs);

/// How many NUMA nodes the system uses; 1 if it does not say.
int numa_nodes(const std::string& sys = kSysfs);

}  // namespace uzip
