// What the entry points of the C API come down to: a call that is run, started or made persistent. Each describes its
// call with `validate`, which for a CallContext makes a CollArgs of the caller's arguments.
#pragma once

#include "comm/api_guard.hpp"
#include "comm/api_operation.hpp"
#include "comm/call_group.hpp"
#include "comm/coll_args.hpp"
#include "comm/job.hpp"

#include <uzipcoll/uzipcoll.h>

namespace uzip {

/// What the handle stands for; an error if it is none.
Result<CommunicatorHandle*> find(uzip_comm_t comm);

/// A handle for a communicator; NULL for none.
Result<uzip_comm_t> publish(Result<CommunicatorHandle> made);

/// What run_call() and so on do with a call that has been validated. Defined in c_api.cpp.
Status run_validated(CommunicatorHandle& handle, CollArgs&& args);
Status start_validated(CommunicatorHandle& handle, CollArgs&& args, uzip_request_t* request);
Status init_validated(uzip_comm_t comm, CommunicatorHandle& handle, CollArgs&& args, uzip_request_t* request);

/// Puts the call into the thread's open group.
template <class Validate>
Status add_to_group(CallGroup& group, uzip_comm_t comm, const Validate& validate) {
  const Result<CommunicatorHandle*> handle = find(comm);
  if (!handle.ok()) return group.spoil(handle.status());
  CollArgs args;
  const Status valid = validate((*handle)->comm->context(), args);
  return valid.ok() ? group.add(comm, **handle, std::move(args)) : group.spoil(valid);
}

/// Runs the call to its end, or adds it to the thread's open group.
template <class Validate>
Status run_call(uzip_comm_t comm, const Validate& validate) {
  if (CallGroup& group = CallGroup::of_thread(); group.open()) return add_to_group(group, comm, validate);
  UZIP_ASSIGN_OR_RETURN(CommunicatorHandle* const handle, find(comm));
  CollArgs args;
  UZIP_RETURN_IF_ERROR(validate(handle->comm->context(), args));
  return run_validated(*handle, std::move(args));
}

/// Starts the call; *request is UZIP_REQUEST_NULL after an error.
template <class Validate>
Status start_call(uzip_comm_t comm, uzip_request_t* request, const Validate& validate) {
  if (!request) return null_pointer("request");
  *request = UZIP_REQUEST_NULL;
  UZIP_ASSIGN_OR_RETURN(CommunicatorHandle* const handle, find(comm));
  CollArgs args;
  UZIP_RETURN_IF_ERROR(validate(handle->comm->context(), args));
  return start_validated(*handle, std::move(args), request);
}

/// Makes a persistent operation of the call; *request is UZIP_REQUEST_NULL after an error.
template <class Validate>
Status init_call(uzip_comm_t comm, uzip_request_t* request, const Validate& validate) {
  if (!request) return null_pointer("request");
  *request = UZIP_REQUEST_NULL;
  UZIP_ASSIGN_OR_RETURN(CommunicatorHandle* const handle, find(comm));
  CollArgs args;
  UZIP_RETURN_IF_ERROR(validate(handle->comm->context(), args));
  return init_validated(comm, *handle, std::move(args), request);
}

/// Adds what a call is to fill in on completion; null: nothing.
Status add_info(uzip_coll_info_t* info, CollArgs& args);

/// Any collective, from the C API's description of it: checked, and reported as every public function does.
uzip_status_t run_collective(const uzip_coll_args_t& args, uzip_comm_t comm);
uzip_status_t start_collective(const uzip_coll_args_t& args, uzip_comm_t comm, uzip_request_t* request);
uzip_status_t init_collective(const uzip_coll_args_t& args, uzip_comm_t comm, uzip_request_t* request);

}  // namespace uzip
