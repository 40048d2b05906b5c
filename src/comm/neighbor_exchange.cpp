#include "comm/neighbor_exchange.hpp"

#include "algos/schedule_builder.hpp"
#include "base/fnv1a.hpp"
#include "comm/coll_args.hpp"
#include "comm/plan.hpp"
#include "comm/struct_size.hpp"

#include <algorithm>
#include <tuple>

namespace uzip {
namespace {

/// Pieces of a block begin at multiples of this many elements, so that codec blocks start aligned.
constexpr size_t kChunkAlignment = 64;

std::vector<NeighborBlock> read_blocks(int n, const int* peers, const size_t* counts, const size_t* offsets) {
  std::vector<NeighborBlock> blocks(static_cast<size_t>(n));
  size_t packed = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    blocks[i] = {peers[i], counts[i], offsets ? offsets[i] : packed, 1};
    packed += counts[i];
  }
  return blocks;
}

bool same_blocks(const std::vector<NeighborBlock>& blocks, int n, const int* peers, const size_t* counts,
                 const size_t* offsets) {
  if (blocks.size() != static_cast<size_t>(n)) return false;
  size_t packed = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (!(blocks[i] == NeighborBlock{peers[i], counts[i], offsets ? offsets[i] : packed, 1})) return false;
    packed += counts[i];
  }
  return true;
}

/// Of all blocks with one peer: the count of a single one, else a digest (FNV-1a) of the counts.
std::vector<std::pair<int, uint64_t>> compared(const std::vector<NeighborBlock>& blocks) {
  std::vector<std::pair<int, size_t>> counts;
  for (const NeighborBlock& block : blocks) counts.emplace_back(block.peer, block.count);
  std::stable_sort(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::pair<int, uint64_t>> result;
  for (size_t i = 0; i < counts.size();) {
    const int peer = counts[i].first;
    const size_t first = i;
    Fnv1a digest;
    for (; i < counts.size() && counts[i].first == peer; ++i) digest.add(uint64_t{counts[i].second});
    result.emplace_back(peer, i == first + 1 ? counts[first].second : digest.value());
  }
  return result;
}

/// UINT64_MAX, which no block can have, if there is none.
uint64_t find_compared(const std::vector<std::pair<int, uint64_t>>& all, int peer) {
  const auto found = std::lower_bound(all.begin(), all.end(), std::pair(peer, uint64_t{0}));
  return found != all.end() && found->first == peer ? found->second : UINT64_MAX;
}

/// A block's place in memory.
struct Place {
  uintptr_t begin, end;
  bool written;
  size_t index;  // in its list
};

Status add_places(const char* list, int n, const int* peers, const size_t* counts, const size_t* offsets,
                  const void* buffer, DataType type, int size, std::vector<Place>* places) {
  const bool written = list[0] == 's' && list[1] == 'o';  // sources are received from
  if (n < 0) return error(UZIP_ERR_INVALID, "neighbor_alltoallv: %d %s; allowed are 0 and more", n, list);
  if (n > 0 && (!peers || !counts))
    return error(UZIP_ERR_INVALID, "neighbor_alltoallv: the %s or their counts are NULL; both must have %d entries",
                 list, n);
  const size_t element = datatype_size(type), most = static_cast<size_t>(PTRDIFF_MAX) / element;
  size_t packed = 0;
  for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
    if (peers[i] < 0 || peers[i] >= size)
      return error(UZIP_ERR_INVALID, "neighbor_alltoallv: rank %d, entry %zu of the %s, does not exist; the "
                                     "communicator has ranks 0 to %d", peers[i], i, list, size - 1);
    const size_t offset = offsets ? offsets[i] : packed;
    if (counts[i] > most || offset > most - counts[i])
      return error(UZIP_ERR_INVALID, "neighbor_alltoallv: %zu elements at %zu, entry %zu of the %s, is more than "
                                     "memory can hold; a negative number?", counts[i], offset, i, list);
    packed = offset + counts[i];
    if (counts[i] == 0) continue;
    if (!buffer || buffer == UZIP_IN_PLACE)
      return error(UZIP_ERR_INVALID, "neighbor_alltoallv: %s is %s but %zu elements are to be %s",
                   written ? "dst" : "src", buffer ? "UZIP_IN_PLACE" : "NULL", counts[i], written ? "written" : "read");
    const uintptr_t begin = reinterpret_cast<uintptr_t>(buffer) + offset * element;
    places->push_back({begin, begin + counts[i] * element, written, i});
  }
  return Status();
}

