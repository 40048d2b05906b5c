#include "gpu/peer_layout.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace uzip::gpu {
namespace {

constexpr uint64_t kMemory = 164'000'000;

/// All that a rank's region holds besides its flags, as begin and end.
std::vector<std::pair<uint64_t, uint64_t>> parts_of(const PeerLayout& layout, int owner,
                                                    int ranks) {
  std::vector<std::pair<uint64_t, uint64_t>> parts;
  const auto add_outbox = [&](uint64_t at) { parts.push_back({at, at + layout.outbox_bytes()}); };
  for (int other = 0; other < ranks; ++other) {
    if (other == owner) continue;
    for (unsigned i = 0; i < kSmallSlots; ++i) {
      const uint64_t at = layout.small_at(owner, other, i);
      parts.push_back({at, at + 2 * layout.small_bytes()});
    }
    for (const PeerRing ring : {kPairRing, kShareRing}) {
      constexpr uint64_t kTiles = kStoreBlocks * kStoreDepth;
      const uint64_t tiles = layout.store_tiles_at(ring, owner, other);
      parts.push_back({tiles, tiles + kTiles * layout.store_tile_bytes()});
      for (const uint64_t at :
           {layout.store_ready_at(ring, owner, other), layout.store_credit_at(ring, owner, other)})
        parts.push_back({at, at + kTiles * sizeof(uint64_t)});
      const uint64_t coded = layout.coded_at(ring, owner, other);
      parts.push_back({coded, coded + layout.coded_slots() * kCodedSlotBytes});
      for (const uint64_t at :
           {layout.coded_ready_at(ring, owner, other), layout.coded_credit_at(ring, owner, other)})
        parts.push_back({at, at + layout.coded_slots() * sizeof(uint64_t)});
    }
    for (unsigned i = 0; i < layout.depth(); ++i) {
      const uint64_t inbox = layout.inbox_at(owner, other, i);
      parts.push_back({inbox, inbox + layout.inbox_bytes()});
      add_outbox(layout.outbox_at(owner, other, i));
      EXPECT_EQ(inbox + layout.slot_bytes(),
                layout.outbox_at(owner, other, i) + layout.outbox_bytes());
    }
    if (ranks > 2) add_outbox(layout.scratch_at(owner, other));
  }
  if (ranks > 2)
    for (unsigned i = 0; i < layout.depth(); ++i) add_outbox(layout.shared_outbox_at(i));
  return parts;
}

TEST(PeerLayout, PartsNeitherOverlapNorLeaveTheRegion) {
  for (const int ranks : {2, 3, 4, 8, kMostPeerRanks})
    for (const unsigned depth : {1u, 2u, 3u, 5u}) {
      const PeerLayout layout(ranks, depth, kMemory, kMemory);
      ASSERT_GT(layout.slot_bytes(), 0u);
      ASSERT_LE(layout.bytes(), kMemory);
      for (int owner = 0; owner < ranks; ++owner) {
        auto parts = parts_of(layout, owner, ranks);
        std::sort(parts.begin(), parts.end());
        uint64_t end = PeerLayout::faults_at() + sizeof(PeerFaults);
        for (const auto& [from, to] : parts) {
          ASSERT_GE(from, end) << ranks << " ranks, owner " << owner;
          ASSERT_EQ(from % 64, 0u);
          end = to;
        }
        ASSERT_LE(end, layout.bytes());
        // What one rank does not use would be missing to all.
        ASSERT_GT(end + std::max<uint64_t>(layout.slot_bytes(), 2 << 20), layout.bytes());
        // Memory of another size is slow to copy to from other processes.
        ASSERT_EQ(layout.bytes() % (2 << 20), 0u);
      }
    }
}

TEST(PeerLayout, SequencesGoRound) {
  const PeerLayout layout(3, 4, kMemory, kMemory);
  EXPECT_EQ(layout.inbox_at(0, 2, 1), layout.inbox_at(0, 2, 5));
  EXPECT_NE(layout.inbox_at(0, 2, 1), layout.inbox_at(0, 2, 2));
  EXPECT_EQ(layout.small_at(1, 2, 3), layout.small_at(1, 2, 3 + kSmallSlots));
}

TEST(PeerLayout, LittleMemoryMakesFewSlotsThatAreNotTooSmall) {
  EXPECT_EQ(suitable_depth(2, uint64_t{156} << 20), 4u);
  EXPECT_EQ(suitable_depth(2, uint64_t{384} << 20), 6u);
  EXPECT_EQ(suitable_depth(8, uint64_t{384} << 20), 4u);
  const PeerLayout layout(2, suitable_depth(2, kMemory), kMemory, kMemory);
  EXPECT_GE(layout.slot_bytes(), uint64_t{20} << 20);
}

TEST(PeerLayout, TooLittleMemoryLeavesNoSlots) {
  EXPECT_EQ(PeerLayout(2, 3, 1000, kMemory).slot_bytes(), 0u);
  EXPECT_EQ(PeerLayout(2, 3, kMemory, 1 << 20).inbox_bytes(), uint64_t{1} << 20);
}

TEST(Chunks, CoverTheVectorInTiles) {
  constexpr uint64_t kTile = 8192;
  for (const int ranks : {2, 3, 7})
    for (const uint64_t count :
         {uint64_t{0}, uint64_t{1}, kTile, kTile + 1, 5 * kTile - 3, 1000 * kTile + 77}) {
      uint64_t next = 0;
      uint64_t most = 0;
      uint64_t least = ~uint64_t{0};
      for (int rank = 0; rank < ranks; ++rank) {
        const ElementRange chunk = chunk_of(count, ranks, rank, kTile);
        ASSERT_EQ(chunk.first, next);
        ASSERT_TRUE(chunk.first % kTile == 0 || chunk.count == 0);
        next += chunk.count;
        most = std::max(most, chunk.count);
        least = std::min(least, chunk.count);
      }
      ASSERT_EQ(next, count);
      ASSERT_LE(most - least, 2 * kTile);
    }
}

TEST(PieceSizes, GrowAndShrinkAndCoverTheChunk) {
  constexpr uint64_t kTile = 8192;
  const PieceSizes sizes{4 * kTile, 32 * kTile, kTile};
  for (const uint64_t count :
       {uint64_t{1}, 4 * kTile, 4 * kTile + 1, 64 * kTile, 1000 * kTile + 5}) {
    std::vector<uint64_t> counts;
    for (uint64_t done = 0; done < count;) {
      const ElementRange piece = sizes.at(done, count);
      ASSERT_EQ(piece.first, done);
      ASSERT_GT(piece.count, 0u);
      ASSERT_LE(piece.count, sizes.most);
      done += piece.count;
      ASSERT_TRUE(done == count || piece.count % kTile == 0);
      counts.push_back(piece.count);
    }
    EXPECT_LE(counts.front(), sizes.least);
    EXPECT_LE(counts.back(), sizes.least + kTile);
    const uint64_t largest = *std::max_element(counts.begin(), counts.end());
    EXPECT_TRUE(largest == sizes.most || count < 1000 * kTile);
    EXPECT_EQ(sizes.at(count, count).count, 0u);
  }
}

}  // namespace
}  // namespace uzip::gpu
