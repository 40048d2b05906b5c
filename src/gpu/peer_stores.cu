// Calls by a store kernel, on the caller's stream.
#include "gpu/peer_kernels.hpp"
#include "gpu/peer_launch.hpp"
#include "gpu/peer_store_kernel.hpp"

#include <algorithm>

namespace uzip::gpu {
namespace {

template <int kType>
__global__ void __launch_bounds__(kStoreThreads)
    store_kernel(const UZIP_KERNEL_ARGUMENT StoreArgs args) {
  __shared__ StepTiles tiles;
  StoreExchange<kType, true>(args, tiles).run();
}

/// Calls that reduce nothing, of any type. A processor has room for two thread blocks: messages in
/// both directions are at work at a time.
__global__ void __launch_bounds__(kStoreThreads, 2)
    move_kernel(const UZIP_KERNEL_ARGUMENT StoreArgs args) {
  __shared__ StepTiles tiles;
  StoreExchange<UZIP_UINT8, false>(args, tiles).run();
}

template <int kType>
struct StoreKernel {
  static Error launch(const StoreArgs& args, unsigned blocks, Stream stream) {
    store_kernel<kType><<<blocks, kStoreThreads, 0, stream>>>(args);
    return take_error();
  }
  static Error load() { return load_kernel(store_kernel<kType>); }
};
constexpr const auto& kKernels = kPeerKernels<StoreKernel, StoreArgs>;

/// The ring by which `from` stores for `owner`, one of which is this rank.
TileRing ring_between(PeerGroup& group, PeerRing ring, int owner, int from, uint64_t sequence) {
  const PeerLayout& layout = group.layout();
  return make_ring(group.region(owner) + layout.store_tiles_at(ring, owner, from),
                   group.region(owner) + layout.store_ready_at(ring, owner, from),
                   group.region(from) + layout.store_credit_at(ring, from, owner), sequence);
}

void open_port(PeerGroup& group, const PeerCall& call, int rank, StoreArgs& args) {
  PeerLane& lane = group.lane(rank);
  StorePort* const port = &args.ports[rank];
  const uint64_t rounds = args.rounds;
  const int own = group.rank();
  if (sends_pair(call, own, own, rank)) {
    port->push = ring_between(group, kPairRing, rank, own, lane.tiles_sent);
    lane.tiles_sent += rounds;
    group.wire_bytes += args.chunks[rank].bytes;
  }
  if (sends_pair(call, own, rank, own)) {
    port->take = ring_between(group, kPairRing, own, rank, lane.tiles_taken);
    lane.tiles_taken += rounds;
  }
  if (gathers(call.coll)) {
    port->share = ring_between(group, kShareRing, rank, own, group.tiles_shared);
    port->collect = ring_between(group, kShareRing, own, rank, lane.tiles_collected);
    lane.tiles_collected += rounds;
    group.wire_bytes += args.chunks[own].bytes;
  }
}

}  // namespace

int load_store_kernels() {
  for (const auto& kernel : kKernels) UZIP_CHECK(kernel.load(), "a kernel between ranks");
  UZIP_CHECK(load_kernel(move_kernel), "a kernel between ranks");
  return 0;
}

bool is_stored(const PeerGroup& group, const PeerCall& call) {
  if (call.compress) return false;
  constexpr uint64_t kMostStored = 32 << 20;  // as measured on two H200
  const uint64_t most =
      group.options().most_stored == 0 ? kMostStored : group.options().most_stored;
  return chunk_bytes(group, call) < most;
}

int start_stores(PeerGroup& group, const PeerCall& call, Stream stream, uint64_t ticket) {
  const uint64_t element = datatype_size(static_cast<DataType>(call.type));
  StoreArgs args{};
  uint64_t most = 0;
  for (int rank = 0; rank < group.ranks(); ++rank) {
    const ElementRange range = chunk_of_rank(group, call, rank, 16);
    StoreChunk& chunk = args.chunks[rank];
    chunk = {range.first * element, range.count * element};
    most = std::max(most, chunk.bytes);
  }
  args.slot_bytes = group.layout().store_tile_bytes();
  // Always as many blocks: their rings count alike.
  const unsigned blocks = group.store_blocks();
  const uint64_t share = ((most + blocks - 1) / blocks + 255) / 256 * 256;
  args.tile_bytes = std::min(share, args.slot_bytes);
  const uint64_t step = args.tile_bytes * blocks;
  args.rounds = static_cast<uint32_t>((most + step - 1) / step);
  for (int rank = 0; rank < group.ranks(); ++rank)
    if (rank != group.rank()) open_port(group, call, rank, args);
  if (gathers(call.coll)) group.tiles_shared += args.rounds;

  describe_call(group, call, args.chunks[group.rank()].begin, ticket, args);
  if (reduces(call.coll))
    return check(kKernels[call.type].launch(args, blocks, stream), "start of a call between ranks");
  move_kernel<<<blocks, kStoreThreads, 0, stream>>>(args);
  return check(take_error(), "start of a call between ranks");
}

}  // namespace uzip::gpu
