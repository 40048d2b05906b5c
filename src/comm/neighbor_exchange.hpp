// The exchange with neighbours (uzip_neighbor_alltoallv): each rank sends a block to each of some ranks and receives
// one from each of some, straight to its place. The two ends of a block know only each other, so everything that they
// must agree on follows from the block's size and from facts that are the same on all ranks.
#pragma once

#include "algos/schedule.hpp"
#include "base/datatype.hpp"
#include "base/status.hpp"

#include <uzipcoll/uzipcoll.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace uzip {

struct CallContext;
class Plan;

/// One block: where it lies in the caller's buffer, and the other rank.
struct NeighborBlock {
  int peer = 0;
  size_t count = 0;   ///< elements
  size_t offset = 0;  ///< elements
  size_t chunk = 1;   ///< elements in one round; set by divide()

  bool operator==(const NeighborBlock& other) const {
    return peer == other.peer && count == other.count && offset == other.offset;
  }
  size_t length(uint32_t round) const;  ///< elements of it in this round
};

/// All blocks of one rank's call.
struct Neighborhood {
  std::vector<NeighborBlock> sends, receives;

  /// What the call's arguments, already checked, say.
  static Neighborhood read(const uzip_neighbors_t& user);
  bool matches(const uzip_neighbors_t& user) const;
  bool operator==(const Neighborhood&) const = default;

  /// Divides the blocks among rounds of `chunk` elements of a block at most; returns how many rounds there are.
  size_t divide(size_t chunk);

  /// What two ranks compare of all blocks from one to the other: the elements in one block, of several a digest.
  uint64_t sent_to(int peer) const;
  uint64_t received_from(int peer) const;

 private:
  /// [peer, what they compare], ascending
  std::vector<std::pair<int, uint64_t>> sent_, received_;
};

/// Checks what can be wrong: sizes, ranks, counts, and that no place is received to twice or sent from as well.
Status check_neighbors(const uzip_neighbors_t* user, const void* src, const void* dst, DataType type,
                       const CallContext& context);

/// The schedule of one round. Slices of kInput and kOutput are counted without gaps, block after block;
/// `begins` receives where each block begins so: [kInput], [kOutput].
Schedule build_neighbor_round(const Plan& plan, uint32_t round, int rank, std::vector<size_t> begins[2]);

}  // namespace uzip
