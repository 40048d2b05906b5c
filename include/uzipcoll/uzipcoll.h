/* libuzipcoll: collective communication for tensors and fields of floats, with lossless compression.
 *
 * The whole C API and ABI. C99 and C++; no MPI, UCX or CUDA header is needed.
 *
 * Conventions
 *   Counts     are elements (not bytes), per rank unless said otherwise, and may be zero; a buffer with
 *              count zero may be NULL.
 *   Buffers    belong to the caller, and are in memory of the host or of a GPU (uzipcoll(7)). A source is only read; a
 *              destination is written. They must stay valid, and untouched, until the call (or the request's completion)
 *              returns. Source and destination must not overlap, except in the in-place forms described at each call.
 *   Threads    One thread at a time may use a communicator and the requests started on it; different
 *              communicators may be used by different threads at the same time.
 *   Order      All ranks of a communicator call collectives in the same order with matching arguments.
 *              A rank that calls something else is found: UZIP_ERR_MISMATCH, never a wrong result.
 *   Bits       All ranks receive the same bits; the same call gives the same bits in every run, with
 *              compression on or off. Moves keep every bit pattern (NaN payloads, -0, denormals). A NaN
 *              that a reduction yields is the type's canonical quiet NaN.
 *   Structs    that grow in later versions begin with struct_size, to be set to their sizeof, with the rest set to
 *              zero or by an _INIT macro. A program built with an older or a newer header works, unless it sets
 *              something that the library does not know yet (UZIP_ERR_UNSUPPORTED).
 *   Errors     Every fallible call returns a uzip_status_t; uzip_last_error() tells the rest in one
 *              sentence. On error the contents of the destination are unspecified. The library never
 *              aborts or exits.
 *
 * Each call is described in its manual page, uzip_allreduce(3) and so on; uzipcoll(7) gives the overview.
 */
#ifndef UZIPCOLL_H
#define UZIPCOLL_H

#include <stddef.h>
#include <stdint.h>

#include <uzipcoll/frames.h>
#include <uzipcoll/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- User-defined operations ------------------------------------------------------------------- */

/* A reduction of one's own: accumulator[i] = accumulator[i] op operand[i], i < count, for elements of `dtype`. It must
 * be associative, and the same function on all ranks. The elements of `accumulator` stand for lower ranks than those
 * of `operand`; the two do not overlap. It is called with pieces of any length, by whichever thread is inside the
 * library for a communicator of the same job, or by a thread of the library (UZIP_CODEC_THREADS=0: never), for one
 * piece at a time in each job. It must not call the library. If it throws a C++ exception, the call fails with
 * UZIP_ERR_INVALID. */
typedef void (*uzip_op_function_t)(void *accumulator, const void *operand, size_t count, uzip_dtype_t dtype,
                                   void *context);

/* Makes an operation for all reductions of this process. Operations that are not `commutative` are applied in the
 * order of the ranks: by algorithms that keep it, UZIP_ERR_UNSUPPORTED if another one is asked for. `context` is
 * passed on to the function and must live as long as the operation is used. All ranks pass an operation of their own
 * with the same function and flag to a call. Any thread. */
UZIP_API uzip_status_t uzip_op_create(uzip_op_function_t function, int commutative, void *context, uzip_op_t *op);
/* Frees the operation; calls and persistent operations that were made with it keep it. Any thread. *op becomes
 * UZIP_OP_USER, which is no operation. */
UZIP_API uzip_status_t uzip_op_free(uzip_op_t *op);

/* ---- Communicators ----------------------------------------------------------------------------- */

/* An ordered group of ranks that communicate (an MPI_Comm). NULL is no communicator. */
typedef struct uzip_comm_handle *uzip_comm_t;
/* One operation in flight (an MPI_Request). UZIP_REQUEST_NULL is no operation. */
typedef struct uzip_request_handle *uzip_request_t;
#define UZIP_REQUEST_NULL ((uzip_request_t)0)

/* Source or destination argument that asks for the in-place form; see each call. */
#define UZIP_IN_PLACE ((void *)(intptr_t)-1)
/* Colour for uzip_comm_split(): this rank joins no group. */
#define UZIP_UNDEFINED (-1)
/* Largest tag of uzip_send() and uzip_recv(). Tags are 0 ... UZIP_TAG_MAX. */
#define UZIP_TAG_MAX 0x3fffffff

