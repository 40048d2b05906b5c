// The public C functions of the collectives: each describes its call and hands it over.
#include "comm/api_calls.hpp"
#include "comm/api_guard.hpp"

#include <uzipcoll/uzipcoll.h>

namespace uzip {
namespace {

uzip_coll_args_t describe(uzip_coll_t coll, const void* src, void* dst, size_t count, const size_t* counts,
                          uzip_dtype_t dtype, uzip_op_t op, int root = 0) {
  return {sizeof(uzip_coll_args_t), coll, src, dst, count, counts, dtype, op, nullptr, nullptr, root, nullptr,
          nullptr, nullptr, nullptr};
}

/// The v forms whose blocks may stand anywhere.
uzip_coll_args_t describe_blocks(uzip_coll_t coll, const void* src, void* dst, size_t count, const size_t* counts,
                                 const size_t* displs, uzip_dtype_t dtype, int root) {
  uzip_coll_args_t args = describe(coll, src, dst, count, counts, dtype, UZIP_SUM, root);
  args.displs = displs;
  return args;
}

uzip_coll_args_t describe_alltoallv(const void* src, const size_t* src_counts, const size_t* src_displs, void* dst,
                                    const size_t* counts, const size_t* displs, uzip_dtype_t dtype) {
  uzip_coll_args_t args = describe_blocks(UZIP_ALLTOALLV, src, dst, 0, counts, displs, dtype, 0);
  args.src_counts = src_counts;
  args.src_displs = src_displs;
  return args;
}

uzip_coll_args_t describe_neighbors(const void* src, void* dst, const uzip_neighbors_t* neighbors, uzip_dtype_t dtype) {
  uzip_coll_args_t args = describe(UZIP_NEIGHBOR_ALLTOALLV, src, dst, 0, nullptr, dtype, UZIP_SUM);
  args.neighbors = neighbors;
  return args;
}

}  // namespace
}  // namespace uzip

using namespace uzip;

