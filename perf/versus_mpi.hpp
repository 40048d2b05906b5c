// MPI's own collectives, to compare with. The rest of the programs does not see MPI.
#pragma once

#include "peer.hpp"

#include <memory>
#include <string>

namespace perf {

/// Name and version of the MPI in use, in one line; "" when built without.
std::string mpi_version();
/// A hint if MPI's waiting ranks would keep the core from the others, "" if all is well.
std::string mpi_waiting_hint(bool more_ranks_than_cores);

/// MPI must have been started.
std::unique_ptr<Peer> make_mpi_peer(const Case& bench);

}  // namespace perf
