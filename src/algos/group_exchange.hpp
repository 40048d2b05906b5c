// Reduction and distribution over nested groups, from the ranks of a socket to the hosts and back: what the hierarchical
// algorithms have in common. Each value crosses the border of a group once.
//   M. Cho, U. Finkler, D. Kung, H. Hunter: BlueConnect: Decomposing All-Reduce for Deep Learning on Heterogeneous Network
//   Hierarchy, MLSys 2019.
#pragma once

#include "algos/rank_groups.hpp"
#include "algos/schedule_builder.hpp"

#include <vector>

namespace uzip {

/// A part of a buffer, and the rank where its reduction ends or its distribution begins.
struct OwnedPiece {
  int owner;
  Slice slice;
};

/// A vector of `total` elements, divided among all ranks; place k of the result is that of groups.in_turn()[k].
std::vector<OwnedPiece> divide_in_turn(const RankGroups& groups, Slot slot, size_t total);
/// That of `rank`.
const OwnedPiece& piece_of(const std::vector<OwnedPiece>& pieces, int rank);

/// Whether adjacent pieces lie in one buffer, and may share a message.
enum class Adjacent : bool { kApart, kTogether };

/// Reduces every piece to its owner. `pieces`: this rank's operands. The sum of its own piece is written to `result`.
void reduce_to_owners(const RankGroups& groups, std::vector<OwnedPiece> pieces, Adjacent adjacent, Slice result,
                      ScheduleBuilder& builder);

/// Brings every piece from its owner to all ranks. `pieces`: where they go; this rank's own is sent from `mine`.
void send_to_all(const RankGroups& groups, const std::vector<OwnedPiece>& pieces, Adjacent adjacent, Slice mine,
                 ScheduleBuilder& builder);

}  // namespace uzip
