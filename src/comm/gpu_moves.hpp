// Collectives that only move elements, as messages between the GPUs of a host: which each rank sends and receives, in an
// order in which nobody waits in a circle. Used by GpuPeers.
#pragma once

#include "comm/coll_args.hpp"

#include <cstddef>

namespace uzip {

/// One step of such a call, at one rank. In step s of 1 ... size - 1 each rank sends to the one s after it, and receives from
/// the one s before it, if they have something for one another.
struct GpuMove {
  int to = -1, from = -1;          ///< -1: nobody
  const std::byte* src = nullptr;  ///< `count` elements of the call
  std::byte* dst = nullptr;
};

/// Whether it is carried out so.
bool moves_only(CallKind kind);
GpuMove move_at(const CollArgs& args, int rank, int size, int step);
/// What stays here, if it has to move: `src` to `dst`, or nulls.
GpuMove own_move(const CollArgs& args, int rank);

}  // namespace uzip