/* How ranks that start by themselves find each other: an all-gather of bytes that the caller provides.
 * `allgather` is called by all ranks, in the same order, while a communicator is created (and by nothing
 * else): rank r contributes `bytes` bytes at `src`; `dst` receives size * bytes bytes in rank order.
 * It returns 0 on success. It may block. */
typedef struct uzip_oob {
  size_t struct_size; /* sizeof(uzip_oob_t) */
  int rank;           /* this process, 0 ... size - 1 */
  int size;           /* number of processes, > 0 */
  int (*allgather)(const void *src, void *dst, size_t bytes, void *context);
  void *context;      /* passed on to allgather; owned by the caller, needed only during creation */
} uzip_oob_t;

/* Creates a communicator from an out-of-band all-gather. Collective over all ranks of `oob`. Settings that
 * must be equal on all ranks are compared: UZIP_ERR_MISMATCH names the setting and the ranks.
 * *comm is owned by the caller (uzip_comm_free) and is NULL after an error. */
UZIP_API uzip_status_t uzip_comm_create(const uzip_oob_t *oob, uzip_comm_t *comm);

/* Creates a communicator for ranks started by hand or by any launcher, from the environment: UZIP_RANK,
 * UZIP_SIZE and UZIP_RENDEZVOUS (a directory that all ranks see, empty or not existing before the job). */
UZIP_API uzip_status_t uzip_comm_create_from_env(uzip_comm_t *comm);

/* A new communicator with the same ranks. Collective. */
UZIP_API uzip_status_t uzip_comm_dup(uzip_comm_t comm, uzip_comm_t *duplicate);
/* Partitions the ranks by `color` (>= 0, or UZIP_UNDEFINED: *part becomes NULL); in each part, ranks are
 * ordered by `key`, then by their rank in `comm`. Collective. */
UZIP_API uzip_status_t uzip_comm_split(uzip_comm_t comm, int color, int key, uzip_comm_t *part);
/* This process's rank in `comm`. */
UZIP_API uzip_status_t uzip_comm_rank(uzip_comm_t comm, int *rank);
/* Number of ranks in `comm`. */
UZIP_API uzip_status_t uzip_comm_size(uzip_comm_t comm, int *size);
/* Frees the communicator and sets *comm to NULL; NULL is allowed. Collective, as MPI_Comm_free: it waits
 * until all ranks have called it and have received what this rank sent, UZIP_TIMEOUT_LIMIT (or else UZIP_TIMEOUT)
 * seconds at most. Requests still in flight on it fail. */
UZIP_API uzip_status_t uzip_comm_free(uzip_comm_t *comm);

/* ---- Collectives ------------------------------------------------------------------------------- */

/* Each in three forms: uzip_X() returns when it is done; uzip_iX() returns a request at once, for uzip_wait();
 * uzip_X_init() makes a persistent operation, for uzip_start(). */

typedef enum uzip_coll {
  UZIP_ALLREDUCE = 0,
  UZIP_REDUCE_SCATTER = 1,
  UZIP_REDUCE_SCATTERV = 2,
  UZIP_ALLGATHER = 3,
  UZIP_ALLGATHERV = 4,
  UZIP_BARRIER = 5,
  UZIP_BCAST = 6,
  UZIP_REDUCE = 7,
  UZIP_GATHER = 8,
  UZIP_GATHERV = 9,
  UZIP_SCATTER = 10,
  UZIP_SCATTERV = 11,
  UZIP_ALLTOALL = 12,
  UZIP_ALLTOALLV = 13,
  UZIP_SCAN = 14,
  UZIP_EXSCAN = 15,
  UZIP_NEIGHBOR_ALLTOALLV = 32
} uzip_coll_t;

/* dst[i] = op over all ranks of src[i], i < count, on every rank. `count` elements in both buffers.
 * In place: src == UZIP_IN_PLACE or src == dst. */
UZIP_API uzip_status_t uzip_allreduce(const void *src, void *dst, size_t count, uzip_dtype_t dtype,
                                      uzip_op_t op, uzip_comm_t comm);
