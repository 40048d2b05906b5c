// One form for gatherv, scatterv and alltoallv: what goes to, and comes from, each rank. A gatherv sends to the root
// only, a scatterv receives from it only; a block that stays where it is neither is sent nor comes.
#include "comm/pair_buffers.hpp"

#include "comm/coll_buffers.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>

namespace uzip {
namespace {

/// Blocks as the caller gives them: counts, and places or one after another. `end` becomes the first byte behind all.
Result<Blocks> read_blocks(const char* name, const size_t* counts, const size_t* displs, const CallContext& context,
                           const CollArgs& args, size_t* end) {
  if (!counts) return error(UZIP_ERR_INVALID, "%s: %s is NULL; it must have %d entries", call_name(args.kind), name,
                            context.size);
  Blocks blocks;
  blocks.counts.assign(counts, counts + context.size);
  size_t last = 0, packed = 0;
  for (int r = 0; r < context.size; ++r) {
    const size_t begin = displs ? displs[r] : packed;
    size_t after = 0;
    if (__builtin_add_overflow(begin, counts[r], &after) || after > PTRDIFF_MAX / datatype_size(args.type))
      return error(UZIP_ERR_INVALID, "%s: the block of rank %d, %zu elements at %zu, is beyond what memory can hold",
                   call_name(args.kind), r, counts[r], begin);
    blocks.begins.push_back(begin);
    packed = after;
    if (counts[r] > 0) last = std::max(last, after);
  }
  *end = last * datatype_size(args.type);
  return blocks;
}

/// Nothing, but for `count` elements that go to, or come from, one rank.
Blocks single_block(size_t count, int peer, int size) {
  Blocks blocks;
  blocks.counts.resize(static_cast<size_t>(size));
  blocks.begins.resize(static_cast<size_t>(size));
  if (peer >= 0) blocks.counts[static_cast<size_t>(peer)] = count;
  return blocks;
}

Status check_own_block(const PairBlocks& pairs, const CallContext& context, const CollArgs& args) {
  const auto own = static_cast<size_t>(context.rank);
  if (pairs.sent.counts[own] == pairs.received.counts[own]) return Status();
  return error(UZIP_ERR_INVALID, "%s: this rank sends itself %zu elements and receives %zu from itself",
               call_name(args.kind), pairs.sent.counts[own], pairs.received.counts[own]);
}

/// The root of a gatherv or scatterv works in place: its own block is where it belongs.
void keep_own_block(PairBlocks& pairs, int rank) {
  pairs.sent.counts[static_cast<size_t>(rank)] = 0;
  pairs.received.counts[static_cast<size_t>(rank)] = 0;
}

}  // namespace

Status bind_pairs(const uzip_coll_args_t& user, const CallContext& context, CollArgs& args) {
  const int size = context.size, rank = context.rank;
  const bool is_root = rank == args.root;
  auto pairs = std::make_shared<PairBlocks>();
  size_t src_bytes = 0, dst_bytes = 0;
  const void* src = user.src;
  void* dst = user.dst;

  switch (args.kind) {
    case CallKind::kGatherV: {
      UZIP_ASSIGN_OR_RETURN(src_bytes, total_bytes(user.count, 1, args.type));
      pairs->sent = single_block(user.count, args.root, size);
      pairs->received = single_block(0, -1, size);
      if (!is_root) {
        dst = nullptr;
        break;
      }
      UZIP_ASSIGN_OR_RETURN(pairs->received, read_blocks("counts", user.counts, user.displs, context, args, &dst_bytes));
      if (src != UZIP_IN_PLACE) break;
      keep_own_block(*pairs, rank);
      src = nullptr;
      src_bytes = 0;
      break;
    }
    case CallKind::kScatterV: {
      UZIP_ASSIGN_OR_RETURN(dst_bytes, total_bytes(user.count, 1, args.type));
      pairs->received = single_block(user.count, args.root, size);
      pairs->sent = single_block(0, -1, size);
      if (!is_root) {
        src = nullptr;
        break;
      }
      UZIP_ASSIGN_OR_RETURN(pairs->sent, read_blocks("counts", user.counts, user.displs, context, args, &src_bytes));
      if (dst != UZIP_IN_PLACE) break;
      keep_own_block(*pairs, rank);
      dst = nullptr;
      dst_bytes = 0;
      break;
    }
    default: {
      UZIP_ASSIGN_OR_RETURN(pairs->received, read_blocks("counts", user.counts, user.displs, context, args, &dst_bytes));
      args.in_place = src == UZIP_IN_PLACE;
      if (args.in_place) {
        pairs->sent = pairs->received;
        src = dst;
        src_bytes = 0;
      } else {
        UZIP_ASSIGN_OR_RETURN(pairs->sent, read_blocks("src_counts", user.src_counts, user.src_displs, context, args,
                                                       &src_bytes));
      }
    }
  }
  UZIP_RETURN_IF_ERROR(check_own_block(*pairs, context, args));
  UZIP_RETURN_IF_ERROR(check_buffer(src, src_bytes, "src"));
  UZIP_RETURN_IF_ERROR(check_buffer(dst, dst_bytes, "dst"));
  args.src = static_cast<const std::byte*>(src);
  args.dst = static_cast<std::byte*>(dst);
  // Blocks with places of their own may lie between each other.
  const bool packed = !user.displs && !user.src_displs;
  if (packed && !args.in_place) UZIP_RETURN_IF_ERROR(check_disjoint(args, src_bytes, dst_bytes));
  args.src_bytes = src_bytes;
  args.dst_bytes = dst_bytes;
  args.count = std::accumulate(pairs->sent.counts.begin(), pairs->sent.counts.end(), size_t{0});
  args.pairs = std::move(pairs);
  return Status();
}

}  // namespace uzip