Status check_places(std::vector<Place> places) {
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) { return a.begin < b.begin; });
  // The one that reaches farthest, of all before, and of those that are written.
  const Place *farthest = nullptr, *farthest_written = nullptr;
  for (const Place& place : places) {
    const Place* other = place.written ? farthest : farthest_written;
    if (other && other->end > place.begin)
      return error(UZIP_ERR_INVALID, "neighbor_alltoallv: %s block %zu and %s block %zu overlap; what is received must "
                                     "have a place of its own", other->written ? "received" : "sent", other->index,
                   place.written ? "received" : "sent", place.index);
    if (!farthest || place.end > farthest->end) farthest = &place;
    if (place.written && (!farthest_written || place.end > farthest_written->end)) farthest_written = &place;
  }
  return Status();
}

/// The blocks that a rank sends to itself are those that it receives from itself.
Status check_own(const uzip_neighbors_t& user, int rank) {
  int source = 0;
  for (int i = 0; i <= user.dest_count; ++i) {
    if (i < user.dest_count && user.dests[i] != rank) continue;
    while (source < user.source_count && user.sources[source] != rank) ++source;
    const bool sends = i < user.dest_count, receives = source < user.source_count;
    if (sends != receives || (sends && user.send_counts[i] != user.recv_counts[source]))
      return error(UZIP_ERR_MISMATCH, "neighbor_alltoallv: rank %d does not send to itself what it receives from "
                                      "itself", rank);
    ++source;
  }
  return Status();
}

/// Slices of one round's blocks, and where they begin.
std::vector<Slice> lay_out(const std::vector<NeighborBlock>& blocks, Slot slot, uint32_t round,
                           std::vector<size_t>* begins) {
  std::vector<Slice> slices;
  size_t begin = 0;
  begins->clear();
  for (const NeighborBlock& block : blocks) {
    slices.push_back({slot, begin, block.length(round)});
    begins->push_back(begin);
    begin += slices.back().length;
  }
  return slices;
}

/// Writes the steps of one round.
class RoundWriter {
 public:
  RoundWriter(const Plan& plan, uint32_t round, int rank)
      : plan_(plan), round_(round), builder_(Shape{.size = plan.shape.size, .counts = {}}, rank) {
    if (plan.split(round)) parts_ = {Part::kPlain, Part::kCoded};
  }
  // An empty block is a message, too, in the first round: so a disagreement is found.
  void send(const NeighborBlock& block, const Slice& slice) {
    if (slice.length == 0) {
      if (block.count == 0 && round_ == 0) builder_.signal(block.peer);
    } else if (!plan_.codes(block.count)) {
      builder_.send(slice, block.peer);
    } else {
      const Slice wire = builder_.wire(slice.length);
      for (Part part : parts_) {
        builder_.encode(slice, wire, part);
        builder_.send_wire(wire, part, block.peer, slice);
      }
    }
  }
  void receive(const NeighborBlock& block, const Slice& slice) {
    if (slice.length == 0) {
      if (block.count == 0 && round_ == 0) builder_.await_signal(block.peer);
    } else if (!plan_.codes(block.count)) {
      builder_.recv(block.peer, slice);
    } else {
      const Slice wire = builder_.wire(slice.length);
      for (Part part : parts_) builder_.recv_wire(block.peer, wire, part);
      builder_.decode(wire, slice);
    }
  }
  void copy(const Slice& from, const Slice& to) { builder_.copy(from, to); }
  Schedule finish() { return builder_.finish(); }