UZIP_API uzip_status_t uzip_iallreduce(const void *src, void *dst, size_t count, uzip_dtype_t dtype,
                                       uzip_op_t op, uzip_comm_t comm, uzip_request_t *request);
UZIP_API uzip_status_t uzip_allreduce_init(const void *src, void *dst, size_t count, uzip_dtype_t dtype,
                                           uzip_op_t op, uzip_comm_t comm, uzip_request_t *request);

/* Block r of the element-wise reduction goes to rank r: dst[i] = op over all ranks of src[rank * count + i],
 * i < count. `src` holds size * count elements, `dst` count.
 * In place: src == UZIP_IN_PLACE (as in MPI: `dst` holds the size * count inputs, the result replaces its
 * first count elements, the rest becomes unspecified), or dst == src + rank * count elements (as in NCCL). */
UZIP_API uzip_status_t uzip_reduce_scatter(const void *src, void *dst, size_t count, uzip_dtype_t dtype,
                                           uzip_op_t op, uzip_comm_t comm);
UZIP_API uzip_status_t uzip_ireduce_scatter(const void *src, void *dst, size_t count, uzip_dtype_t dtype,
                                            uzip_op_t op, uzip_comm_t comm, uzip_request_t *request);
UZIP_API uzip_status_t uzip_reduce_scatter_init(const void *src, void *dst, size_t count, uzip_dtype_t dtype,
                                                uzip_op_t op, uzip_comm_t comm, uzip_request_t *request);
/* The same with a block of counts[r] elements for rank r, stored one after another. `counts` has `size`
 * entries, equal on all ranks; it is read before the call returns. */
UZIP_API uzip_status_t uzip_reduce_scatterv(const void *src, void *dst, const size_t *counts,
                                            uzip_dtype_t dtype, uzip_op_t op, uzip_comm_t comm);
UZIP_API uzip_status_t uzip_ireduce_scatterv(const void *src, void *dst, const size_t *counts,
                                             uzip_dtype_t dtype, uzip_op_t op, uzip_comm_t comm,
                                             uzip_request_t *request);
UZIP_API uzip_status_t uzip_reduce_scatterv_init(const void *src, void *dst, const size_t *counts, uzip_dtype_t dtype,
                                                 uzip_op_t op, uzip_comm_t comm, uzip_request_t *request);

/* dst[r * count + i] = rank r's src[i], i < count, on every rank. `dst` holds size * count elements.
 * In place: src == UZIP_IN_PLACE or src == dst + rank * count elements. */
UZIP_API uzip_status_t uzip_allgather(const void *src, void *dst, size_t count, uzip_dtype_t dtype,
                                      uzip_comm_t comm);
UZIP_API uzip_status_t uzip_iallgather(const void *src, void *dst, size_t count, uzip_dtype_t dtype,
                                       uzip_comm_t comm, uzip_request_t *request);
UZIP_API uzip_status_t uzip_allgather_init(const void *src, void *dst, size_t count, uzip_dtype_t dtype,
                                           uzip_comm_t comm, uzip_request_t *request);
/* The same with counts[r] elements from rank r, stored one after another in rank order; `src` holds
 * counts[rank] elements. `counts` has `size` entries, equal on all ranks. */
UZIP_API uzip_status_t uzip_allgatherv(const void *src, void *dst, const size_t *counts,
                                       uzip_dtype_t dtype, uzip_comm_t comm);
UZIP_API uzip_status_t uzip_iallgatherv(const void *src, void *dst, const size_t *counts,
                                        uzip_dtype_t dtype, uzip_comm_t comm, uzip_request_t *request);
UZIP_API uzip_status_t uzip_allgatherv_init(const void *src, void *dst, const size_t *counts, uzip_dtype_t dtype,
                                            uzip_comm_t comm, uzip_request_t *request);

/* One rank's part of an exchange with neighbours, such as the halos of a field that is distributed over the ranks:
 * what it sends to whom and what it receives from whom. Set the unused rest to zero. */
