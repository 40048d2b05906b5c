// Validation of calls: kinds, types, operations and options, each error with its value and what is allowed. Used by
// the C API only.
#include "comm/coll_args.hpp"

#include "algos/algorithm.hpp"
#include "comm/call_memory.hpp"
#include "comm/coll_buffers.hpp"
#include "comm/neighbor_exchange.hpp"
#include "comm/struct_size.hpp"
#include "comm/user_op.hpp"

#include <cstring>

namespace uzip {
namespace {

Status check_type(DataType type) {
  if (is_datatype(type)) return Status();
  return error(UZIP_ERR_INVALID, "data type %d does not exist; allowed are 0 (int8) to %zu (%s)",
               static_cast<int>(type), datatypes().size() - 1, datatypes().back().name);
}

Status read_op(ReduceOp op, CollArgs* args) {
  args->op = op;
  if (is_reduce_op(op)) return Status();
  args->user_op = find_user_op(op);
  if (args->user_op) return Status();
  return error(UZIP_ERR_INVALID, "reduction %d does not exist; allowed are sum, prod, min, max, avg and what "
                                 "uzip_op_create() made and uzip_op_free() has not freed", static_cast<int>(op));
}

/// The options of a call on top of `defaults`; *stream becomes the caller's, if there is one.
Result<CallOptions> read_options(const uzip_options_t* user, const Coll* coll, const CallOptions& defaults,
                                 void** stream) {
  CallOptions result = defaults;
  if (!user) return result;
  uzip_options_t storage = UZIP_OPTIONS_INIT;
  UZIP_ASSIGN_OR_RETURN(const uzip_options_t* const options,
                        read_struct(*user, "uzip_options_t", kFirstOptionsBytes, storage));
  if (options->algorithm && std::strcmp(options->algorithm, "auto") != 0) {
    result.algorithm = coll ? find_algorithm(*coll, options->algorithm) : nullptr;
    if (coll && !result.algorithm)
      return error(UZIP_ERR_INVALID, "there is no algorithm '%.64s' for %s; 'uzip_info -a' lists them",
                   options->algorithm, coll_name(*coll));
  }
  if (options->codec) {
    UZIP_ASSIGN_OR_RETURN(CodecChoice choice, parse_codec_choice(options->codec));
    if (choice.codec) result.codec = choice;
  }
  if (options->chunk_bytes) result.chunk_bytes = options->chunk_bytes;
  if (options->split_send < -1 || options->split_send > 1)
    return error(UZIP_ERR_INVALID, "split_send is %d; allowed are 1, 0 and -1 (the library chooses)",
                 options->split_send);
  if (options->split_send >= 0) result.split_send = options->split_send;
  *stream = options->stream;
  return result;
}

Result<CallKind> kind_of(uzip_coll_t coll) {
  switch (coll) {
    case UZIP_ALLREDUCE: return CallKind::kAllreduce;
    case UZIP_REDUCE_SCATTER: return CallKind::kReduceScatter;
    case UZIP_REDUCE_SCATTERV: return CallKind::kReduceScatterV;
    case UZIP_ALLGATHER: return CallKind::kAllgather;
    case UZIP_ALLGATHERV: return CallKind::kAllgatherV;
    case UZIP_BARRIER: return CallKind::kBarrier;
    case UZIP_BCAST: return CallKind::kBcast;
    case UZIP_REDUCE: return CallKind::kReduce;
    case UZIP_GATHER: return CallKind::kGather;
    case UZIP_GATHERV: return CallKind::kGatherV;
    case UZIP_SCATTER: return CallKind::kScatter;
    case UZIP_SCATTERV: return CallKind::kScatterV;
    case UZIP_ALLTOALL: return CallKind::kAlltoall;
    case UZIP_ALLTOALLV: return CallKind::kAlltoallV;
    case UZIP_SCAN: return CallKind::kScan;
    case UZIP_EXSCAN: return CallKind::kExscan;
    case UZIP_NEIGHBOR_ALLTOALLV: return CallKind::kNeighborAlltoallV;
  }
  return error(UZIP_ERR_INVALID, "collective %d does not exist; allowed are 0 to %d",
               static_cast<int>(coll), static_cast<int>(UZIP_EXSCAN));
}

Status bind_neighbors(const uzip_coll_args_t& user, const CallContext& context, CollArgs& args) {
  UZIP_RETURN_IF_ERROR(check_neighbors(user.neighbors, user.src, user.dst, args.type, context));
  args.options.algorithm = nullptr;
  args.neighbors = user.neighbors;
  args.src = static_cast<const std::byte*>(user.src);
  args.dst = static_cast<std::byte*>(user.dst);
  args.count = 0;  // that it sends
  for (int i = 0; i < user.neighbors->dest_count; ++i) args.count += user.neighbors->send_counts[i];
  args.src_bytes = args.count * datatype_size(args.type);
  for (int i = 0; i < user.neighbors->source_count; ++i)
    args.dst_bytes += user.neighbors->recv_counts[i] * datatype_size(args.type);
  return Status();
}

Status validate_point_to_point(size_t count, DataType type, int peer, int tag, const uzip_options_t* options,
                               const CallContext& context, CollArgs& args) {
  UZIP_RETURN_IF_ERROR(check_type(type));
  UZIP_RETURN_IF_ERROR(total_bytes(count, 1, type).status());
  if (peer < 0 || peer >= context.size)
    return error(UZIP_ERR_INVALID, "%s: rank %d does not exist; the communicator has ranks 0 to %d",
                 call_name(args.kind), peer, context.size - 1);
  if (tag < 0 || tag > UZIP_TAG_MAX)
    return error(UZIP_ERR_INVALID, "%s: tag %d is not allowed; tags are 0 to %d", call_name(args.kind), tag,
                 UZIP_TAG_MAX);
  args.type = type;
  args.count = count;
  args.peer = peer;
  args.tag = static_cast<uint32_t>(tag);
  // Point to point has no algorithm of its own; chunk and codec follow the all-gather's defaults.
  const CallOptions& defaults = context.defaults[static_cast<int>(Coll::kAllgather)];
  args.options = defaults;
  if (options) {
    UZIP_ASSIGN_OR_RETURN(args.options, read_options(options, nullptr, defaults, &args.stream));
  }
  args.options.algorithm = nullptr;
  return Status();
}

}  // namespace

const char* call_name(CallKind kind) {
  switch (kind) {
    case CallKind::kAllreduce: return "allreduce";
    case CallKind::kReduceScatter: return "reduce_scatter";
    case CallKind::kReduceScatterV: return "reduce_scatterv";
    case CallKind::kAllgather: return "allgather";
    case CallKind::kAllgatherV: return "allgatherv";
    case CallKind::kBarrier: return "barrier";
    case CallKind::kSend: return "send";
    case CallKind::kRecv: return "recv";
    case CallKind::kBcast: return "bcast";
    case CallKind::kReduce: return "reduce";
    case CallKind::kGather: return "gather";
    case CallKind::kGatherV: return "gatherv";
    case CallKind::kScatter: return "scatter";
    case CallKind::kScatterV: return "scatterv";
    case CallKind::kAlltoall: return "alltoall";
    case CallKind::kAlltoallV: return "alltoallv";
    case CallKind::kScan: return "scan";
    case CallKind::kExscan: return "exscan";
    case CallKind::kNeighborAlltoallV: return "neighbor_alltoallv";
    case CallKind::kAgreement: return "its first large collective";
  }
  return "unknown call";
}

Coll coll_of(CallKind kind) {
  switch (kind) {
    case CallKind::kReduceScatter:
    case CallKind::kReduceScatterV: return Coll::kReduceScatter;
    case CallKind::kAllgather:
    case CallKind::kAllgatherV: return Coll::kAllgather;
    case CallKind::kBarrier: return Coll::kBarrier;
    case CallKind::kBcast: return Coll::kBcast;
    case CallKind::kReduce: return Coll::kReduce;
    case CallKind::kGather: return Coll::kGather;
    case CallKind::kScatter: return Coll::kScatter;
    case CallKind::kAlltoall: return Coll::kAlltoall;
    case CallKind::kGatherV:
    case CallKind::kScatterV:
    case CallKind::kAlltoallV: return Coll::kAlltoallv;
    case CallKind::kScan: return Coll::kScan;
    case CallKind::kExscan: return Coll::kExscan;
    case CallKind::kNeighborAlltoallV: return Coll::kAllgather;  // whose settings it shares, as point to point does
    default: return Coll::kAllreduce;
  }
}

Result<CodecChoice> parse_codec_choice(const std::string& name) {
  if (name == "auto") return CodecChoice{};
  const size_t colon = name.find(':');
  CodecChoice choice;
  choice.codec = find_codec(std::string_view(name).substr(0, colon));
  const std::string level = colon == std::string::npos ? "balanced" : name.substr(colon + 1);
  bool known = true;
  if (level == "fastest") choice.level = CodecLevel::kFastest;
  else if (level == "balanced") choice.level = CodecLevel::kBalanced;
  else if (level == "smallest") choice.level = CodecLevel::kSmallest;
  else known = false;
  if (choice.codec && known) return choice;
  return error(UZIP_ERR_INVALID,
               "there is no codec '%.64s'; allowed are auto or a name that 'uzip_info -C' lists, with "
               ":fastest, :balanced or :smallest behind it if wanted",
               name.c_str());
}

Result<CollArgs> validate_collective(const uzip_coll_args_t& passed, const CallContext& context) {
  uzip_coll_args_t storage = {};
  UZIP_ASSIGN_OR_RETURN(const uzip_coll_args_t* const read,
                        read_struct(passed, "uzip_coll_args_t", kFirstCollArgsBytes, storage));
  const uzip_coll_args_t& user = *read;
  Result<CollArgs> result{CollArgs()};  // filled in where it is returned from: small calls feel a copy
  CollArgs& args = *result;
  UZIP_ASSIGN_OR_RETURN(args.kind, kind_of(user.coll));
  if (user.info)
    UZIP_RETURN_IF_ERROR(check_written_struct(*user.info, "uzip_coll_info_t", kFirstCollInfoBytes));
  args.info = user.info;
  const bool with_neighbors = args.kind == CallKind::kNeighborAlltoallV;
  const Coll coll = coll_of(args.kind);
  UZIP_ASSIGN_OR_RETURN(args.options, read_options(user.options, with_neighbors ? nullptr : &coll,
                                                   context.defaults[static_cast<int>(coll)], &args.stream));
  if (args.kind == CallKind::kBarrier) return result;

  UZIP_RETURN_IF_ERROR(check_type(user.dtype));
  args.type = user.dtype;
  if (is_reduction(args.kind)) {
    if (user.op == UZIP_AVG && (coll == Coll::kScan || coll == Coll::kExscan))
      return error(UZIP_ERR_INVALID, "%s: avg is not defined for prefixes; use sum", call_name(args.kind));
    UZIP_RETURN_IF_ERROR(read_op(user.op, &args));
  }
  if (is_rooted(coll) || args.kind == CallKind::kGatherV || args.kind == CallKind::kScatterV) {
    if (user.root < 0 || user.root >= context.size)
      return error(UZIP_ERR_INVALID, "%s: root %d does not exist; the communicator has ranks 0 to %d",
                   call_name(args.kind), user.root, context.size - 1);
    args.root = user.root;
  }
  UZIP_RETURN_IF_ERROR(with_neighbors ? bind_neighbors(user, context, args) : bind_buffers(user, context, args));
  if (context.gpus) UZIP_RETURN_IF_ERROR(find_memory(*context.gpus, args));
  return result;
}

Status validate_send(const void* src, size_t count, DataType type, int dest, int tag, const uzip_options_t* options,
                     const CallContext& context, CollArgs& args) {
  args.kind = CallKind::kSend;
  UZIP_RETURN_IF_ERROR(validate_point_to_point(count, type, dest, tag, options, context, args));
  UZIP_RETURN_IF_ERROR(check_buffer(src, count * datatype_size(type), "src"));
  args.src = static_cast<const std::byte*>(src);
  args.src_bytes = count * datatype_size(type);
  return context.gpus ? find_memory(*context.gpus, args) : Status();
}

Status validate_recv(void* dst, size_t count, DataType type, int source, int tag, const uzip_options_t* options,
                     const CallContext& context, CollArgs& args) {
  args.kind = CallKind::kRecv;
  UZIP_RETURN_IF_ERROR(validate_point_to_point(count, type, source, tag, options, context, args));
  UZIP_RETURN_IF_ERROR(check_buffer(dst, count * datatype_size(type), "dst"));
  args.dst = static_cast<std::byte*>(dst);
  args.dst_bytes = count * datatype_size(type);
  return context.gpus ? find_memory(*context.gpus, args) : Status();
}

}  // namespace uzip
