// How many cores there are for the processes of this host: what threads of our own are worth starting.
#pragma once

namespace uzip {

struct Cores {
  int of_host = 1;     ///< that the system uses
  int of_process = 1;  ///< that this process may run on (its affinity mask)
};

/// Counted by hwloc, which knows that two hardware threads share a core, or, without it, as processors. At the first
/// call; later changes of the mask are not seen. Thread-safe.
Cores cores();

}  // namespace uzip