typedef struct uzip_neighbors {
  size_t struct_size;         /* sizeof(uzip_neighbors_t) */
  int dest_count;             /* blocks to send */
  int source_count;           /* blocks to receive */
  const int *dests;           /* [dest_count] rank that block i goes to; also this rank, or one several times */
  const size_t *send_counts;  /* [dest_count] elements in block i */
  const size_t *send_offsets; /* [dest_count] where it begins in src, in elements; NULL: one after another */
  const int *sources;         /* [source_count] rank that block i comes from */
  const size_t *recv_counts;  /* [source_count] elements in block i */
  const size_t *recv_offsets; /* [source_count] where it goes in dst, in elements; NULL: one after another */
} uzip_neighbors_t;

/* Sends a block to each destination and puts the block of each source straight into its place in dst. Collective:
 * also a rank without neighbours calls it. Both ends of a block must give it the same size, zero included; of
 * several blocks between two ranks, the k-th sent is the k-th received. `src` and `dst` may be the same array, or
 * overlap, as long as the place of a received block overlaps no other block's. `neighbors` and its arrays are read
 * before the call returns. */
UZIP_API uzip_status_t uzip_neighbor_alltoallv(const void *src, void *dst, const uzip_neighbors_t *neighbors,
                                               uzip_dtype_t dtype, uzip_comm_t comm);
UZIP_API uzip_status_t uzip_ineighbor_alltoallv(const void *src, void *dst, const uzip_neighbors_t *neighbors,
                                                uzip_dtype_t dtype, uzip_comm_t comm, uzip_request_t *request);
UZIP_API uzip_status_t uzip_neighbor_alltoallv_init(const void *src, void *dst,
                                                    const uzip_neighbors_t *neighbors, uzip_dtype_t dtype,
                                                    uzip_comm_t comm, uzip_request_t *request);

/* Copies the root's `count` elements of `buffer` to the `buffer` of every rank. `root` is equal on all ranks. */
UZIP_API uzip_status_t uzip_bcast(void *buffer, size_t count, uzip_dtype_t dtype, int root, uzip_comm_t comm);
UZIP_API uzip_status_t uzip_ibcast(void *buffer, size_t count, uzip_dtype_t dtype, int root, uzip_comm_t comm,
                                   uzip_request_t *request);
UZIP_API uzip_status_t uzip_bcast_init(void *buffer, size_t count, uzip_dtype_t dtype, int root,
                                       uzip_comm_t comm, uzip_request_t *request);

/* dst[i] = op over all ranks of src[i], i < count, on the rank `root`, which is equal on all ranks; the others' `dst`
 * is not used. In place: on the root, src == UZIP_IN_PLACE or src == dst. */
UZIP_API uzip_status_t uzip_reduce(const void *src, void *dst, size_t count, uzip_dtype_t dtype, uzip_op_t op,
                                   int root, uzip_comm_t comm);
UZIP_API uzip_status_t uzip_ireduce(const void *src, void *dst, size_t count, uzip_dtype_t dtype, uzip_op_t op,
                                    int root, uzip_comm_t comm, uzip_request_t *request);
UZIP_API uzip_status_t uzip_reduce_init(const void *src, void *dst, size_t count, uzip_dtype_t dtype,
                                        uzip_op_t op, int root, uzip_comm_t comm, uzip_request_t *request);

/* On the rank `root`: dst[r * count + i] = rank r's src[i], i < count. `root` and `count` are equal on all ranks; the
 * others' `dst` is not used. In place: on the root, src == UZIP_IN_PLACE or src == dst + root * count elements. */
UZIP_API uzip_status_t uzip_gather(const void *src, void *dst, size_t count, uzip_dtype_t dtype, int root,
                                   uzip_comm_t comm);
UZIP_API uzip_status_t uzip_igather(const void *src, void *dst, size_t count, uzip_dtype_t dtype, int root,
                                    uzip_comm_t comm, uzip_request_t *request);
UZIP_API uzip_status_t uzip_gather_init(const void *src, void *dst, size_t count, uzip_dtype_t dtype,
                                        int root, uzip_comm_t comm, uzip_request_t *request);
/* The same with blocks of different sizes: each rank sends `count` elements; on the root, counts[r] is that of rank r,
 * which goes to dst + displs[r] elements. `displs` may be NULL: the blocks stand one after another. `dst`, `counts` and
 * `displs` are looked at on the root only, before the call returns. In place: on the root, src == UZIP_IN_PLACE. */
UZIP_API uzip_status_t uzip_gatherv(const void *src, size_t count, void *dst, const size_t *counts,
                                    const size_t *displs, uzip_dtype_t dtype, int root, uzip_comm_t comm);
