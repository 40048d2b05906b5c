#include "comm/recent_calls.hpp"

#include "comm/coll_buffers.hpp"

namespace uzip {
namespace {

bool asks_for_nothing(const uzip_options_t& options) {
  return options.struct_size == sizeof options && !options.algorithm && !options.codec && !options.chunk_bytes &&
         options.split_send == -1 && !options.stream;
}

/// Nothing in it asks for more than buffers, a count, a type and an operation.
bool is_plain(const uzip_coll_args_t& user) {
  return user.struct_size == sizeof user && (!user.options || asks_for_nothing(*user.options)) &&
         (!user.info || user.info->struct_size == sizeof *user.info);
}

/// Where the source of a call begins that is in place, from its destination.
ptrdiff_t source_offset(const CollArgs& args) { return args.src ? args.src - args.dst : 0; }

/// Whether it is in place in the way of `kept`, which is.
bool is_in_place(const uzip_coll_args_t& user, const CollArgs& kept) {
  return user.src == UZIP_IN_PLACE || user.src == static_cast<const std::byte*>(user.dst) + source_offset(kept);
}

/// Has one buffer, for the whole result, on all ranks.
bool has_one_buffer(const uzip_coll_args_t& user, const CollArgs& args) {
  if (args.kind == CallKind::kBcast) return user.src == user.dst;
  return args.in_place && (args.kind == CallKind::kAllreduce || args.kind == CallKind::kAllgather);
}

bool is_apart(const uzip_coll_args_t& user, const CollArgs& kept) {
  return user.src != UZIP_IN_PLACE && !overlap(user.src, kept.src_bytes, user.dst, kept.dst_bytes);
}

bool are_buffers(const uzip_coll_args_t& user) {
  return user.src && user.dst && user.dst != UZIP_IN_PLACE;
}

}  // namespace

void RecentCalls::keep(const uzip_coll_args_t& user, const CollArgs& args, const std::shared_ptr<PreparedPlan>& plan) {
  const bool one_buffer = has_one_buffer(user, args);
  const bool two_buffers = !args.in_place && !args.result_moves && args.src && args.dst && args.kind != CallKind::kBcast;
  if (!plan->direct || !is_plain(user) || !(one_buffer || two_buffers) || args.user_op || args.device >= 0 || args.stream ||
      find(user))
    return;
  calls_[next_] = {user, args, plan, one_buffer};
  next_ = (next_ + 1) % calls_.size();
}

const RecentCalls::Call* RecentCalls::find(const uzip_coll_args_t& user) const {
  if (!is_plain(user) || !are_buffers(user)) return nullptr;
  for (const Call& call : calls_) {
    if (!call.plan || call.user.count != user.count || call.user.coll != user.coll || call.user.dtype != user.dtype ||
        call.user.op != user.op || call.user.root != user.root)
      continue;
    if (call.one_buffer ? is_in_place(user, call.args) : is_apart(user, call.args)) return &call;
  }
  return nullptr;
}

CollArgs RecentCalls::with_buffers_of(const uzip_coll_args_t& user, const Call& call) {
  CollArgs args = call.args;
  args.dst = static_cast<std::byte*>(user.dst);
  if (!call.one_buffer) args.src = static_cast<const std::byte*>(user.src);
  else if (call.args.src) args.src = args.dst + source_offset(call.args);
  args.info = user.info;
  return args;
}

}  // namespace uzip
