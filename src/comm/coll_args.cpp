// Validation of calls: counts, sizes, types, operations, buffers and options, each error with its value and
// what is allowed. Used by the C API only.
#include "comm/coll_args.hpp"

#include "algos/algorithm.hpp"

#include <cinttypes>
#include <cstdint>
#include <cstring>

namespace uzip {
namespace {

/// There is one layout of each struct so far; another size means another version, or no initialisation.
template <class T>
Status check_struct_size(const T& value, const char* name) {
  if (value.struct_size == sizeof(T)) return Status();
  return error(UZIP_ERR_INVALID, "%s.struct_size is %zu; it must be sizeof(%s) = %zu", name,
               value.struct_size, name, sizeof(T));
}

Status check_type(DataType type) {
  if (is_datatype(type)) return Status();
  return error(UZIP_ERR_INVALID, "data type %d does not exist; allowed are 0 (int8) to %zu (%s)",
               static_cast<int>(type), datatypes().size() - 1, datatypes().back().name);
}

Status check_op(ReduceOp op) {
  if (is_reduce_op(op)) return Status();
  return error(UZIP_ERR_INVALID, "reduction %d does not exist; allowed are sum, prod, min, max, avg",
               static_cast<int>(op));
}

/// count * blocks elements must be addressable.
Result<size_t> total_bytes(size_t count, size_t blocks, DataType type) {
  size_t elements = 0, bytes = 0;
  if (__builtin_mul_overflow(count, blocks, &elements) ||
      __builtin_mul_overflow(elements, datatype_size(type), &bytes) ||
      bytes > static_cast<size_t>(PTRDIFF_MAX)) {
    return error(UZIP_ERR_INVALID,
                 "count %zu of %s for %zu rank(s) is more than memory can hold; a negative number?", count,
                 datatype_info(type).name, blocks);
  }
  return bytes;
}

Status check_buffer(const void* buffer, size_t bytes, const char* name) {
  if (bytes == 0 || (buffer != nullptr && buffer != UZIP_IN_PLACE)) return Status();
  return error(UZIP_ERR_INVALID, "%s is %s but %zu bytes are to be %s", name,
               buffer ? "UZIP_IN_PLACE" : "NULL", bytes, name[0] == 's' ? "read" : "written");
}

bool overlap(const std::byte* a, size_t a_bytes, const std::byte* b, size_t b_bytes) {
  const auto x = reinterpret_cast<uintptr_t>(a), y = reinterpret_cast<uintptr_t>(b);
  return a_bytes && b_bytes && x < y + b_bytes && y < x + a_bytes;
}

Status check_disjoint(const CollArgs& args, size_t src_bytes, size_t dst_bytes) {
  if (!overlap(args.src, src_bytes, args.dst, dst_bytes)) return Status();
  return error(UZIP_ERR_INVALID,
               "%s: source (%zu bytes at %p) and destination (%zu bytes at %p) overlap; they must be "
               "disjoint, or one of the in-place forms of the call",
               call_name(args.kind), src_bytes, static_cast<const void*>(args.src), dst_bytes,
               static_cast<const void*>(args.dst));
}

Result<CallOptions> read_options(const uzip_options_t* options, const Coll* coll,
                                 const CallOptions& defaults) {
  CallOptions result = defaults;
  if (!options) return result;
  UZIP_RETURN_IF_ERROR(check_struct_size(*options, "uzip_options_t"));
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
  }
  return error(UZIP_ERR_INVALID, "collective %d does not exist; allowed are 0 to %d",
               static_cast<int>(coll), static_cast<int>(UZIP_BARRIER));
}

/// Counts of the v forms, and where this rank's block begins.
Status read_counts(const size_t* counts, const CallContext& context, CollArgs& args, size_t* own_offset) {
  if (!counts) return error(UZIP_ERR_INVALID, "%s: counts is NULL; it must have %d entries",
                            call_name(args.kind), context.size);
  args.counts = {counts, static_cast<size_t>(context.size)};
  args.count = 0;
  for (int r = 0; r < context.size; ++r) {
    if (r == context.rank) *own_offset = args.count;
    if (__builtin_add_overflow(args.count, counts[r], &args.count))
      return error(UZIP_ERR_INVALID, "%s: the counts add up to more than memory can hold",
                   call_name(args.kind));
  }
  return Status();
}

Status bind_allreduce(const void* src, void* dst, CollArgs& args) {
  UZIP_ASSIGN_OR_RETURN(const size_t bytes, total_bytes(args.count, 1, args.type));
  if (src == UZIP_IN_PLACE) src = dst;
  UZIP_RETURN_IF_ERROR(check_buffer(src, bytes, "src"));
  UZIP_RETURN_IF_ERROR(check_buffer(dst, bytes, "dst"));
  args.in_place = src == dst;
  args.src = static_cast<const std::byte*>(src);
  args.dst = static_cast<std::byte*>(dst);
  return args.in_place ? Status() : check_disjoint(args, bytes, bytes);
}

/// The two collectives with one block per rank on one side: `blocked` is that side, `own` the single block.
struct BlockedSizes {
  size_t blocked, own, own_offset;  // bytes
};

Status bind_reduce_scatter(const void* src, void* dst, const BlockedSizes& size, CollArgs& args) {
  args.result_moves = src == UZIP_IN_PLACE || (src == dst && size.blocked != size.own);
  if (src == UZIP_IN_PLACE) src = dst;
  UZIP_RETURN_IF_ERROR(check_buffer(src, size.blocked, "src"));
  UZIP_RETURN_IF_ERROR(check_buffer(dst, size.own, "dst"));
  args.src = static_cast<const std::byte*>(src);
  args.dst = static_cast<std::byte*>(dst);
  if (args.result_moves) args.dst += size.own_offset;
  args.in_place = size.own && args.dst == args.src + size.own_offset;
  return args.in_place || args.result_moves ? Status() : check_disjoint(args, size.blocked, size.own);
}

Status bind_allgather(const void* src, void* dst, const BlockedSizes& size, CollArgs& args) {
  UZIP_RETURN_IF_ERROR(check_buffer(dst, size.blocked, "dst"));
  args.dst = static_cast<std::byte*>(dst);
  if (src == UZIP_IN_PLACE) src = args.dst + size.own_offset;
  UZIP_RETURN_IF_ERROR(check_buffer(src, size.own, "src"));
  args.src = static_cast<const std::byte*>(src);
  args.in_place = size.own && args.src == args.dst + size.own_offset;
  return args.in_place ? Status() : check_disjoint(args, size.own, size.blocked);
}

Status bind_blocked(const uzip_coll_args_t& user, const CallContext& context, CollArgs& args) {
  const size_t ranks = static_cast<size_t>(context.size), rank = static_cast<size_t>(context.rank);
  const size_t element = datatype_size(args.type);
  BlockedSizes size{};
  if (args.kind == CallKind::kReduceScatterV || args.kind == CallKind::kAllgatherV) {
    size_t own_offset = 0;
    UZIP_RETURN_IF_ERROR(read_counts(user.counts, context, args, &own_offset));
    UZIP_ASSIGN_OR_RETURN(size.blocked, total_bytes(args.count, 1, args.type));
    size.own = args.counts[rank] * element;
    size.own_offset = own_offset * element;
  } else {
    UZIP_ASSIGN_OR_RETURN(size.blocked, total_bytes(args.count, ranks, args.type));
    size.own = args.count * element;
    size.own_offset = size.own * rank;
  }
  return coll_of(args.kind) == Coll::kAllgather ? bind_allgather(user.src, user.dst, size, args)
                                                : bind_reduce_scatter(user.src, user.dst, size, args);
}

Result<CollArgs> validate_point_to_point(CallKind kind, size_t count, DataType type, int peer, int tag,
                                         const uzip_options_t* options, const CallContext& context) {
  CollArgs args;
  args.kind = kind;
  UZIP_RETURN_IF_ERROR(check_type(type));
  UZIP_RETURN_IF_ERROR(total_bytes(count, 1, type).status());
  if (peer < 0 || peer >= context.size)
    return error(UZIP_ERR_INVALID, "%s: rank %d does not exist; the communicator has ranks 0 to %d",
                 call_name(kind), peer, context.size - 1);
  if (tag < 0 || tag > UZIP_TAG_MAX)
    return error(UZIP_ERR_INVALID, "%s: tag %d is not allowed; tags are 0 to %d", call_name(kind), tag,
                 UZIP_TAG_MAX);
  args.type = type;
  args.count = count;
  args.peer = peer;
  args.tag = static_cast<uint32_t>(tag);
  // Point to point has no algorithm of its own; chunk and codec follow the all-gather's defaults.
  UZIP_ASSIGN_OR_RETURN(args.options, read_options(options, nullptr,
                                                   context.defaults[static_cast<int>(Coll::kAllgather)]));
  args.options.algorithm = nullptr;
  return args;
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

Result<CollArgs> validate_collective(const uzip_coll_args_t& user, const CallContext& context) {
  UZIP_RETURN_IF_ERROR(check_struct_size(user, "uzip_coll_args_t"));
  Result<CollArgs> result{CollArgs()};  // filled in where it is returned from: small calls feel a copy
  CollArgs& args = *result;
  UZIP_ASSIGN_OR_RETURN(args.kind, kind_of(user.coll));
  const Coll coll = coll_of(args.kind);
  UZIP_ASSIGN_OR_RETURN(args.options,
                        read_options(user.options, &coll, context.defaults[static_cast<int>(coll)]));
  if (user.info) UZIP_RETURN_IF_ERROR(check_struct_size(*user.info, "uzip_coll_info_t"));
  args.info = user.info;
  if (args.kind == CallKind::kBarrier) return result;

  UZIP_RETURN_IF_ERROR(check_type(user.dtype));
  args.type = user.dtype;
  if (is_reduction(args.kind)) {
    UZIP_RETURN_IF_ERROR(check_op(user.op));
    args.op = user.op;
  }
  args.count = user.count;
  UZIP_RETURN_IF_ERROR(args.kind == CallKind::kAllreduce ? bind_allreduce(user.src, user.dst, args)
                                                         : bind_blocked(user, context, args));
  return result;
}

Result<CollArgs> validate_send(const void* src, size_t count, DataType type, int dest, int tag,
                               const uzip_options_t* options, const CallContext& context) {
  UZIP_ASSIGN_OR_RETURN(CollArgs args, validate_point_to_point(CallKind::kSend, count, type, dest, tag,
                                                               options, context));
  UZIP_RETURN_IF_ERROR(check_buffer(src, count * datatype_size(type), "src"));
  args.src = static_cast<const std::byte*>(src);
  return args;
}

Result<CollArgs> validate_recv(void* dst, size_t count, DataType type, int source, int tag,
                               const uzip_options_t* options, const CallContext& context) {
  UZIP_ASSIGN_OR_RETURN(CollArgs args, validate_point_to_point(CallKind::kRecv, count, type, source, tag,
                                                               options, context));
  UZIP_RETURN_IF_ERROR(check_buffer(dst, count * datatype_size(type), "dst"));
  args.dst = static_cast<std::byte*>(dst);
  return args;
}

}  // namespace uzip
