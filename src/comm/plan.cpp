#include "comm/plan.hpp"

#include "base/fnv1a.hpp"

#include <algorithm>

namespace uzip {
namespace {

/// Buffers of this size, those of all ranks of a host, are likely to be in its caches.
constexpr size_t kMostCachedBytes = size_t{16} << 20;

}  // namespace

Shape Plan::round_shape(uint32_t round) const {
  Shape result;
  round_shape(round, result);
  return result;
}

void Plan::round_shape(uint32_t round, Shape& result) const {
  result.coll = coll();
  result.size = shape.size;
  result.in_place = shape.in_place;
  result.root = shape.root;
  result.recv_counts.clear();
  result.hosts = hosts;
  result.sockets = sockets;
  const size_t ranks = static_cast<size_t>(shape.size), begin = size_t{round} * chunk;
  if (point_to_point()) {
    // One message from one rank to another, whoever they are.
    result.size = 2;
    result.counts = {std::min(shape.count - begin, chunk), 0};
  } else if (shape.kind == CallKind::kBarrier) {
    result.counts.assign(ranks, 0);
  } else if (is_of_vectors(result.coll)) {
    result.counts = even_shares(std::min(shape.count - begin * ranks, chunk * ranks), shape.size);
  } else if (shape.counts.empty()) {
    result.counts.assign(ranks, std::min(shape.count - begin, chunk));
  } else {
    const auto cut = [&](const std::vector<size_t>& counts, std::vector<size_t>& part) {
      part.clear();
      for (size_t count : counts) part.push_back(count > begin ? std::min(count - begin, chunk) : 0);
    };
    cut(shape.counts, result.counts);
    cut(shape.recv_counts, result.recv_counts);
  }
}

size_t Plan::block_offset(int rank) const {
  return displacements.empty() ? shape.count * static_cast<size_t>(rank)
                               : displacements[static_cast<size_t>(rank)];
}

size_t Plan::result_bytes() const {
  const size_t blocks = shape.kind == CallKind::kAllgather ? static_cast<size_t>(shape.size) : 1;
  return shape.count * blocks * datatype_size(shape.type);
}

BodyUse Plan::body_use() const {
  const bool per_rank = !point_to_point() && !of_vectors() && shape.counts.empty();
  const size_t bytes = shape.count * datatype_size(shape.type) * static_cast<size_t>(per_rank ? shape.size : 1);
  // A large all-gather goes through the stage, which gets its copy of a rank's own part with the same reading as the result.
  const bool is_staged = streams && shape.kind == CallKind::kAllgather;
  const bool cached = bytes <= kMostCachedBytes && !is_staged;
  return !codec && !is_reduction(shape.kind) && (reads || cached) ? BodyUse::kMoved : BodyUse::kAny;
}

uint16_t Plan::compute_digest() const {
  Fnv1a hash;
  hash.add(std::string_view(algorithm_name()));
  hash.add(uint64_t{codec ? codec->id : kCodecRaw});
  hash.add(uint64_t{chunk});
  hash.add(uint64_t{split_rounds});
  hash.add(static_cast<uint64_t>(shape.root));
  if (!is_pairwise(shape.kind))
    for (size_t count : shape.counts) hash.add(uint64_t{count});
  for (int socket : sockets) hash.add(static_cast<uint64_t>(socket));
  const uint64_t value = hash.value();
  return static_cast<uint16_t>(value ^ value >> 16 ^ value >> 32 ^ value >> 48);
}

const char* Plan::codec_name() const { return codec ? codec->name : "raw"; }

}  // namespace uzip
