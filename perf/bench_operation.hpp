// What a measuring program says about its operation; everything else is common to all of them.
#pragma once

#include <uzipcoll/uzipcoll.h>

#include <cstddef>

namespace perf {

/// How many elements a call with `count` moves on one rank, and where they stand. `*_first` are
/// places in the endless sequences of elements (Pattern) that sources are filled from and results
/// are compared with.
struct Layout {
  size_t count = 0;    ///< argument of the call
  size_t send = 0;     ///< elements of the source
  size_t receive = 0;  ///< elements of the destination
  size_t source_first = 0;
  size_t result_first = 0;
  size_t pieces = 1;            ///< of equal size, that the result consists of
  ptrdiff_t piece_distance = 0;  ///< from the place of one piece to that of the next, in the sequence
  size_t in_place_source = 0;  ///< where the source begins in the one buffer of the in-place form
  size_t in_place_result = 0;  ///< where the result begins in it

  size_t largest() const { return send > receive ? send : receive; }
};

/// One call, out of place or in place.
struct Call {
  const void* src;
  void* dst;
  size_t count;
  uzip_dtype_t type;
  uzip_op_t op;
  int rank;
  int ranks;
  const uzip_options_t* options;
  uzip_coll_info_t* info;
  uzip_comm_t comm;
};

/// What is done; other libraries know their own function for it.
enum class OperationKind {
  kAllreduce,
  kReduceScatter,
  kAllgather,
  kAlltoall,
  kBcast,
  kReduce,
  kSendrecv,
  kHalo,
};

/// The root of rooted operations; -1, as nccl-tests write it, for the others.
constexpr int root_of(OperationKind kind) {
  return kind == OperationKind::kBcast || kind == OperationKind::kReduce ? 0 : -1;
}

struct Operation {
  OperationKind kind;
  const char* name;  ///< of the program
  const char* does;  ///< what is measured, for the help text
  bool reduces;      ///< takes a reduction operation
  bool has_in_place;
  bool has_algorithms;
  bool same_everywhere;  ///< every rank ends with the same elements
  /// nccl-tests' rule: the call's count for `elements` elements in the larger of the two buffers.
  size_t (*count)(size_t elements, size_t element_size, int ranks);
  Layout (*layout)(size_t count, int rank, int ranks);
  /// Bytes that must cross a rank's link, in units of the size (busbw = factor * algbw).
  double (*bus_factor)(int ranks);
  uzip_status_t (*run)(const Call& call);
  /// Its nonblocking form, without info; nullptr: it has none in one call.
  uzip_status_t (*start)(const Call& call, uzip_request_t* request) = nullptr;
};

/// One of the library's collectives, as the library takes it.
template <uzip_coll_t kColl>
uzip_coll_args_t collective_args(const Call& call) {
  uzip_coll_args_t args = {};
  args.struct_size = sizeof(args);
  args.coll = kColl;
  args.src = call.src;
  args.dst = call.dst;
  args.count = call.count;
  args.dtype = call.type;
  args.op = call.op;
  args.options = call.options;
  args.info = call.info;
  return args;
}

/// For Operation::run and Operation::start.
template <uzip_coll_t kColl>
uzip_status_t run_collective(const Call& call) {
  const uzip_coll_args_t args = collective_args<kColl>(call);
  return uzip_coll_run(&args, call.comm);
}
template <uzip_coll_t kColl>
uzip_status_t start_collective(const Call& call, uzip_request_t* request) {
  const uzip_coll_args_t args = collective_args<kColl>(call);
  return uzip_coll_start(&args, call.comm, request);
}

/// A block for each rank, its size a multiple of 16 bytes as in nccl-tests.
inline size_t count_per_rank(size_t elements, size_t element_size, int ranks) {
  const size_t step = 16 / element_size;
  return elements / static_cast<size_t>(ranks) / step * step;
}

/// The whole main program for `operation`. Returns the exit status.
int bench_main(const Operation& operation, int argc, char** argv);

}  // namespace perf
