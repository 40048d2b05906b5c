// The public C functions, but for collectives (collectives_api.cpp) and frames (codec_api.cpp): nothing else is
// extern "C". Each checks its handles, guards against exceptions, turns Status into uzip_status_t, and hands over to
// the layers below.
#include "comm/api_calls.hpp"
#include "comm/api_guard.hpp"
#include "comm/handle_table.hpp"
#include "comm/job.hpp"

#include <uzipcoll/uzipcoll.h>

#include <string>

namespace uzip {
namespace {

/// A nonblocking call that the user has not waited for yet. Keeps the engine alive.
struct PendingRequest {
  std::shared_ptr<Engine> engine;
  Request* request = nullptr;
};

// The handles of the process. Deliberately never destroyed: programs free communicators in atexit handlers.
HandleTable<CommunicatorHandle>& communicators() {
  static auto* table = new HandleTable<CommunicatorHandle>;
  return *table;
}
HandleTable<PendingRequest>& requests() {
  static auto* table = new HandleTable<PendingRequest>;
  return *table;
}

std::string& last_error() {
  thread_local std::string text;
  return text;
}

Result<CommunicatorHandle*> find(uzip_comm_t comm) {
  if (CommunicatorHandle* handle = communicators().get(reinterpret_cast<uintptr_t>(comm))) return handle;
  return error(UZIP_ERR_INVALID, comm ? "the communicator is not valid: freed already, or never created"
                                      : "the communicator is NULL");
}

Result<uzip_comm_t> publish(Result<CommunicatorHandle> made) {
  if (!made.ok()) return made.status();
  if (!made->comm) return uzip_comm_t{nullptr};
  const uintptr_t handle = communicators().add(std::move(*made));
  if (!handle) return error(UZIP_ERR_NO_MEMORY, "too many communicators; free some");
  return reinterpret_cast<uzip_comm_t>(handle);
}

Status create(Result<std::unique_ptr<Bootstrap>> bootstrap, const Config& config, uzip_comm_t* comm) {
  if (!bootstrap.ok()) return bootstrap.status();
  UZIP_ASSIGN_OR_RETURN(*comm, publish(create_world(**bootstrap, config)));
  return Status();
}

/// Starts the call that `validate` describes and waits for it.
template <class Validate>
Status run(uzip_comm_t comm, const Validate& validate) {
  UZIP_ASSIGN_OR_RETURN(CommunicatorHandle* const handle, find(comm));
  Result<CollArgs> args = validate(handle->comm->context());
  if (!args.ok()) return args.status();
  Engine& engine = *handle->engine;
  std::unique_lock lock(engine.mutex());
  UZIP_ASSIGN_OR_RETURN(Request* const request, handle->comm->start(std::move(*args)));
  engine.wait(*request, lock);
  const Status status = request->status();
  engine.release(request);
  return status;
}

/// Starts the call that `validate` describes and returns its request.
template <class Validate>
Status start(uzip_comm_t comm, uzip_request_t* out, const Validate& validate) {
  if (!out) return null_pointer("request");
  *out = UZIP_REQUEST_NULL;
  UZIP_ASSIGN_OR_RETURN(CommunicatorHandle* const handle, find(comm));
  UZIP_ASSIGN_OR_RETURN(CollArgs args, validate(handle->comm->context()));
  std::unique_lock lock(handle->engine->mutex());
  UZIP_ASSIGN_OR_RETURN(Request* const request, handle->comm->start(std::move(args)));
  handle->engine->progress();
  if (!request->ended() && request->is_long()) handle->engine->progress_in_background();
  const uintptr_t number = requests().add({handle->engine, request});
  if (!number) {
    request->fail(error(UZIP_ERR_NO_MEMORY, "too many requests; wait for some"));
    handle->engine->release(request);
    return request->status();
  }
  *out = reinterpret_cast<uzip_request_t>(number);
  return Status();
}

Result<PendingRequest*> find(uzip_request_t* request) {
  if (PendingRequest* pending = requests().get(reinterpret_cast<uintptr_t>(*request))) return pending;
  return error(UZIP_ERR_INVALID, "the request is not valid: completed already, or never started");
}

/// Ends a done request; the engine may end with it, so the lock must not be held.
Status end(uzip_request_t* request, std::unique_lock<std::mutex>& lock) {
  const std::optional<PendingRequest> pending = requests().remove(reinterpret_cast<uintptr_t>(*request));
  *request = UZIP_REQUEST_NULL;
  const Status status = pending->request->status();
  pending->engine->release(pending->request);
  lock.unlock();
  return status;
}

/// Gives up an operation that this rank has just started and nobody else can miss.
void cancel(uzip_request_t* request) {
  PendingRequest* const pending = requests().get(reinterpret_cast<uintptr_t>(*request));
  if (!pending) return;
  std::unique_lock lock(pending->engine->mutex());
  pending->request->fail(error(UZIP_ERR_INVALID, "given up"), false);
  pending->engine->wait(*pending->request, lock);
  (void)end(request, lock);
}

Status wait(uzip_request_t* request) {
  if (!request) return null_pointer("request");
  if (*request == UZIP_REQUEST_NULL) return Status();
  UZIP_ASSIGN_OR_RETURN(PendingRequest* const pending, find(request));
  std::unique_lock lock(pending->engine->mutex());
  pending->engine->wait(*pending->request, lock);
  return end(request, lock);
}

Result<CollArgs> with_info(Result<CollArgs> args, uzip_coll_info_t* info) {
  if (args.ok() && info) {
    if (info->struct_size != sizeof *info)
      return error(UZIP_ERR_INVALID, "uzip_coll_info_t.struct_size is %zu; it must be %zu", info->struct_size,
                   sizeof *info);
    args->info = info;
  }
  return args;
}

}  // namespace

uzip_status_t report(const Status& status) {
  if (!status.ok()) last_error() = status.message();
  return status.code();
}

uzip_status_t run_collective(const uzip_coll_args_t& args, uzip_comm_t comm) {
  return guarded([&] {
    return run(comm, [&](const CallContext& context) { return validate_collective(args, context); });
  });
}

uzip_status_t start_collective(const uzip_coll_args_t& args, uzip_comm_t comm, uzip_request_t* request) {
  return guarded([&] {
    return start(comm, request, [&](const CallContext& context) { return validate_collective(args, context); });
  });
}

}  // namespace uzip