UZIP_API uzip_status_t uzip_igatherv(const void *src, size_t count, void *dst, const size_t *counts,
                                     const size_t *displs, uzip_dtype_t dtype, int root, uzip_comm_t comm,
                                     uzip_request_t *request);
UZIP_API uzip_status_t uzip_gatherv_init(const void *src, size_t count, void *dst, const size_t *counts,
                                         const size_t *displs, uzip_dtype_t dtype, int root,
                                         uzip_comm_t comm, uzip_request_t *request);

/* dst[i] = the root's src[rank * count + i], i < count, on every rank. `root` and `count` are equal on all ranks; the
 * others' `src` is not used. In place: on the root, dst == UZIP_IN_PLACE (its own block stays where it is) or
 * dst == src + root * count elements. */
UZIP_API uzip_status_t uzip_scatter(const void *src, void *dst, size_t count, uzip_dtype_t dtype, int root,
                                    uzip_comm_t comm);
UZIP_API uzip_status_t uzip_iscatter(const void *src, void *dst, size_t count, uzip_dtype_t dtype, int root,
                                     uzip_comm_t comm, uzip_request_t *request);
UZIP_API uzip_status_t uzip_scatter_init(const void *src, void *dst, size_t count, uzip_dtype_t dtype,
                                         int root, uzip_comm_t comm, uzip_request_t *request);
/* The same with blocks of different sizes: each rank receives `count` elements; on the root, counts[r] is that of rank
 * r, which comes from src + displs[r] elements. `displs` may be NULL: the blocks stand one after another. `src`,
 * `counts` and `displs` are looked at on the root only, the last two before the call returns. In place: on the root,
 * dst == UZIP_IN_PLACE. */
UZIP_API uzip_status_t uzip_scatterv(const void *src, const size_t *counts, const size_t *displs, void *dst,
                                     size_t count, uzip_dtype_t dtype, int root, uzip_comm_t comm);
UZIP_API uzip_status_t uzip_iscatterv(const void *src, const size_t *counts, const size_t *displs, void *dst,
                                      size_t count, uzip_dtype_t dtype, int root, uzip_comm_t comm,
                                      uzip_request_t *request);
UZIP_API uzip_status_t uzip_scatterv_init(const void *src, const size_t *counts, const size_t *displs,
                                          void *dst, size_t count, uzip_dtype_t dtype, int root,
                                          uzip_comm_t comm, uzip_request_t *request);

/* dst[r * count + i] = rank r's src[rank * count + i], i < count: every rank has a block for every rank. Both buffers
 * hold size * count elements. In place: src == UZIP_IN_PLACE or src == dst. */
UZIP_API uzip_status_t uzip_alltoall(const void *src, void *dst, size_t count, uzip_dtype_t dtype,
                                     uzip_comm_t comm);
UZIP_API uzip_status_t uzip_ialltoall(const void *src, void *dst, size_t count, uzip_dtype_t dtype,
                                      uzip_comm_t comm, uzip_request_t *request);
UZIP_API uzip_status_t uzip_alltoall_init(const void *src, void *dst, size_t count, uzip_dtype_t dtype,
                                          uzip_comm_t comm, uzip_request_t *request);
/* The same with blocks of different sizes: src_counts[r] elements at src + src_displs[r] go to rank r, and counts[r]
 * elements from rank r to dst + displs[r]. What one rank sends another has the size that the other expects. Each array
 * has one entry for each rank and is read before the call returns; displacements are in elements and may be NULL: the
 * blocks stand one after another. In place: src == UZIP_IN_PLACE; src_counts and src_displs are not used, and each
 * block in `dst` is replaced by one of the same size. */
UZIP_API uzip_status_t uzip_alltoallv(const void *src, const size_t *src_counts, const size_t *src_displs,
                                      void *dst, const size_t *counts, const size_t *displs,
                                      uzip_dtype_t dtype, uzip_comm_t comm);
UZIP_API uzip_status_t uzip_ialltoallv(const void *src, const size_t *src_counts, const size_t *src_displs,
                                       void *dst, const size_t *counts, const size_t *displs,
                                       uzip_dtype_t dtype, uzip_comm_t comm, uzip_request_t *request);
