// How one call is carried out: algorithm, codec, and how the elements are divided into rounds. A round is a
// small collective of its own over a slice of every block; several are in flight at a time. So memory is bounded
// whatever the size of the call, pieces stay in cache, and schedules are few and cached.
#pragma once

#include "algos/algorithm.hpp"
#include "base/transport.hpp"
#include "comm/coll_args.hpp"
#include "comm/neighbor_exchange.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace uzip {

/// The part of a call that fixes its plan, and with it the bits of the result. Equal on all ranks, but for the counts
/// of pairwise calls: of their plans, what two ranks must agree on does not depend on them.
struct CallShape {
  CallKind kind = CallKind::kBarrier;
  DataType type = UZIP_UINT8;
  bool in_place = false;
  bool ordered = false;         ///< the operation is not commutative: operands in rank order
  int size = 1;
  size_t count = 0;             ///< per rank; the v forms: the sum
  std::vector<size_t> counts;   ///< the v forms only; of the pairwise ones: elements to each rank
  std::vector<size_t> recv_counts;  ///< pairwise v forms: elements from each rank
  int root = 0;                 ///< rooted collectives
  Neighborhood neighborhood;    ///< neighbor_alltoallv only; this rank's own
  CallOptions options;
  bool user_defined = false;    ///< the operation is the program's: it takes elements, not frames
  bool calibrated = false;     ///< a collective that comes after the communicator's calibration, on all ranks

  bool operator==(const CallShape&) const = default;
};

class Plan {
 public:
  CallShape shape;
  const Algorithm* algorithm = nullptr;  ///< nullptr where blocks go straight to where they belong
  const Codec* codec = nullptr;          ///< nullptr: elements leave as they are
  CodecLevel level = CodecLevel::kBalanced;
  size_t codec_threshold = 0;            ///< neighbours only: smaller blocks, in elements, are not coded
  size_t chunk = 1;       ///< elements of one rank's block in one round, > 0
  uint32_t rounds = 0;
  uint32_t window = 1;    ///< rounds in flight
  bool reads = false;         ///< receivers read the senders' memory, however long the messages are
  bool streams = false;       ///< what no later step reads of the result is written past the caches
  uint32_t split_rounds = 0;  ///< the first rounds use split-send
  std::vector<int> hosts;     ///< by rank, if some ranks share a host and others don't; else empty
  std::vector<int> sockets;   ///< by rank, if the algorithm groups the ranks of a host (Shape::sockets); else empty
  std::vector<size_t> displacements;  ///< v forms whose counts all ranks know: where each block begins

  Coll coll() const { return coll_of(shape.kind); }
  bool point_to_point() const { return is_point_to_point(shape.kind); }
  bool with_neighbors() const { return shape.kind == CallKind::kNeighborAlltoallV; }
  /// Whether the call's buffers are vectors that the ranks divide among them in each round.
  bool of_vectors() const { return !point_to_point() && is_of_vectors(coll()); }
  bool split(uint32_t round) const { return codec && round < split_rounds; }
  /// Whether a block of so many elements is coded: both of its ends come to the same. Neighbours only.
  bool codes(size_t count) const { return codec && count >= codec_threshold; }

  /// The shape that the schedule of a round is built for.
  Shape round_shape(uint32_t round) const;
  /// The same into `result`, whose memory is used again.
  void round_shape(uint32_t round, Shape& result) const;
  /// Elements of block `rank` before its part of `round`, and where block `rank` begins in the blocked buffer.
  size_t block_offset(int rank) const;
  /// Bytes that the call leaves at this rank: all of them; of a reduce-scatter and the v forms, at most these.
  size_t result_bytes() const;
  /// What becomes of the elements that a message has.
  BodyUse body_use() const;
  /// Digest for comparing plans between ranks; to be set by whoever made the plan.
  uint16_t digest = 0;
  uint16_t compute_digest() const;
  const char* algorithm_name() const { return algorithm ? algorithm->name : "direct"; }
  const char* codec_name() const;
};

}  // namespace uzip
