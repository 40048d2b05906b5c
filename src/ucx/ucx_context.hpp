// Our own UCX context and worker, apart from those of the program and its MPI. Used by
// UcxTransport.
#pragma once

#include "base/config.hpp"
#include "ucx/ucx_handles.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace uzip {

struct UcxResources {
  UcxContextHandle context;
  UcxWorkerHandle worker;  ///< destroyed before its context
  int event_fd = -1;       ///< the worker's, readable when an armed worker has something to do
  std::vector<std::byte> address;  ///< what other processes need to connect to the worker
  bool shared_memory = false;  ///< UCX_TLS lets it use shared memory between processes of a host
};

/// Creates context and worker for `size` processes with settings for low latency and for peers that
/// fail. Users override each of them with UZIP_UCX_<name>, or UCX_<name>.
Result<UcxResources> open_ucx(const Config& config, int size);

/// "1.13.1", of the library that is running.
std::string ucx_version();

}  // namespace uzip