UZIP_API uzip_status_t uzip_alltoallv_init(const void *src, const size_t *src_counts,
                                           const size_t *src_displs, void *dst, const size_t *counts,
                                           const size_t *displs, uzip_dtype_t dtype, uzip_comm_t comm,
                                           uzip_request_t *request);

/* dst[i] = op over ranks 0 to this one of src[i], i < count; exscan: over the ranks before this one, and `dst` of rank
 * 0 is not used. `op` is not UZIP_AVG. In place: src == UZIP_IN_PLACE or src == dst. */
UZIP_API uzip_status_t uzip_scan(const void *src, void *dst, size_t count, uzip_dtype_t dtype, uzip_op_t op,
                                 uzip_comm_t comm);
UZIP_API uzip_status_t uzip_iscan(const void *src, void *dst, size_t count, uzip_dtype_t dtype, uzip_op_t op,
                                  uzip_comm_t comm, uzip_request_t *request);
UZIP_API uzip_status_t uzip_scan_init(const void *src, void *dst, size_t count, uzip_dtype_t dtype,
                                      uzip_op_t op, uzip_comm_t comm, uzip_request_t *request);
UZIP_API uzip_status_t uzip_exscan(const void *src, void *dst, size_t count, uzip_dtype_t dtype, uzip_op_t op,
                                   uzip_comm_t comm);
UZIP_API uzip_status_t uzip_iexscan(const void *src, void *dst, size_t count, uzip_dtype_t dtype, uzip_op_t op,
                                    uzip_comm_t comm, uzip_request_t *request);
UZIP_API uzip_status_t uzip_exscan_init(const void *src, void *dst, size_t count, uzip_dtype_t dtype,
                                        uzip_op_t op, uzip_comm_t comm, uzip_request_t *request);

/* Returns after all ranks have called it. */
UZIP_API uzip_status_t uzip_barrier(uzip_comm_t comm);
UZIP_API uzip_status_t uzip_ibarrier(uzip_comm_t comm, uzip_request_t *request);
UZIP_API uzip_status_t uzip_barrier_init(uzip_comm_t comm, uzip_request_t *request);

/* ---- Point to point ---------------------------------------------------------------------------- */

/* Sends `count` elements to rank `dest`, which receives them with a matching uzip_recv(). Messages between
 * two ranks with the same tag arrive in the order of sending. May return before the receiver has them. */
UZIP_API uzip_status_t uzip_send(const void *src, size_t count, uzip_dtype_t dtype, int dest, int tag,
                                 uzip_comm_t comm);
UZIP_API uzip_status_t uzip_isend(const void *src, size_t count, uzip_dtype_t dtype, int dest, int tag,
                                  uzip_comm_t comm, uzip_request_t *request);
UZIP_API uzip_status_t uzip_send_init(const void *src, size_t count, uzip_dtype_t dtype, int dest,
                                      int tag, uzip_comm_t comm, uzip_request_t *request);
/* Receives exactly `count` elements from rank `source`. Another count or type on the sender's side is
 * UZIP_ERR_MISMATCH, on this side only. */
UZIP_API uzip_status_t uzip_recv(void *dst, size_t count, uzip_dtype_t dtype, int source, int tag,
                                 uzip_comm_t comm);
UZIP_API uzip_status_t uzip_irecv(void *dst, size_t count, uzip_dtype_t dtype, int source, int tag,
                                  uzip_comm_t comm, uzip_request_t *request);
UZIP_API uzip_status_t uzip_recv_init(void *dst, size_t count, uzip_dtype_t dtype, int source, int tag,
                                      uzip_comm_t comm, uzip_request_t *request);
/* Sends and receives at the same time; the two may have different counts and peers. */
UZIP_API uzip_status_t uzip_sendrecv(const void *src, size_t src_count, int dest, int send_tag, void *dst,
                                     size_t dst_count, int source, int recv_tag, uzip_dtype_t dtype,
                                     uzip_comm_t comm);

/* ---- Requests ---------------------------------------------------------------------------------- */

/* Waits for the operation, frees the request and sets *request to UZIP_REQUEST_NULL, also on error.
 * A null request is complete. A wait that takes longer than UZIP_TIMEOUT says so once on stderr; one that takes
 * longer than UZIP_TIMEOUT_LIMIT, if that is set, fails with UZIP_ERR_TIMEOUT. */
