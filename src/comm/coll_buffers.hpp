// Checks a call's counts and buffers and finds out whether it is in place. Used by coll_args.cpp and recent_calls.cpp.
#pragma once

#include "comm/coll_args.hpp"

#include <cstdint>

namespace uzip {

inline bool overlap(const void* a, size_t a_bytes, const void* b, size_t b_bytes) {
  const auto x = reinterpret_cast<uintptr_t>(a), y = reinterpret_cast<uintptr_t>(b);
  return a_bytes && b_bytes && x < y + b_bytes && y < x + a_bytes;
}

/// Bytes of count * blocks elements, which must be addressable.
Result<size_t> total_bytes(size_t count, size_t blocks, DataType type);

/// A buffer of `bytes` bytes must be there. `name` is "src" or "dst".
Status check_buffer(const void* buffer, size_t bytes, const char* name);

/// args.src and args.dst must not overlap.
Status check_disjoint(const CollArgs& args, size_t src_bytes, size_t dst_bytes);

/// Fills in count, counts, src, dst, in_place and result_moves; kind, type and root are there already.
Status bind_buffers(const uzip_coll_args_t& user, const CallContext& context, CollArgs& args);

}  // namespace uzip
