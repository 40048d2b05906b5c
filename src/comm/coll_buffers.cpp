// Where a call's elements are: counts that memory can hold, the in-place forms, and buffers that do not overlap.
#include "comm/coll_buffers.hpp"

#include "comm/pair_buffers.hpp"

#include <algorithm>
#include <cstdint>

namespace uzip {
namespace {

/// One of the caller's buffers as this rank sees it, in bytes.
struct Extent {
  Layout layout = Layout::kNothing;
  size_t bytes = 0;
};

/// Counts of the v forms: their sum becomes the call's count; and where this rank's block begins.
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

/// What the layouts come to in a call.
struct Sizes {
  size_t vector, blocks, own, own_offset;  // bytes
};

Extent extent_of(Layout layout, const Sizes& sizes) {
  switch (layout) {
    case Layout::kNothing: return {};
    case Layout::kVector: return {layout, sizes.vector};
    case Layout::kOwnBlock: return {layout, sizes.own};
    case Layout::kBlocks: return {layout, sizes.blocks};
  }
  return {};
}

/// Buffers that hold the same: in place is one being the other.
void bind_alike(const void* src, void* dst, CollArgs& args) {
  args.src = static_cast<const std::byte*>(src == UZIP_IN_PLACE ? dst : src);
  args.dst = static_cast<std::byte*>(dst);
  args.in_place = args.src == args.dst;
}

/// Blocks in, the own one out. In place the result takes the place of the own block; as in MPI's reduce_scatter it
/// goes from there to the front.
void bind_to_own(const void* src, void* dst, const Extent& in, const Extent& out, size_t own_offset, CollArgs& args) {
  args.result_moves =
      is_reduction(args.kind) && (src == UZIP_IN_PLACE || (src == dst && in.bytes != out.bytes));
  if (src == UZIP_IN_PLACE) src = dst;
  args.src = static_cast<const std::byte*>(src);
  args.dst = static_cast<std::byte*>(dst);
  if (args.result_moves) args.dst += own_offset;
  args.in_place = out.bytes > 0 && args.dst == args.src + own_offset;
}

/// The own block in, blocks out.
void bind_from_own(const void* src, void* dst, const Extent& in, size_t own_offset, CollArgs& args) {
  args.dst = static_cast<std::byte*>(dst);
  args.src = src == UZIP_IN_PLACE ? args.dst + own_offset : static_cast<const std::byte*>(src);
  args.in_place = in.bytes > 0 && args.src == args.dst + own_offset;
}

}  // namespace

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

Status check_disjoint(const CollArgs& args, size_t src_bytes, size_t dst_bytes) {
  if (!overlap(args.src, src_bytes, args.dst, dst_bytes)) return Status();
  return error(UZIP_ERR_INVALID,
               "%s: source (%zu bytes at %p) and destination (%zu bytes at %p) overlap; they must be "
               "disjoint, or one of the in-place forms of the call",
               call_name(args.kind), src_bytes, static_cast<const void*>(args.src), dst_bytes,
               static_cast<const void*>(args.dst));
}

Status bind_buffers(const uzip_coll_args_t& user, const CallContext& context, CollArgs& args) {
  if (is_pairwise(args.kind)) return bind_pairs(user, context, args);
  const size_t ranks = static_cast<size_t>(context.size), rank = static_cast<size_t>(context.rank);
  const size_t element = datatype_size(args.type);
  const Coll coll = coll_of(args.kind);
  Sizes sizes{};
  args.count = user.count;
  if (has_counts(args.kind)) {
    size_t own_offset = 0;
    UZIP_RETURN_IF_ERROR(read_counts(user.counts, context, args, &own_offset));
    UZIP_ASSIGN_OR_RETURN(sizes.blocks, total_bytes(args.count, 1, args.type));
    sizes.own = args.counts[rank] * element;
    sizes.own_offset = own_offset * element;
  } else {
    UZIP_ASSIGN_OR_RETURN(sizes.blocks, total_bytes(args.count, is_of_vectors(coll) ? 1 : ranks, args.type));
    sizes.vector = sizes.own = args.count * element;
    sizes.own_offset = sizes.own * rank;
  }
  const bool is_root = context.rank == args.root;
  const Extent in = extent_of(layout_of(coll, Slot::kInput, is_root), sizes);
  const Extent out = extent_of(layout_of(coll, Slot::kOutput, is_root), sizes);

  const void* src = in.layout == Layout::kNothing ? nullptr : user.src;
  // In an exclusive scan rank 0 has its elements in a destination that gets nothing.
  if (coll == Coll::kExscan && src == UZIP_IN_PLACE) src = user.dst;
  void* dst = out.layout == Layout::kNothing ? nullptr : user.dst;
  // The root's block of a scatter may stay where it is.
  if (coll == Coll::kScatter && is_root && dst == UZIP_IN_PLACE && src != UZIP_IN_PLACE && src != nullptr)
    dst = static_cast<std::byte*>(const_cast<void*>(src)) + sizes.own_offset;
  if (src != UZIP_IN_PLACE || out.layout == Layout::kNothing || coll == Coll::kScatter)
    UZIP_RETURN_IF_ERROR(check_buffer(src, in.bytes, "src"));
  UZIP_RETURN_IF_ERROR(check_buffer(dst, std::max(out.bytes, src == UZIP_IN_PLACE ? in.bytes : 0), "dst"));
  if (in.layout == Layout::kBlocks && out.layout == Layout::kOwnBlock) {
    bind_to_own(src, dst, in, out, sizes.own_offset, args);
  } else if (in.layout == Layout::kOwnBlock && out.layout == Layout::kBlocks) {
    bind_from_own(src, dst, in, sizes.own_offset, args);
  } else {
    bind_alike(src, dst, args);
  }
  args.src_bytes = in.bytes;
  args.dst_bytes = out.bytes;
  return args.in_place || args.result_moves ? Status() : check_disjoint(args, in.bytes, out.bytes);
}

}  // namespace uzip
