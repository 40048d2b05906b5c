// How many cores there are for the processes of this host: what threads of our own are worth starting. And where on the
// host the cores of this process are.
#pragma once

namespace uzip {

struct Cores {
  int of_host = 1;     ///< that the system uses
  int of_process = 1;  ///< that this process may run on (its affinity mask)
};

/// Counted by hwloc, which knows that two hardware threads share a core, or, without it, as processors. At the first
/// call; later changes of the mask are not seen. Thread-safe.
Cores cores();

/// -1: this process may run on several, or nobody knows.
struct Locality {
  int socket = -1;  ///< as the system numbers them
  int numa = -1;    ///< NUMA node, likewise
};

/// By the affinity mask as it is now; hwloc knows it, or, without it, /sys. Thread-safe.
Locality own_locality();

}  // namespace uzip