UZIP_API uzip_status_t uzip_wait(uzip_request_t *request);
/* Progresses; if the operation is complete sets *done to 1, frees the request and sets it to
 * UZIP_REQUEST_NULL, otherwise sets *done to 0. The return value is the operation's status when done. */
UZIP_API uzip_status_t uzip_test(uzip_request_t *request, int *done);
/* Waits for all `n` requests, in any order of completion. `statuses` may be NULL or has n entries. Returns
 * UZIP_OK, or the first (lowest index) failing status. */
UZIP_API uzip_status_t uzip_waitall(size_t n, uzip_request_t *requests, uzip_status_t *statuses);

/* ---- Persistent operations --------------------------------------------------------------------- */

/* A call with its plan, buffers and memory made once, by an uzip_..._init() function: each start is then cheaper
 * than the nonblocking call, and allocates nothing (but for a vote of UZIP_CALIBRATE before the first, second, fourth, ...
 * large one, and another codec at the first start after it has measured). `init` is local: it communicates with nobody.
 * Every start is a call like any other, in order with the other calls on the communicator: ranks may mix persistent
 * operations and plain calls. It uses the elements that are in the buffers then.
 *
 * uzip_wait(), uzip_test() and uzip_waitall() end a started operation, but keep the request, which can be started
 * again, also after an error; of one that is not started they return UZIP_OK at once. */

/* Starts a persistent operation that is not in flight. After the communicator was freed: UZIP_ERR_INVALID. */
UZIP_API uzip_status_t uzip_start(uzip_request_t *request);
/* Starts `n` of them, in order. Returns UZIP_OK or the first (lowest index) failing status; the others have been
 * started all the same. */
UZIP_API uzip_status_t uzip_startall(size_t n, uzip_request_t *requests);
/* Frees a persistent operation that is not in flight and sets *request to UZIP_REQUEST_NULL; a null request is
 * allowed. Other requests are freed by waiting for them: UZIP_ERR_INVALID. */
UZIP_API uzip_status_t uzip_request_free(uzip_request_t *request);

/* ---- Groups ------------------------------------------------------------------------------------ */

/* Several calls as one. Between uzip_group_start() and uzip_group_end(), the blocking calls of this thread
 * (uzip_send(), uzip_recv(), uzip_sendrecv() and the collectives) are checked and collected instead of carried out;
 * the end starts all of them and waits for all of them. So sends and receives, also to and from oneself, can be
 * written in any order without deadlock. The meaning is ncclGroupStart()'s, but for the following:
 *   - Buffers belong to the library from the call until the end of the group; arrays of counts only during the call.
 *   - Receives are started first. Sends and collectives are started in the order of the calls.
 *   - An error of a collected call is returned by that call and again by the end, which then starts nothing.
 *   - Nonblocking calls and uzip_start() are not collected: they start at once. Communicators cannot be made or
 *     freed while a group is open (UZIP_ERR_INVALID), and all calls of a group must be on communicators that come
 *     from one another by uzip_comm_dup() and uzip_comm_split().
 *   - Groups are a thread's own, and nest: only the end of the outermost one starts and waits, the inner ones return
 *     UZIP_OK at once. */
UZIP_API uzip_status_t uzip_group_start(void);
/* Ends the group. Returns UZIP_OK, or the first failing status in the order of starting. */
UZIP_API uzip_status_t uzip_group_end(void);
/* Starts what was collected and returns one request for all of it; UZIP_REQUEST_NULL, which is complete, at the end
 * of an inner or an empty group, and after an error. */
UZIP_API uzip_status_t uzip_igroup_end(uzip_request_t *request);

/* ---- Options per call -------------------------------------------------------------------------- */

/* How one call is to be done. Start from UZIP_OPTIONS_INIT. Options must be equal on all ranks of the
 * call. */
