// The public C functions of requests and groups: waiting, testing, starting persistent operations.
#include "comm/api_calls.hpp"
#include "comm/api_guard.hpp"

#include <uzipcoll/uzipcoll.h>

namespace uzip {
namespace {

Result<Operation*> find_operation(const uzip_request_t* request) {
  if (Operation* operation = operations().get(reinterpret_cast<uintptr_t>(*request))) return operation;
  return error(UZIP_ERR_INVALID, "the request is not valid: completed or freed already, or never started");
}

/// Takes the operation out of the table and sets *request to null.
Operation take(uzip_request_t* request) {
  return std::move(*operations().remove(reinterpret_cast<uintptr_t>(std::exchange(*request, UZIP_REQUEST_NULL))));
}

/// Ends a done operation. The engine may end with it, so the lock must not be held when it goes.
Status end(uzip_request_t* request, Operation& operation, std::unique_lock<std::mutex>& lock) {
  if (operation.is_persistent()) return operation.end();
  Operation ended = take(request);
  const Status status = ended.end();
  lock.unlock();
  return status;
}

Status wait(uzip_request_t* request) {
  if (!request) return null_pointer("request");
  if (*request == UZIP_REQUEST_NULL) return Status();
  UZIP_ASSIGN_OR_RETURN(Operation* const operation, find_operation(request));
  if (!operation->in_flight()) return Status();
  std::unique_lock lock(operation->engine()->mutex());
  operation->wait(lock);
  return end(request, *operation, lock);
}

Status test(uzip_request_t* request, int* done) {
  if (!request || !done) return null_pointer(request ? "done" : "request");
  *done = 1;
  if (*request == UZIP_REQUEST_NULL) return Status();
  UZIP_ASSIGN_OR_RETURN(Operation* const operation, find_operation(request));
  if (!operation->in_flight()) return Status();
  std::unique_lock lock(operation->engine()->mutex());
  operation->engine()->progress();
  if (operation->done()) return end(request, *operation, lock);
  *done = 0;
  return Status();
}

Status start(uzip_request_t* request) {
  if (!request) return null_pointer("request");
  UZIP_ASSIGN_OR_RETURN(Operation* const operation, find_operation(request));
  if (!operation->is_persistent())
    return error(UZIP_ERR_INVALID, "the request is of a call that runs already; only those of uzip_..._init() calls "
                                   "are started");
  if (operation->in_flight())
    return error(UZIP_ERR_INVALID, "the operation is in flight already; wait for it before you start it again");
  UZIP_ASSIGN_OR_RETURN(CommunicatorHandle* const handle, find(operation->comm()));
  const std::lock_guard lock(operation->engine()->mutex());
  UZIP_RETURN_IF_ERROR(operation->start(*handle->comm));
  operation->move();
  return Status();
}

Status free_request(uzip_request_t* request) {
  if (!request) return null_pointer("request");
  if (*request == UZIP_REQUEST_NULL) return Status();
  UZIP_ASSIGN_OR_RETURN(const Operation* const operation, find_operation(request));
  if (operation->in_flight())
    return error(UZIP_ERR_INVALID, "the request is in flight; wait for it%s",
                 operation->is_persistent() ? " before you free it" : ", which frees it as well");
  Operation ended = take(request);
  std::unique_lock lock(ended.engine()->mutex());
  ended.release();
  lock.unlock();  // before the engine goes, perhaps
  return Status();
}

/// `work` for each request; the first error, of the lowest index.
template <class Work>
Status for_all(size_t n, uzip_request_t* requests, uzip_status_t* statuses, const Work& work) {
  if (n && !requests) return null_pointer("requests");
  Status first;
  for (size_t i = 0; i < n; ++i) {
    const Status status = work(&requests[i]);
    if (statuses) statuses[i] = status.code();
    if (first.ok() && !status.ok()) first = status;
  }
  return first;
}

/// Ends the thread's group and, if there is a `request`, returns it instead of waiting.
Status end_group(uzip_request_t* request) {
  UZIP_ASSIGN_OR_RETURN(Operation operation, CallGroup::of_thread().end());
  const std::shared_ptr<Engine> engine = operation.engine();
  if (!engine) return Status();  // an inner or an empty group
  std::unique_lock lock(engine->mutex());
  if (request) {
    operation.move();
    return publish(std::move(operation), request);
  }
  operation.wait(lock);
  return operation.end();
}

}  // namespace
}  // namespace uzip

using namespace uzip;

extern "C" {

uzip_status_t uzip_wait(uzip_request_t* request) {
  return guarded([&] { return wait(request); });
}

uzip_status_t uzip_test(uzip_request_t* request, int* done) {
  return guarded([&] { return test(request, done); });
}

uzip_status_t uzip_waitall(size_t n, uzip_request_t* requests, uzip_status_t* statuses) {
  return guarded([&] { return for_all(n, requests, statuses, wait); });
}

uzip_status_t uzip_start(uzip_request_t* request) {
  return guarded([&] { return start(request); });
}

uzip_status_t uzip_startall(size_t n, uzip_request_t* requests) {
  return guarded([&] { return for_all(n, requests, nullptr, start); });
}

uzip_status_t uzip_request_free(uzip_request_t* request) {
  return guarded([&] { return free_request(request); });
}

uzip_status_t uzip_group_start(void) {
  return guarded([&]() -> Status {
    CallGroup::of_thread().begin();
    return Status();
  });
}

uzip_status_t uzip_group_end(void) {
  return guarded([&] { return end_group(nullptr); });
}

uzip_status_t uzip_igroup_end(uzip_request_t* request) {
  return guarded([&]() -> Status {
    if (!request) return null_pointer("request");
    *request = UZIP_REQUEST_NULL;
    return end_group(request);
  });
}

}  // extern "C"
