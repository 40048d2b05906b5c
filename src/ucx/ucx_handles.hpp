// Owning pointers for UCX's objects, and UCX's statuses as ours. Used by everything in src/ucx.
#pragma once

#include "base/status.hpp"

#include <cstdio>
#include <functional>
#include <memory>
#include <string>

#include <ucp/api/ucp.h>

namespace uzip {

template <auto kDestroy>
struct UcxDeleter {
  template <class Handle>
  void operator()(Handle* handle) const {
    kDestroy(handle);
  }
};

using UcxConfigHandle = std::unique_ptr<ucp_config_t, UcxDeleter<ucp_config_release>>;
using UcxContextHandle = std::unique_ptr<ucp_context, UcxDeleter<ucp_cleanup>>;
using UcxWorkerHandle = std::unique_ptr<ucp_worker, UcxDeleter<ucp_worker_destroy>>;

/// The code that tells a program what to do about a failure of UCX.
StatusCode status_code_of(ucs_status_t status);

/// "`what` failed: <UCX's words>; <what to do>". `status` is an error.
Status ucx_error(ucs_status_t status, const char* what);

/// Whether a failure of an operation means that the other process, not the operation, is at fault.
bool means_peer_is_gone(ucs_status_t status);

/// What `print(FILE*)` prints: UCX tells some things in no other way.
std::string printed(const std::function<void(FILE*)>& print);

}  // namespace uzip