typedef struct uzip_options {
  size_t struct_size;    /* sizeof(uzip_options_t) */
  const char *algorithm; /* "ring", "two_shot", ... (uzip_info -a); NULL or "auto": as the settings say */
  const char *codec;     /* "raw", "lev", ... (uzip_info -C); NULL or "auto": as the settings say */
  size_t chunk_bytes;    /* bytes of one encoded piece of one rank's share; 0: the library chooses */
  int split_send;        /* 1: raw planes leave before coding is done, 0: never, -1: the library chooses */
  void *stream;          /* of buffers in GPU memory: a stream (cudaStream_t, hipStream_t) of that GPU; NULL: its
                          * default stream. The call begins when all is done that is on the stream when it is made.
                          * Not compared between ranks. */
} uzip_options_t;
#define UZIP_OPTIONS_INIT {sizeof(uzip_options_t), NULL, NULL, 0, -1, NULL}

/* What a call did, filled in when it completes. Set struct_size before. */
typedef struct uzip_coll_info {
  size_t struct_size;     /* sizeof(uzip_coll_info_t) */
  const char *algorithm;  /* name of the algorithm that ran; static */
  const char *codec;      /* name of the codec that was planned; static */
  size_t chunk_bytes;     /* bytes of one piece */
  uint64_t payload_bytes; /* original bytes of the elements that this rank sent */
  uint64_t wire_bytes;    /* bytes that this rank sent, headers included */
} uzip_coll_info_t;

/* Any collective, with options. Fields that an operation does not use are ignored: `counts` is for the
 * v forms, `count` for the others and for what one rank has in gatherv and scatterv, `op` for reductions, `root` for
 * collectives with one, `displs` for gatherv, scatterv and alltoallv, `src_counts` and `src_displs` for alltoallv. A broadcast may have a
 * source of its own, which only the root has: there, in place is src == UZIP_IN_PLACE or src == dst. */
typedef struct uzip_coll_args {
  size_t struct_size; /* sizeof(uzip_coll_args_t) */
  uzip_coll_t coll;
  const void *src;
  void *dst;
  size_t count;
  const size_t *counts;
  uzip_dtype_t dtype;
  uzip_op_t op;
  const uzip_options_t *options; /* NULL: all chosen by the library */
  uzip_coll_info_t *info;        /* NULL, or filled in on completion; must live until then */
  int root;
  const size_t *displs;
  const size_t *src_counts;
  const size_t *src_displs;
  const uzip_neighbors_t *neighbors; /* UZIP_NEIGHBOR_ALLTOALLV only */
} uzip_coll_args_t;

/* Runs a collective to its end. */
UZIP_API uzip_status_t uzip_coll_run(const uzip_coll_args_t *args, uzip_comm_t comm);
/* Starts a collective. `args` (and `options`, `counts`) are read before the call returns. */
UZIP_API uzip_status_t uzip_coll_start(const uzip_coll_args_t *args, uzip_comm_t comm,
                                       uzip_request_t *request);
/* Makes a persistent operation of a collective. `args` (and `options`, `counts`) are read before the call returns;
 * `info` is filled in whenever the operation completes. */
UZIP_API uzip_status_t uzip_coll_init(const uzip_coll_args_t *args, uzip_comm_t comm,
                                      uzip_request_t *request);

/* Sends and receives with options (codec, chunk_bytes, split_send; not algorithm), which must be equal on
 * both sides. */
UZIP_API uzip_status_t uzip_isend_options(const void *src, size_t count, uzip_dtype_t dtype, int dest,
                                          int tag, uzip_comm_t comm, const uzip_options_t *options,
                                          uzip_coll_info_t *info, uzip_request_t *request);
UZIP_API uzip_status_t uzip_send_init_options(const void *src, size_t count, uzip_dtype_t dtype, int dest,
                                              int tag, uzip_comm_t comm, const uzip_options_t *options,
                                              uzip_coll_info_t *info, uzip_request_t *request);
UZIP_API uzip_status_t uzip_irecv_options(void *dst, size_t count, uzip_dtype_t dtype, int source, int tag,
                                          uzip_comm_t comm, const uzip_options_t *options,
                                          uzip_coll_info_t *info, uzip_request_t *request);
UZIP_API uzip_status_t uzip_recv_init_options(void *dst, size_t count, uzip_dtype_t dtype, int source,
                                              int tag, uzip_comm_t comm, const uzip_options_t *options,
                                              uzip_coll_info_t *info, uzip_request_t *request);

#ifdef __cplusplus
}
#endif
#endif /* UZIPCOLL_H */
