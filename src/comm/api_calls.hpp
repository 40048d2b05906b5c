// Any collective, from the C API's description of it: what the entry points of all collectives come down to.
#pragma once

#include <uzipcoll/uzipcoll.h>

namespace uzip {

/// Checks the call, runs it to its end and reports as every public function does. Defined in c_api.cpp.
uzip_status_t run_collective(const uzip_coll_args_t& args, uzip_comm_t comm);
/// Checks and starts the call; *request is UZIP_REQUEST_NULL after an error.
uzip_status_t start_collective(const uzip_coll_args_t& args, uzip_comm_t comm, uzip_request_t* request);

}  // namespace uzip
