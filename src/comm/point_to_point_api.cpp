// The public C functions of point to point messages: each describes its call and hands it over.
#include "comm/api_calls.hpp"
#include "comm/api_guard.hpp"

#include <uzipcoll/uzipcoll.h>

namespace uzip {
namespace {

/// Arguments of a send or a receive; `info` is NULL or to be filled in.
auto send_of(const void* src, size_t count, DataType type, int dest, int tag, const uzip_options_t* options = nullptr,
             uzip_coll_info_t* info = nullptr) {
  return [=](const CallContext& context, CollArgs& args) -> Status {
    UZIP_RETURN_IF_ERROR(validate_send(src, count, type, dest, tag, options, context, args));
    return add_info(info, args);
  };
}
auto recv_of(void* dst, size_t count, DataType type, int source, int tag, const uzip_options_t* options = nullptr,
             uzip_coll_info_t* info = nullptr) {
  return [=](const CallContext& context, CollArgs& args) -> Status {
    UZIP_RETURN_IF_ERROR(validate_recv(dst, count, type, source, tag, options, context, args));
    return add_info(info, args);
  };
}

/// Both at the same time.
Status send_and_receive(CommunicatorHandle& handle, CollArgs&& send, CollArgs&& recv) {
  Engine& engine = *handle.engine;
  std::unique_lock lock(engine.mutex());
  UZIP_ASSIGN_OR_RETURN(Request* const receive, handle.comm->start(std::move(recv)));
  const Result<Request*> sent = handle.comm->start(std::move(send));
  // Its sender may be waiting for what can't be sent.
  if (!sent.ok()) receive->fail(error(UZIP_ERR_INVALID, "given up"), false);
  if (sent.ok()) engine.wait(**sent, lock);
  engine.wait(*receive, lock);
  const Status received = receive->status();
  engine.release(receive);
  if (!sent.ok()) return sent.status();
  const Status status = (*sent)->status();
  engine.release(*sent);
  return status.ok() ? received : status;
}

}  // namespace
}  // namespace uzip

using namespace uzip;

extern "C" {

uzip_status_t uzip_send(const void* src, size_t count, uzip_dtype_t dtype, int dest, int tag, uzip_comm_t comm) {
  return guarded([&] { return run_call(comm, send_of(src, count, dtype, dest, tag)); });
}

uzip_status_t uzip_isend(const void* src, size_t count, uzip_dtype_t dtype, int dest, int tag, uzip_comm_t comm,
                         uzip_request_t* request) {
  return guarded([&] { return start_call(comm, request, send_of(src, count, dtype, dest, tag)); });
}

uzip_status_t uzip_isend_options(const void* src, size_t count, uzip_dtype_t dtype, int dest, int tag,
                                 uzip_comm_t comm, const uzip_options_t* options, uzip_coll_info_t* info,
                                 uzip_request_t* request) {
  return guarded([&] { return start_call(comm, request, send_of(src, count, dtype, dest, tag, options, info)); });
}

uzip_status_t uzip_send_init(const void* src, size_t count, uzip_dtype_t dtype, int dest, int tag, uzip_comm_t comm,
                             uzip_request_t* request) {
  return guarded([&] { return init_call(comm, request, send_of(src, count, dtype, dest, tag)); });
}

uzip_status_t uzip_send_init_options(const void* src, size_t count, uzip_dtype_t dtype, int dest, int tag, uzip_comm_t comm,
                             const uzip_options_t* options, uzip_coll_info_t* info, uzip_request_t* request) {
  return guarded([&] { return init_call(comm, request, send_of(src, count, dtype, dest, tag, options, info)); });
}

uzip_status_t uzip_recv(void* dst, size_t count, uzip_dtype_t dtype, int source, int tag, uzip_comm_t comm) {
  return guarded([&] { return run_call(comm, recv_of(dst, count, dtype, source, tag)); });
}

uzip_status_t uzip_irecv(void* dst, size_t count, uzip_dtype_t dtype, int source, int tag, uzip_comm_t comm,
                         uzip_request_t* request) {
  return guarded([&] { return start_call(comm, request, recv_of(dst, count, dtype, source, tag)); });
}

uzip_status_t uzip_irecv_options(void* dst, size_t count, uzip_dtype_t dtype, int source, int tag, uzip_comm_t comm,
                                 const uzip_options_t* options, uzip_coll_info_t* info, uzip_request_t* request) {
  return guarded([&] { return start_call(comm, request, recv_of(dst, count, dtype, source, tag, options, info)); });
}

uzip_status_t uzip_recv_init(void* dst, size_t count, uzip_dtype_t dtype, int source, int tag, uzip_comm_t comm,
                             uzip_request_t* request) {
  return guarded([&] { return init_call(comm, request, recv_of(dst, count, dtype, source, tag)); });
}

uzip_status_t uzip_recv_init_options(void* dst, size_t count, uzip_dtype_t dtype, int source, int tag, uzip_comm_t comm,
                             const uzip_options_t* options, uzip_coll_info_t* info, uzip_request_t* request) {
  return guarded([&] { return init_call(comm, request, recv_of(dst, count, dtype, source, tag, options, info)); });
}

uzip_status_t uzip_sendrecv(const void* src, size_t src_count, int dest, int send_tag, void* dst, size_t dst_count,
                            int source, int recv_tag, uzip_dtype_t dtype, uzip_comm_t comm) {
  return guarded([&]() -> Status {
    const auto send = send_of(src, src_count, dtype, dest, send_tag);
    const auto recv = recv_of(dst, dst_count, dtype, source, recv_tag);
    if (CallGroup::of_thread().open()) {
      UZIP_RETURN_IF_ERROR(run_call(comm, recv));
      return run_call(comm, send);
    }
    UZIP_ASSIGN_OR_RETURN(CommunicatorHandle* const handle, find(comm));
    CollArgs receive_args, send_args;
    UZIP_RETURN_IF_ERROR(recv(handle->comm->context(), receive_args));
    UZIP_RETURN_IF_ERROR(send(handle->comm->context(), send_args));
    return send_and_receive(*handle, std::move(send_args), std::move(receive_args));
  });
}

}  // extern "C"
