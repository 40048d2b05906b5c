#include "comm/cores.hpp"

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "comm/sysfs.hpp"

#include <algorithm>
#include <vector>

#include <sched.h>
#include <unistd.h>

#if UZIP_HAVE_HWLOC
#include <hwloc.h>
#endif

namespace uzip {
namespace {

Cores count_processors() {
  cpu_set_t allowed;
  const bool known = sched_getaffinity(0, sizeof allowed, &allowed) == 0;
  const int of_host = std::max(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
  return {of_host, known ? CPU_COUNT(&allowed) : of_host};
}

// Of the processors that this process may run on, as /sys says.
Locality locality_in_sysfs() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return {};
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &allowed)) cpus.push_back(cpu);
  return {socket_of_cpus(cpus), numa_of_cpus(cpus)};
}

#if UZIP_HAVE_HWLOC

class Topology {
 public:
  Topology() {
    if (hwloc_topology_init(&topology_) != 0) topology_ = nullptr;
    else if (hwloc_topology_load(topology_) != 0) destroy();
  }
  ~Topology() { destroy(); }
  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;

  /// 0 if they can't be counted.
  int cores_within(hwloc_const_cpuset_t cpus) const {
    int count = 0;
    for (hwloc_obj_t core = nullptr; (core = hwloc_get_next_obj_by_type(topology_, HWLOC_OBJ_CORE, core)) != nullptr;)
      count += hwloc_bitmap_intersects(core->cpuset, cpus) != 0;
    return count;
  }
  /// The system's number of the first object of this kind that has all of `cpus`.
  int number_of(hwloc_obj_type_t type, hwloc_const_cpuset_t cpus) const {
    for (hwloc_obj_t one = nullptr; (one = hwloc_get_next_obj_by_type(topology_, type, one)) != nullptr;)
      if (one->cpuset != nullptr && hwloc_bitmap_isincluded(cpus, one->cpuset)) return static_cast<int>(one->os_index);
    return -1;
  }
  hwloc_topology_t get() const { return topology_; }

 private:
  void destroy() {
    if (topology_ != nullptr) hwloc_topology_destroy(topology_);
    topology_ = nullptr;
  }
  hwloc_topology_t topology_ = nullptr;
};

// Loaded once: that takes milliseconds.
const Topology& host_topology() {
  static const Topology topology;
  return topology;
}

Cores count_cores() {
  const Cores processors = count_processors();
  const Topology& topology = host_topology();
  if (topology.get() == nullptr) return processors;
  hwloc_bitmap_t mine = hwloc_bitmap_alloc();
  Cores counted{topology.cores_within(hwloc_topology_get_topology_cpuset(topology.get())), 0};
  if (mine != nullptr && hwloc_get_cpubind(topology.get(), mine, HWLOC_CPUBIND_PROCESS) == 0)
    counted.of_process = topology.cores_within(mine);
  hwloc_bitmap_free(mine);
  return counted.of_host > 0 && counted.of_process > 0 ? counted : processors;
}

Locality locality_in_hwloc() {
  const Topology& topology = host_topology();
  Locality found;
  hwloc_bitmap_t mine = hwloc_bitmap_alloc();
  if (topology.get() != nullptr && mine != nullptr &&
      hwloc_get_cpubind(topology.get(), mine, HWLOC_CPUBIND_PROCESS) == 0 && !hwloc_bitmap_iszero(mine))
    found = {topology.number_of(HWLOC_OBJ_PACKAGE, mine), topology.number_of(HWLOC_OBJ_NUMANODE, mine)};
  hwloc_bitmap_free(mine);
  return found;
}

#else

Cores count_cores() { return count_processors(); }

Locality locality_in_hwloc() { return {}; }

#endif

}  // namespace

Locality own_locality() {
  Locality found = locality_in_hwloc();
  if (found.socket >= 0 && found.numa >= 0) return found;
  const Locality said = locality_in_sysfs();
  if (found.socket < 0) found.socket = said.socket;
  if (found.numa < 0) found.numa = said.numa;
  return found;
}

Cores cores() {
  static const Cores counted = count_cores();
  return counted;
}

}  // namespace uzip