using namespace uzip;

extern "C" {

// ---- Status ----------------------------------------------------------------------------------------------

const char* uzip_status_string(uzip_status_t status) { return status_text(status); }

const char* uzip_last_error(void) { return last_error().c_str(); }

uzip_status_t uzip_report_error(uzip_status_t status, const char* message) {
  return guarded([&]() -> Status {
    return status == UZIP_OK ? Status() : Status(status, message ? message : "");
  });
}

const char* uzip_version_string(void) {
#define UZIP_TEXT_(x) #x
#define UZIP_TEXT(x) UZIP_TEXT_(x)
  return UZIP_TEXT(UZIP_VERSION_MAJOR) "." UZIP_TEXT(UZIP_VERSION_MINOR) "." UZIP_TEXT(UZIP_VERSION_PATCH);
}

void uzip_version(int* major, int* minor, int* patch) {
  if (major) *major = UZIP_VERSION_MAJOR;
  if (minor) *minor = UZIP_VERSION_MINOR;
  if (patch) *patch = UZIP_VERSION_PATCH;
}

// ---- Types and operations --------------------------------------------------------------------------------

size_t uzip_dtype_size(uzip_dtype_t dtype) { return is_datatype(dtype) ? datatype_size(dtype) : 0; }

const char* uzip_dtype_name(uzip_dtype_t dtype) {
  return is_datatype(dtype) ? datatype_info(dtype).name : "unknown";
}

const char* uzip_op_name(uzip_op_t op) { return is_reduce_op(op) ? reduce_op_name(op) : "unknown"; }

// ---- Communicators ---------------------------------------------------------------------------------------

uzip_status_t uzip_comm_create(const uzip_oob_t* oob, uzip_comm_t* comm) {
  return guarded([&]() -> Status {
    if (!comm) return null_pointer("comm");
    *comm = nullptr;
    if (!oob) return null_pointer("oob");
    UZIP_ASSIGN_OR_RETURN(const Config* const config, load_config());
    return create(make_oob_bootstrap(*oob), *config, comm);
  });
}

uzip_status_t uzip_comm_create_from_env(uzip_comm_t* comm) {
  return guarded([&]() -> Status {
    if (!comm) return null_pointer("comm");
    *comm = nullptr;
    UZIP_ASSIGN_OR_RETURN(const Config* const config, load_config());
    return create(make_file_bootstrap(*config), *config, comm);
  });
}

uzip_status_t uzip_comm_dup(uzip_comm_t comm, uzip_comm_t* duplicate) {
  return guarded([&]() -> Status {
    if (!duplicate) return null_pointer("duplicate");
    *duplicate = nullptr;
    UZIP_ASSIGN_OR_RETURN(CommunicatorHandle* const handle, find(comm));
    UZIP_ASSIGN_OR_RETURN(*duplicate, publish(split(*handle, 0, 0)));
    return Status();
  });
}

uzip_status_t uzip_comm_split(uzip_comm_t comm, int color, int key, uzip_comm_t* part) {
  return guarded([&]() -> Status {
    if (!part) return null_pointer("part");
    *part = nullptr;
    UZIP_ASSIGN_OR_RETURN(CommunicatorHandle* const handle, find(comm));
    if (color < 0 && color != UZIP_UNDEFINED)
      return error(UZIP_ERR_INVALID, "color is %d; colors are 0 or more, or UZIP_UNDEFINED", color);
    UZIP_ASSIGN_OR_RETURN(*part, publish(split(*handle, color, key)));
    return Status();
  });
}

uzip_status_t uzip_comm_rank(uzip_comm_t comm, int* rank) {
  return guarded([&]() -> Status {
    if (!rank) return null_pointer("rank");
    UZIP_ASSIGN_OR_RETURN(const CommunicatorHandle* const handle, find(comm));
    *rank = handle->comm->rank();
    return Status();
  });
}

uzip_status_t uzip_comm_size(uzip_comm_t comm, int* size) {
  return guarded([&]() -> Status {
    if (!size) return null_pointer("size");
    UZIP_ASSIGN_OR_RETURN(const CommunicatorHandle* const handle, find(comm));
    *size = handle->comm->size();
    return Status();
  });
}

uzip_status_t uzip_comm_free(uzip_comm_t* comm) {
  return guarded([&]() -> Status {
    if (!comm) return null_pointer("comm");
    if (!*comm) return Status();
    UZIP_RETURN_IF_ERROR(find(*comm).status());
    std::optional<CommunicatorHandle> handle = communicators().remove(reinterpret_cast<uintptr_t>(*comm));
    *comm = nullptr;
    leave(*handle);
    return Status();
  });
}

// ---- Point to point --------------------------------------------------------------------------------------

uzip_status_t uzip_send(const void* src, size_t count, uzip_dtype_t dtype, int dest, int tag,
                        uzip_comm_t comm) {
  return guarded([&] {
    return run(comm, [&](const CallContext& context) {
      return validate_send(src, count, dtype, dest, tag, nullptr, context);
    });
  });
}

uzip_status_t uzip_isend(const void* src, size_t count, uzip_dtype_t dtype, int dest, int tag,
                         uzip_comm_t comm, uzip_request_t* request) {
  return uzip_isend_options(src, count, dtype, dest, tag, comm, nullptr, nullptr, request);
}

uzip_status_t uzip_isend_options(const void* src, size_t count, uzip_dtype_t dtype, int dest, int tag,
                                 uzip_comm_t comm, const uzip_options_t* options, uzip_coll_info_t* info,
                                 uzip_request_t* request) {
  return guarded([&] {
    return start(comm, request, [&](const CallContext& context) {
      return with_info(validate_send(src, count, dtype, dest, tag, options, context), info);
    });
  });
}

uzip_status_t uzip_recv(void* dst, size_t count, uzip_dtype_t dtype, int source, int tag, uzip_comm_t comm) {
  return guarded([&] {
    return run(comm, [&](const CallContext& context) {
      return validate_recv(dst, count, dtype, source, tag, nullptr, context);
    });
  });
}

uzip_status_t uzip_irecv(void* dst, size_t count, uzip_dtype_t dtype, int source, int tag, uzip_comm_t comm,
                         uzip_request_t* request) {
  return uzip_irecv_options(dst, count, dtype, source, tag, comm, nullptr, nullptr, request);
}

uzip_status_t uzip_irecv_options(void* dst, size_t count, uzip_dtype_t dtype, int source, int tag,
                                 uzip_comm_t comm, const uzip_options_t* options, uzip_coll_info_t* info,
                                 uzip_request_t* request) {
  return guarded([&] {
    return start(comm, request, [&](const CallContext& context) {
      return with_info(validate_recv(dst, count, dtype, source, tag, options, context), info);
    });
  });
}

uzip_status_t uzip_sendrecv(const void* src, size_t src_count, int dest, int send_tag, void* dst,
                            size_t dst_count, int source, int recv_tag, uzip_dtype_t dtype, uzip_comm_t comm) {
  uzip_request_t requests[2] = {UZIP_REQUEST_NULL, UZIP_REQUEST_NULL};
  uzip_status_t status = uzip_irecv(dst, dst_count, dtype, source, recv_tag, comm, &requests[0]);
  if (status != UZIP_OK) return status;
  status = uzip_isend(src, src_count, dtype, dest, send_tag, comm, &requests[1]);
  if (status == UZIP_OK) return uzip_waitall(2, requests, nullptr);
  cancel(&requests[0]);  // its sender may be waiting for what can't be sent
  return status;
}

// ---- Requests --------------------------------------------------------------------------------------------

uzip_status_t uzip_wait(uzip_request_t* request) {
  return guarded([&] { return wait(request); });
}

uzip_status_t uzip_test(uzip_request_t* request, int* done) {
  return guarded([&]() -> Status {
    if (!request || !done) return null_pointer(request ? "done" : "request");
    *done = 1;
    if (*request == UZIP_REQUEST_NULL) return Status();
    UZIP_ASSIGN_OR_RETURN(PendingRequest* const pending, find(request));
    std::unique_lock lock(pending->engine->mutex());
    pending->engine->progress();
    if (pending->request->done()) return end(request, lock);
    *done = 0;
    return Status();
  });
}

uzip_status_t uzip_waitall(size_t n, uzip_request_t* requests, uzip_status_t* statuses) {
  return guarded([&]() -> Status {
    if (n && !requests) return null_pointer("requests");
    Status first;
    for (size_t i = 0; i < n; ++i) {
      const Status status = wait(&requests[i]);
      if (statuses) statuses[i] = status.code();
      if (first.ok() && !status.ok()) first = status;
    }
    return first;
  });
}

}  // extern "C"
