// The public C functions, but for collectives (collectives_api.cpp) and frames (codec_api.cpp): nothing else is
// extern "C". Each checks its handles, guards against exceptions, turns Status into uzip_status_t, and hands over to
// the layers below.
#include "comm/api_calls.hpp"
#include "comm/api_guard.hpp"
#include "comm/handle_table.hpp"
#include "comm/job.hpp"
#include "comm/struct_size.hpp"
#include "comm/user_op.hpp"

#include <uzipcoll/uzipcoll.h>

#include <string>

namespace uzip {
namespace {

// Deliberately never destroyed: programs free communicators in atexit handlers.
HandleTable<CommunicatorHandle>& communicators() {
  static auto* table = new HandleTable<CommunicatorHandle>;
  return *table;
}

std::string& last_error() {
  thread_local std::string text;
  return text;
}

/// Communicators aren't made or freed while the calls of a group wait for its end.
Status check_no_group() {
  if (!CallGroup::of_thread().open()) return Status();
  return error(UZIP_ERR_INVALID, "a group is open in this thread; end it first (uzip_group_end)");
}

Status create(Result<std::unique_ptr<Bootstrap>> bootstrap, const Config& config, uzip_comm_t* comm) {
  if (!bootstrap.ok()) return bootstrap.status();
  UZIP_ASSIGN_OR_RETURN(*comm, publish(create_world(**bootstrap, config)));
  return Status();
}

/// `validate` of a collective, see api_calls.hpp. Refers to its description.
auto collective_of(const uzip_coll_args_t& description) {
  return [&description](const CallContext& context, CollArgs& args) -> Status {
    UZIP_ASSIGN_OR_RETURN(args, validate_collective(description, context));
    return Status();
  };
}

Status wait_and_release(Engine& engine, Request* request, std::unique_lock<std::mutex>& lock) {
  engine.wait(*request, lock);
  Status status = request->status();
  engine.release(request);
  return status;
}

}  // namespace

uzip_status_t report(const Status& status) {
  if (!status.ok()) last_error() = status.message();
  return status.code();
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

// ---- Calls -----------------------------------------------------------------------------------------------

Status run_validated(CommunicatorHandle& handle, CollArgs&& args) {
  Engine& engine = *handle.engine;
  std::unique_lock lock(engine.mutex());
  args.blocking = true;
  UZIP_RETURN_IF_ERROR(calibrate_before(handle, args, lock));
  UZIP_ASSIGN_OR_RETURN(Request* const request, handle.comm->start(std::move(args)));
  return wait_and_release(engine, request, lock);
}

Status start_validated(CommunicatorHandle& handle, CollArgs&& args, uzip_request_t* request) {
  const std::lock_guard lock(handle.engine->mutex());
  UZIP_ASSIGN_OR_RETURN(Request* const started, handle.comm->start(std::move(args)));
  Operation operation(handle.engine, started);
  operation.move();
  return publish(std::move(operation), request);
}

Status init_validated(uzip_comm_t comm, CommunicatorHandle& handle, CollArgs&& args, uzip_request_t* request) {
  const std::lock_guard lock(handle.engine->mutex());
  UZIP_ASSIGN_OR_RETURN(Operation operation, Operation::persistent(comm, handle, std::move(args)));
  return publish(std::move(operation), request);
}

Status add_info(uzip_coll_info_t* info, CollArgs& args) {
  if (info) UZIP_RETURN_IF_ERROR(check_written_struct(*info, "uzip_coll_info_t", kFirstCollInfoBytes));
  args.info = info;
  return Status();
}

uzip_status_t run_collective(const uzip_coll_args_t& args, uzip_comm_t comm) {
  return guarded([&]() -> Status {
    if (CallGroup& group = CallGroup::of_thread(); group.open()) return add_to_group(group, comm, collective_of(args));
    UZIP_ASSIGN_OR_RETURN(CommunicatorHandle* const handle, find(comm));
    Engine& engine = *handle->engine;
    RecentCalls& recent = handle->comm->recent_calls();
    std::unique_lock lock(engine.mutex());
    if (const RecentCalls::Call* const call = recent.find(args); call && !engine.gpus().in_use()) {
      UZIP_ASSIGN_OR_RETURN(Request* const request,
                            handle->comm->start(RecentCalls::with_buffers_of(args, *call), call->plan));
      return wait_and_release(engine, request, lock);
    }
    Result<CollArgs> valid = validate_collective(args, handle->comm->context());
    if (!valid.ok()) return valid.status();
    valid->blocking = true;
    UZIP_RETURN_IF_ERROR(calibrate_before(*handle, *valid, lock));
    UZIP_ASSIGN_OR_RETURN(Request* const request, handle->comm->start(std::move(*valid)));
    if (!engine.gpus().in_use()) recent.keep(args, request->args(), request->prepared());
    return wait_and_release(engine, request, lock);
  });
}

uzip_status_t start_collective(const uzip_coll_args_t& args, uzip_comm_t comm, uzip_request_t* request) {
  return guarded([&] { return start_call(comm, request, collective_of(args)); });
}

uzip_status_t init_collective(const uzip_coll_args_t& args, uzip_comm_t comm, uzip_request_t* request) {
  return guarded([&] { return init_call(comm, request, collective_of(args)); });
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

const char* uzip_op_name(uzip_op_t op) {
  if (is_reduce_op(op)) return reduce_op_name(op);
  return find_user_op(op) ? "user-defined" : "unknown";
}

uzip_status_t uzip_op_create(uzip_op_function_t function, int commutative, void* context, uzip_op_t* op) {
  return guarded([&]() -> Status {
    if (!op) return null_pointer("op");
    *op = UZIP_OP_USER;
    if (!function) return null_pointer("function");
    UZIP_ASSIGN_OR_RETURN(*op, add_user_op({function, context, commutative != 0}));
    return Status();
  });
}

uzip_status_t uzip_op_free(uzip_op_t* op) {
  return guarded([&]() -> Status {
    if (!op) return null_pointer("op");
    if (!remove_user_op(*op))
      return error(UZIP_ERR_INVALID, "%d is no user-defined operation: freed already, or never created",
                   static_cast<int>(*op));
    *op = UZIP_OP_USER;
    return Status();
  });
}

// ---- Communicators ---------------------------------------------------------------------------------------

uzip_status_t uzip_comm_create(const uzip_oob_t* oob, uzip_comm_t* comm) {
  return guarded([&]() -> Status {
    if (!comm) return null_pointer("comm");
    *comm = nullptr;
    if (!oob) return null_pointer("oob");
    UZIP_RETURN_IF_ERROR(check_no_group());
    UZIP_ASSIGN_OR_RETURN(const Config* const config, load_config());
    return create(make_oob_bootstrap(*oob), *config, comm);
  });
}

uzip_status_t uzip_comm_create_from_env(uzip_comm_t* comm) {
  return guarded([&]() -> Status {
    if (!comm) return null_pointer("comm");
    *comm = nullptr;
    UZIP_RETURN_IF_ERROR(check_no_group());
    UZIP_ASSIGN_OR_RETURN(const Config* const config, load_config());
    return create(make_file_bootstrap(*config), *config, comm);
  });
}

uzip_status_t uzip_comm_dup(uzip_comm_t comm, uzip_comm_t* duplicate) {
  return guarded([&]() -> Status {
    if (!duplicate) return null_pointer("duplicate");
    *duplicate = nullptr;
    UZIP_RETURN_IF_ERROR(check_no_group());
    UZIP_ASSIGN_OR_RETURN(CommunicatorHandle* const handle, find(comm));
    UZIP_ASSIGN_OR_RETURN(*duplicate, publish(split(*handle, 0, 0)));
    return Status();
  });
}

uzip_status_t uzip_comm_split(uzip_comm_t comm, int color, int key, uzip_comm_t* part) {
  return guarded([&]() -> Status {
    if (!part) return null_pointer("part");
    *part = nullptr;
    UZIP_RETURN_IF_ERROR(check_no_group());
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
    UZIP_RETURN_IF_ERROR(check_no_group());
    std::optional<CommunicatorHandle> handle = communicators().remove(reinterpret_cast<uintptr_t>(*comm));
    *comm = nullptr;
    leave(*handle);
    return Status();
  });
}

}  // extern "C"