extern "C" {

uzip_status_t uzip_allreduce(const void* src, void* dst, size_t count, uzip_dtype_t dtype, uzip_op_t op,
                             uzip_comm_t comm) {
  return run_collective(describe(UZIP_ALLREDUCE, src, dst, count, nullptr, dtype, op), comm);
}

uzip_status_t uzip_iallreduce(const void* src, void* dst, size_t count, uzip_dtype_t dtype, uzip_op_t op,
                              uzip_comm_t comm, uzip_request_t* request) {
  return start_collective(describe(UZIP_ALLREDUCE, src, dst, count, nullptr, dtype, op), comm, request);
}

uzip_status_t uzip_allreduce_init(const void* src, void* dst, size_t count, uzip_dtype_t dtype, uzip_op_t op,
                                  uzip_comm_t comm, uzip_request_t* request) {
  return init_collective(describe(UZIP_ALLREDUCE, src, dst, count, nullptr, dtype, op), comm, request);
}

uzip_status_t uzip_reduce_scatter(const void* src, void* dst, size_t count, uzip_dtype_t dtype, uzip_op_t op,
                                  uzip_comm_t comm) {
  return run_collective(describe(UZIP_REDUCE_SCATTER, src, dst, count, nullptr, dtype, op), comm);
}

uzip_status_t uzip_ireduce_scatter(const void* src, void* dst, size_t count, uzip_dtype_t dtype, uzip_op_t op,
                                   uzip_comm_t comm, uzip_request_t* request) {
  return start_collective(describe(UZIP_REDUCE_SCATTER, src, dst, count, nullptr, dtype, op), comm, request);
}

uzip_status_t uzip_reduce_scatter_init(const void* src, void* dst, size_t count, uzip_dtype_t dtype,
                                       uzip_op_t op, uzip_comm_t comm, uzip_request_t* request) {
  return init_collective(describe(UZIP_REDUCE_SCATTER, src, dst, count, nullptr, dtype, op), comm, request);
}

uzip_status_t uzip_reduce_scatterv(const void* src, void* dst, const size_t* counts, uzip_dtype_t dtype,
                                   uzip_op_t op, uzip_comm_t comm) {
  return run_collective(describe(UZIP_REDUCE_SCATTERV, src, dst, 0, counts, dtype, op), comm);
}

uzip_status_t uzip_ireduce_scatterv(const void* src, void* dst, const size_t* counts, uzip_dtype_t dtype,
                                    uzip_op_t op, uzip_comm_t comm, uzip_request_t* request) {
  return start_collective(describe(UZIP_REDUCE_SCATTERV, src, dst, 0, counts, dtype, op), comm, request);
}

uzip_status_t uzip_reduce_scatterv_init(const void* src, void* dst, const size_t* counts, uzip_dtype_t dtype,
                                        uzip_op_t op, uzip_comm_t comm, uzip_request_t* request) {
  return init_collective(describe(UZIP_REDUCE_SCATTERV, src, dst, 0, counts, dtype, op), comm, request);
}

uzip_status_t uzip_allgather(const void* src, void* dst, size_t count, uzip_dtype_t dtype, uzip_comm_t comm) {
  return run_collective(describe(UZIP_ALLGATHER, src, dst, count, nullptr, dtype, UZIP_SUM), comm);
}

uzip_status_t uzip_iallgather(const void* src, void* dst, size_t count, uzip_dtype_t dtype, uzip_comm_t comm,
                              uzip_request_t* request) {
  return start_collective(describe(UZIP_ALLGATHER, src, dst, count, nullptr, dtype, UZIP_SUM), comm, request);
}

uzip_status_t uzip_allgather_init(const void* src, void* dst, size_t count, uzip_dtype_t dtype,
                                  uzip_comm_t comm, uzip_request_t* request) {
  return init_collective(describe(UZIP_ALLGATHER, src, dst, count, nullptr, dtype, UZIP_SUM), comm, request);
}

uzip_status_t uzip_allgatherv(const void* src, void* dst, const size_t* counts, uzip_dtype_t dtype,
                              uzip_comm_t comm) {
  return run_collective(describe(UZIP_ALLGATHERV, src, dst, 0, counts, dtype, UZIP_SUM), comm);
}

uzip_status_t uzip_iallgatherv(const void* src, void* dst, const size_t* counts, uzip_dtype_t dtype,
                               uzip_comm_t comm, uzip_request_t* request) {
  return start_collective(describe(UZIP_ALLGATHERV, src, dst, 0, counts, dtype, UZIP_SUM), comm, request);
}

uzip_status_t uzip_allgatherv_init(const void* src, void* dst, const size_t* counts, uzip_dtype_t dtype,
                                   uzip_comm_t comm, uzip_request_t* request) {
  return init_collective(describe(UZIP_ALLGATHERV, src, dst, 0, counts, dtype, UZIP_SUM), comm, request);
}

uzip_status_t uzip_neighbor_alltoallv(const void* src, void* dst, const uzip_neighbors_t* neighbors,
                                      uzip_dtype_t dtype, uzip_comm_t comm) {
  return run_collective(describe_neighbors(src, dst, neighbors, dtype), comm);
}

uzip_status_t uzip_ineighbor_alltoallv(const void* src, void* dst, const uzip_neighbors_t* neighbors,
                                       uzip_dtype_t dtype, uzip_comm_t comm, uzip_request_t* request) {
  return start_collective(describe_neighbors(src, dst, neighbors, dtype), comm, request);
}

uzip_status_t uzip_neighbor_alltoallv_init(const void* src, void* dst, const uzip_neighbors_t* neighbors,
                                           uzip_dtype_t dtype, uzip_comm_t comm, uzip_request_t* request) {
  return init_collective(describe_neighbors(src, dst, neighbors, dtype), comm, request);
}

uzip_status_t uzip_bcast(void* buffer, size_t count, uzip_dtype_t dtype, int root, uzip_comm_t comm) {
  return run_collective(describe(UZIP_BCAST, buffer, buffer, count, nullptr, dtype, UZIP_SUM, root), comm);
}

uzip_status_t uzip_ibcast(void* buffer, size_t count, uzip_dtype_t dtype, int root, uzip_comm_t comm,
                          uzip_request_t* request) {
  return start_collective(describe(UZIP_BCAST, buffer, buffer, count, nullptr, dtype, UZIP_SUM, root), comm, request);
}

uzip_status_t uzip_bcast_init(void* buffer, size_t count, uzip_dtype_t dtype, int root, uzip_comm_t comm,
                              uzip_request_t* request) {
  return init_collective(describe(UZIP_BCAST, buffer, buffer, count, nullptr, dtype, UZIP_SUM, root), comm, request);
}

uzip_status_t uzip_reduce(const void* src, void* dst, size_t count, uzip_dtype_t dtype, uzip_op_t op, int root,
                          uzip_comm_t comm) {
  return run_collective(describe(UZIP_REDUCE, src, dst, count, nullptr, dtype, op, root), comm);
}

uzip_status_t uzip_ireduce(const void* src, void* dst, size_t count, uzip_dtype_t dtype, uzip_op_t op, int root,
                           uzip_comm_t comm, uzip_request_t* request) {
  return start_collective(describe(UZIP_REDUCE, src, dst, count, nullptr, dtype, op, root), comm, request);
}

uzip_status_t uzip_reduce_init(const void* src, void* dst, size_t count, uzip_dtype_t dtype, uzip_op_t op, int root,
                               uzip_comm_t comm, uzip_request_t* request) {
  return init_collective(describe(UZIP_REDUCE, src, dst, count, nullptr, dtype, op, root), comm, request);
}

uzip_status_t uzip_gather(const void* src, void* dst, size_t count, uzip_dtype_t dtype, int root, uzip_comm_t comm) {
  return run_collective(describe(UZIP_GATHER, src, dst, count, nullptr, dtype, UZIP_SUM, root), comm);
}

uzip_status_t uzip_igather(const void* src, void* dst, size_t count, uzip_dtype_t dtype, int root, uzip_comm_t comm, uzip_request_t* request) {
  return start_collective(describe(UZIP_GATHER, src, dst, count, nullptr, dtype, UZIP_SUM, root), comm, request);
}

uzip_status_t uzip_gather_init(const void* src, void* dst, size_t count, uzip_dtype_t dtype, int root,
                               uzip_comm_t comm, uzip_request_t* request) {
  return init_collective(describe(UZIP_GATHER, src, dst, count, nullptr, dtype, UZIP_SUM, root), comm, request);
}

uzip_status_t uzip_gatherv(const void* src, size_t count, void* dst, const size_t* counts, const size_t* displs, uzip_dtype_t dtype, int root, uzip_comm_t comm) {
  return run_collective(describe_blocks(UZIP_GATHERV, src, dst, count, counts, displs, dtype, root), comm);
}

uzip_status_t uzip_igatherv(const void* src, size_t count, void* dst, const size_t* counts, const size_t* displs, uzip_dtype_t dtype, int root, uzip_comm_t comm, uzip_request_t* request) {
  return start_collective(describe_blocks(UZIP_GATHERV, src, dst, count, counts, displs, dtype, root), comm, request);
}

uzip_status_t uzip_gatherv_init(const void* src, size_t count, void* dst, const size_t* counts, const size_t* displs,
                                uzip_dtype_t dtype, int root, uzip_comm_t comm, uzip_request_t* request) {
  return init_collective(describe_blocks(UZIP_GATHERV, src, dst, count, counts, displs, dtype, root), comm, request);
}

uzip_status_t uzip_scatter(const void* src, void* dst, size_t count, uzip_dtype_t dtype, int root, uzip_comm_t comm) {
  return run_collective(describe(UZIP_SCATTER, src, dst, count, nullptr, dtype, UZIP_SUM, root), comm);
}

uzip_status_t uzip_iscatter(const void* src, void* dst, size_t count, uzip_dtype_t dtype, int root, uzip_comm_t comm, uzip_request_t* request) {
  return start_collective(describe(UZIP_SCATTER, src, dst, count, nullptr, dtype, UZIP_SUM, root), comm, request);
}

uzip_status_t uzip_scatter_init(const void* src, void* dst, size_t count, uzip_dtype_t dtype, int root,
                                uzip_comm_t comm, uzip_request_t* request) {
  return init_collective(describe(UZIP_SCATTER, src, dst, count, nullptr, dtype, UZIP_SUM, root), comm, request);
}

uzip_status_t uzip_scatterv(const void* src, const size_t* counts, const size_t* displs, void* dst, size_t count, uzip_dtype_t dtype, int root, uzip_comm_t comm) {
  return run_collective(describe_blocks(UZIP_SCATTERV, src, dst, count, counts, displs, dtype, root), comm);
}

uzip_status_t uzip_iscatterv(const void* src, const size_t* counts, const size_t* displs, void* dst, size_t count, uzip_dtype_t dtype, int root, uzip_comm_t comm, uzip_request_t* request) {
  return start_collective(describe_blocks(UZIP_SCATTERV, src, dst, count, counts, displs, dtype, root), comm, request);
}

uzip_status_t uzip_scatterv_init(const void* src, const size_t* counts, const size_t* displs, void* dst,
                                 size_t count, uzip_dtype_t dtype, int root, uzip_comm_t comm,
                                 uzip_request_t* request) {
  return init_collective(describe_blocks(UZIP_SCATTERV, src, dst, count, counts, displs, dtype, root), comm, request);
}

uzip_status_t uzip_alltoall(const void* src, void* dst, size_t count, uzip_dtype_t dtype, uzip_comm_t comm) {
  return run_collective(describe(UZIP_ALLTOALL, src, dst, count, nullptr, dtype, UZIP_SUM), comm);
}

uzip_status_t uzip_ialltoall(const void* src, void* dst, size_t count, uzip_dtype_t dtype, uzip_comm_t comm, uzip_request_t* request) {
  return start_collective(describe(UZIP_ALLTOALL, src, dst, count, nullptr, dtype, UZIP_SUM), comm, request);
}

uzip_status_t uzip_alltoall_init(const void* src, void* dst, size_t count, uzip_dtype_t dtype, uzip_comm_t comm,
                                 uzip_request_t* request) {
  return init_collective(describe(UZIP_ALLTOALL, src, dst, count, nullptr, dtype, UZIP_SUM), comm, request);
}

uzip_status_t uzip_alltoallv(const void* src, const size_t* src_counts, const size_t* src_displs, void* dst, const size_t* counts, const size_t* displs, uzip_dtype_t dtype, uzip_comm_t comm) {
  return run_collective(describe_alltoallv(src, src_counts, src_displs, dst, counts, displs, dtype), comm);
}

uzip_status_t uzip_ialltoallv(const void* src, const size_t* src_counts, const size_t* src_displs, void* dst, const size_t* counts, const size_t* displs, uzip_dtype_t dtype, uzip_comm_t comm, uzip_request_t* request) {
  return start_collective(describe_alltoallv(src, src_counts, src_displs, dst, counts, displs, dtype), comm, request);
}

uzip_status_t uzip_alltoallv_init(const void* src, const size_t* src_counts, const size_t* src_displs, void* dst,
                                  const size_t* counts, const size_t* displs, uzip_dtype_t dtype, uzip_comm_t comm,
                                  uzip_request_t* request) {
  return init_collective(describe_alltoallv(src, src_counts, src_displs, dst, counts, displs, dtype), comm, request);
}

uzip_status_t uzip_scan(const void* src, void* dst, size_t count, uzip_dtype_t dtype, uzip_op_t op, uzip_comm_t comm) {
  return run_collective(describe(UZIP_SCAN, src, dst, count, nullptr, dtype, op), comm);
}

uzip_status_t uzip_iscan(const void* src, void* dst, size_t count, uzip_dtype_t dtype, uzip_op_t op, uzip_comm_t comm, uzip_request_t* request) {
  return start_collective(describe(UZIP_SCAN, src, dst, count, nullptr, dtype, op), comm, request);
}

uzip_status_t uzip_scan_init(const void* src, void* dst, size_t count, uzip_dtype_t dtype, uzip_op_t op,
                             uzip_comm_t comm, uzip_request_t* request) {
  return init_collective(describe(UZIP_SCAN, src, dst, count, nullptr, dtype, op), comm, request);
}

uzip_status_t uzip_exscan(const void* src, void* dst, size_t count, uzip_dtype_t dtype, uzip_op_t op, uzip_comm_t comm) {
  return run_collective(describe(UZIP_EXSCAN, src, dst, count, nullptr, dtype, op), comm);
}

uzip_status_t uzip_iexscan(const void* src, void* dst, size_t count, uzip_dtype_t dtype, uzip_op_t op, uzip_comm_t comm, uzip_request_t* request) {
  return start_collective(describe(UZIP_EXSCAN, src, dst, count, nullptr, dtype, op), comm, request);
}

uzip_status_t uzip_exscan_init(const void* src, void* dst, size_t count, uzip_dtype_t dtype, uzip_op_t op,
                               uzip_comm_t comm, uzip_request_t* request) {
  return init_collective(describe(UZIP_EXSCAN, src, dst, count, nullptr, dtype, op), comm, request);
}

uzip_status_t uzip_barrier(uzip_comm_t comm) {
  return run_collective(describe(UZIP_BARRIER, nullptr, nullptr, 0, nullptr, UZIP_UINT8, UZIP_SUM), comm);
}

uzip_status_t uzip_ibarrier(uzip_comm_t comm, uzip_request_t* request) {
  return start_collective(describe(UZIP_BARRIER, nullptr, nullptr, 0, nullptr, UZIP_UINT8, UZIP_SUM), comm,
                          request);
}

uzip_status_t uzip_barrier_init(uzip_comm_t comm, uzip_request_t* request) {
  return init_collective(describe(UZIP_BARRIER, nullptr, nullptr, 0, nullptr, UZIP_UINT8, UZIP_SUM), comm,
                         request);
}

uzip_status_t uzip_coll_run(const uzip_coll_args_t* args, uzip_comm_t comm) {
  return args ? run_collective(*args, comm) : report(null_pointer("args"));
}

uzip_status_t uzip_coll_start(const uzip_coll_args_t* args, uzip_comm_t comm, uzip_request_t* request) {
  return args ? start_collective(*args, comm, request) : report(null_pointer("args"));
}

uzip_status_t uzip_coll_init(const uzip_coll_args_t* args, uzip_comm_t comm, uzip_request_t* request) {
  return args ? init_collective(*args, comm, request) : report(null_pointer("args"));
}

}  // extern "C"