 private:
  const Plan& plan_;
  uint32_t round_;
  ScheduleBuilder builder_;
  std::vector<Part> parts_{Part::kWhole};
};

}  // namespace

size_t NeighborBlock::length(uint32_t round) const {
  const size_t begin = size_t{round} * chunk;
  return count > begin ? std::min(count - begin, chunk) : 0;
}

Neighborhood Neighborhood::read(const uzip_neighbors_t& user) {
  Neighborhood result;
  result.sends = read_blocks(user.dest_count, user.dests, user.send_counts, user.send_offsets);
  result.receives = read_blocks(user.source_count, user.sources, user.recv_counts, user.recv_offsets);
  result.sent_ = compared(result.sends);
  result.received_ = compared(result.receives);
  return result;
}

bool Neighborhood::matches(const uzip_neighbors_t& user) const {
  return same_blocks(sends, user.dest_count, user.dests, user.send_counts, user.send_offsets) &&
         same_blocks(receives, user.source_count, user.sources, user.recv_counts, user.recv_offsets);
}

size_t Neighborhood::divide(size_t chunk) {
  size_t most = sends.empty() && receives.empty() ? 0 : 1;
  for (std::vector<NeighborBlock>* blocks : {&sends, &receives})
    for (NeighborBlock& block : *blocks) {
      // Pieces of nearly the same size: a last one of a few elements would cost as much as a full one.
      const size_t rounds = std::max<size_t>((block.count + chunk - 1) / chunk, 1);
      const size_t even = (block.count + rounds - 1) / rounds;
      block.chunk = std::clamp<size_t>((even + kChunkAlignment - 1) / kChunkAlignment * kChunkAlignment, 1, chunk);
      most = std::max(most, (block.count + block.chunk - 1) / block.chunk);
    }
  return most;
}

uint64_t Neighborhood::sent_to(int peer) const { return find_compared(sent_, peer); }
uint64_t Neighborhood::received_from(int peer) const { return find_compared(received_, peer); }

Status check_neighbors(const uzip_neighbors_t* user, const void* src, const void* dst, DataType type,
                       const CallContext& context) {
  if (!user) return error(UZIP_ERR_INVALID, "neighbor_alltoallv: neighbors is NULL");
  uzip_neighbors_t storage = {};
  UZIP_RETURN_IF_ERROR(read_struct(*user, "uzip_neighbors_t", kFirstNeighborsBytes, storage).status());
  std::vector<Place> places;
  UZIP_RETURN_IF_ERROR(add_places("destinations", user->dest_count, user->dests, user->send_counts,
                                  user->send_offsets, src, type, context.size, &places));
  UZIP_RETURN_IF_ERROR(add_places("sources", user->source_count, user->sources, user->recv_counts, user->recv_offsets, dst,
                                  type, context.size, &places));
  UZIP_RETURN_IF_ERROR(check_own(*user, context.rank));
  return check_places(std::move(places));
}

Schedule build_neighbor_round(const Plan& plan, uint32_t round, int rank, std::vector<size_t> begins[2]) {
  const Neighborhood& neighborhood = plan.shape.neighborhood;
  const std::vector<Slice> inputs = lay_out(neighborhood.sends, Slot::kInput, round, &begins[0]);
  const std::vector<Slice> outputs = lay_out(neighborhood.receives, Slot::kOutput, round, &begins[1]);
  RoundWriter writer(plan, round, rank);
  size_t own = 0;  // of the receives from this rank itself, the next one
  for (size_t i = 0; i < inputs.size(); ++i) {
    const NeighborBlock& block = neighborhood.sends[i];
    if (block.peer != rank) {
      writer.send(block, inputs[i]);
      continue;
    }
    while (neighborhood.receives[own].peer != rank) ++own;
    writer.copy(inputs[i], outputs[own++]);
  }
  for (size_t i = 0; i < outputs.size(); ++i)
    if (neighborhood.receives[i].peer != rank) writer.receive(neighborhood.receives[i], outputs[i]);
  return writer.finish();
}

}  // namespace uzip
