// What the programs for messages between single ranks have in common: the ranks form a ring, and talk to the ranks
// before and after them. Used by perf/sendrecv and perf/halo.
#pragma once

#include "bench_operation.hpp"

namespace perf {

inline int rank_before(const Call& call) { return (call.rank + call.ranks - 1) % call.ranks; }
inline int rank_after(const Call& call) { return (call.rank + 1) % call.ranks; }

/// The call's count of elements from or to `peer`, with the call's options.
inline uzip_status_t start_receive(const Call& call, void* dst, int peer, int tag, uzip_request_t* request) {
  return uzip_irecv_options(dst, call.count, call.type, peer, tag, call.comm, call.options, nullptr, request);
}
inline uzip_status_t start_send(const Call& call, const void* src, int peer, int tag, uzip_coll_info_t* info,
                                uzip_request_t* request) {
  return uzip_isend_options(src, call.count, call.type, peer, tag, call.comm, call.options, info, request);
}

/// An operation without reduction, algorithms and in-place form, of which each rank has its own result.
inline Operation message_operation(OperationKind kind, const char* name, const char* does,
                                   size_t (*count)(size_t, size_t, int), Layout (*layout)(size_t, int, int),
                                   uzip_status_t (*run)(const Call&)) {
  Operation operation = {};
  operation.kind = kind;
  operation.name = name;
  operation.does = does;
  operation.count = count;
  operation.layout = layout;
  operation.bus_factor = [](int) { return 1.0; };
  operation.run = run;
  return operation;
}

}  // namespace perf
