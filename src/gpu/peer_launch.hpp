// What calls by one kernel have in common when they are started: whether their tiles are coded or not. Host code of the plugin
// only.
#pragma once

#include "base/datatype.hpp"
#include "gpu/peer_group.hpp"
#include "gpu/peer_tiles.hpp"

namespace uzip::gpu {

/// The elements that others send a rank, or that it sends all others. Of a shared vector: whole tiles of `tile` elements.
inline ElementRange chunk_of_rank(const PeerGroup& group, const PeerCall& call, int rank, uint64_t tile) {
  if (call.coll == PeerColl::kAllreduce) return chunk_of(call.count, group.ranks(), rank, tile);
  const bool blocks = call.coll == PeerColl::kReduceScatter || call.coll == PeerColl::kAllgather;
  return {blocks ? static_cast<uint64_t>(rank) * call.count : 0, call.count};
}

/// Bytes of about the largest chunk, by which ways are chosen.
inline uint64_t chunk_bytes(const PeerGroup& group, const PeerCall& call) {
  const uint64_t bytes = call.count * datatype_size(static_cast<DataType>(call.type));
  return call.coll == PeerColl::kAllreduce ? bytes / static_cast<uint64_t>(group.ranks()) : bytes;
}

/// A ring whose slots are at `tiles`. Each word is where it is waited for: `arrived` at the owner, `returned` at the sender.
inline TileRing make_ring(uint8_t* tiles, uint8_t* arrived, uint8_t* returned, uint64_t sequence) {
  return {tiles, reinterpret_cast<uint64_t*>(arrived), reinterpret_cast<uint64_t*>(returned), sequence};
}

/// Fills in what StoreArgs and CodedArgs both say of a call. `own`: where this rank's chunk begins, in bytes.
template <class Args>
void describe_call(PeerGroup& group, const PeerCall& call, uint64_t own, uint64_t ticket, Args& args) {
  args.src = static_cast<const uint8_t*>(call.src);
  args.dst = static_cast<uint8_t*>(call.dst);
  args.own = args.src + (reduces(call.coll) ? own : 0);
  if (!is_message(call.coll)) args.own_result = args.dst + (gathers(call.coll) ? own : 0);
  args.op = call.op;
  const bool is_root = call.coll == PeerColl::kReduce && call.peer == group.rank();
  args.pushes = (reduces(call.coll) && !is_root) || call.coll == PeerColl::kSend;
  args.combines = call.coll == PeerColl::kReduce ? is_root : call.coll != PeerColl::kSend;
  args.pulls = gathers(call.coll);
  args.average_over = call.average_over;
  args.deadline_ns = group.options().deadline_ns;
  args.end = group.call_end(ticket);
}

}  // namespace uzip::gpu
