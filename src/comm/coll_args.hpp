// The validated description of one call, made from what the user passed. Everything behind it may rely on it.
#pragma once

#include "algos/schedule.hpp"
#include "base/datatype.hpp"
#include "base/reduce.hpp"
#include "base/status.hpp"
#include "codec/codec.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace uzip {

struct Algorithm;
struct UserOp;
class GpuDevices;

/// What the user called. Part of the wire format (CallStamp::coll): append only.
enum class CallKind : uint8_t {
  kAllreduce = 1,
  kReduceScatter = 2,
  kReduceScatterV = 3,
  kAllgather = 4,
  kAllgatherV = 5,
  kBarrier = 6,
  kSend = 7,
  kRecv = 8,
  kBcast = 9,
  kReduce = 10,
  kGather = 11,
  kGatherV = 12,
  kScatter = 13,
  kScatterV = 14,
  kAlltoall = 15,
  kAlltoallV = 16,
  kScan = 17,
  kExscan = 18,
  kNeighborAlltoallV = 32,
  kAgreement = 33,  ///< not a user's: see Communicator::start_vote()
};
/// "allreduce"; "unknown call" for a value that is not one.
const char* call_name(CallKind kind);

inline bool is_point_to_point(CallKind kind) { return kind == CallKind::kSend || kind == CallKind::kRecv; }
inline bool is_reduction(CallKind kind) {
  return kind == CallKind::kAllreduce || kind == CallKind::kReduceScatter ||
         kind == CallKind::kReduceScatterV || kind == CallKind::kReduce || kind == CallKind::kScan ||
         kind == CallKind::kExscan || kind == CallKind::kAgreement;
}
/// The v forms whose counts all ranks know.
inline bool has_counts(CallKind kind) {
  return kind == CallKind::kReduceScatterV || kind == CallKind::kAllgatherV;
}
/// The v forms of which a rank knows only what itself sends and receives: each pair of ranks has a count of its own.
inline bool is_pairwise(CallKind kind) {
  return kind == CallKind::kGatherV || kind == CallKind::kScatterV || kind == CallKind::kAlltoallV;
}

/// A codec and how hard it tries, by name: "auto", "raw", "lev", "lev:fastest", "lev:smallest".
struct CodecChoice {
  const Codec* codec = nullptr;  ///< nullptr: the selector chooses
  CodecLevel level = CodecLevel::kBalanced;

  bool operator==(const CodecChoice&) const = default;
};
Result<CodecChoice> parse_codec_choice(const std::string& name);

/// What the call's options, or else the settings, ask for.
struct CallOptions {
  const Algorithm* algorithm = nullptr;  ///< nullptr: the selector chooses
  CodecChoice codec;
  size_t chunk_bytes = 0;                ///< 0: the selector chooses
  int split_send = -1;                   ///< -1: the selector chooses

  bool operator==(const CallOptions&) const = default;
};

/// One side of a pairwise call: how many elements go to, or come from, each rank, and where they are.
struct Blocks {
  std::vector<size_t> counts, begins;  ///< elements, by rank
};
struct PairBlocks {
  Blocks sent, received;
};

struct CollArgs {
  CallKind kind = CallKind::kBarrier;
  DataType type = UZIP_UINT8;
  ReduceOp op = UZIP_SUM;
  std::shared_ptr<const UserOp> user_op;  ///< null: one of the library's
  bool in_place = false;
  bool result_moves = false;     ///< reduce_scatter in MPI's in-place form: the result goes to the front of dst
  int root = 0;                  ///< rooted collectives
  int peer = -1;                 ///< point to point: the other rank
  uint32_t tag = 0;
  const std::byte* src = nullptr;
  std::byte* dst = nullptr;
  size_t src_bytes = 0, dst_bytes = 0;  ///< 0: nothing is there
  int device = -1;               ///< the GPU that works on the buffers; -1: the host
  void* stream = nullptr;        ///< of that GPU: what is on it comes before the call
  size_t count = 0;              ///< per rank; the v forms: the sum; pairwise ones: what this rank sends
  std::span<const size_t> counts;  ///< v forms that all ranks know; the caller's, valid until the call has started
  std::shared_ptr<const PairBlocks> pairs;  ///< pairwise v forms
  const uzip_neighbors_t* neighbors = nullptr;  ///< as `counts`
  CallOptions options;
  uzip_coll_info_t* info = nullptr;
  bool announced = false;  ///< the others know whether this rank waits for it, see calibrate_before()
  bool blocking = false;   ///< the caller does nothing else until it has ended
};

/// Who makes the call: what validation needs to know of the communicator.
struct CallContext {
  int rank = 0;
  int size = 1;
  const CallOptions* defaults = nullptr;  ///< by kind of collective, kCollCount of them
  GpuDevices* gpus = nullptr;             ///< null: all buffers are in host memory
};

/// The collective behind a call; must not be point to point.
Coll coll_of(CallKind kind);

Result<CollArgs> validate_collective(const uzip_coll_args_t& args, const CallContext& context);
/// Messages fill in fresh `args` where they lie: short ones feel a copy.
Status validate_send(const void* src, size_t count, DataType type, int dest, int tag, const uzip_options_t* options,
                     const CallContext& context, CollArgs& args);
Status validate_recv(void* dst, size_t count, DataType type, int source, int tag, const uzip_options_t* options,
                     const CallContext& context, CollArgs& args);

}  // namespace uzip
