#include "comm/gpu_moves.hpp"

namespace uzip {
namespace {

size_t block_bytes(const CollArgs& args) { return args.count * datatype_size(args.type); }

/// Whether the buffer has a block for each rank, or one.
bool sends_blocks(CallKind kind) { return kind == CallKind::kScatter || kind == CallKind::kAlltoall; }
bool receives_blocks(CallKind kind) { return kind == CallKind::kGather || kind == CallKind::kAlltoall; }

bool sends_to(const CollArgs& args, int rank, int to) {
  switch (args.kind) {
    case CallKind::kBcast:
    case CallKind::kScatter: return rank == args.root;
    case CallKind::kGather: return to == args.root;
    default: return true;
  }
}

const std::byte* source_for(const CollArgs& args, int rank) {
  return args.src + (sends_blocks(args.kind) ? static_cast<size_t>(rank) * block_bytes(args) : 0);
}
std::byte* place_for(const CollArgs& args, int rank) {
  return args.dst + (receives_blocks(args.kind) ? static_cast<size_t>(rank) * block_bytes(args) : 0);
}

}  // namespace

bool moves_only(CallKind kind) {
  return kind == CallKind::kBcast || kind == CallKind::kScatter || kind == CallKind::kGather || kind == CallKind::kAlltoall;
}

GpuMove move_at(const CollArgs& args, int rank, int size, int step) {
  GpuMove move;
  const int to = (rank + step) % size;
  const int from = (rank + size - step) % size;
  if (sends_to(args, rank, to)) {
    move.to = to;
    move.src = source_for(args, to);
  }
  if (sends_to(args, from, rank)) {
    move.from = from;
    move.dst = place_for(args, from);
  }
  return move;
}

GpuMove own_move(const CollArgs& args, int rank) {
  GpuMove move;
  if (!sends_to(args, rank, rank)) return move;
  move.src = source_for(args, rank);
  move.dst = place_for(args, rank);
  return move.src == move.dst ? GpuMove() : move;
}

}  // namespace uzip
