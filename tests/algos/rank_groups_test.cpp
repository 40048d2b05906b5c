// Nested groups of ranks: who speaks for whom, and that all ranks of a group see it alike.
#include "algos/rank_groups.hpp"

#include "algos/collective_cases.hpp"
#include "algos/group_exchange.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace uzip {
namespace {

using Ranks = std::vector<int>;

Shape shape_of(std::vector<int> hosts, std::vector<int> sockets) {
  Shape shape = even_shape(Coll::kAllreduce, static_cast<int>(std::max(hosts.size(), sockets.size())), 100);
  shape.hosts = std::move(hosts);
  shape.sockets = std::move(sockets);
  return shape;
}

TEST(RankGroups, NestSocketsInHosts) {
  // Host 5 has the sockets {0, 2} and {1, 6}, the second of which leads; host 3 has one socket.
  const Shape shape = shape_of({5, 5, 5, 3, 3, 3, 5}, {1, 0, 1, 0, 0, 0, 0});
  const RankGroups of_two(shape, 2);
  ASSERT_EQ(of_two.levels().size(), 3u);
  const GroupLevel &socket = of_two.levels()[0], &host = of_two.levels()[1], &all = of_two.levels()[2];
  EXPECT_EQ(socket.parts, (std::vector<Ranks>{{0}, {2}}));
  EXPECT_EQ(host.parts, (std::vector<Ranks>{{1, 6}, {0, 2}}));
  EXPECT_EQ(all.parts, (std::vector<Ranks>{{1, 0, 6, 2}, {3, 4, 5}}));
  EXPECT_EQ(host.own, 1);
  EXPECT_EQ(host.speaker(0, 2), 6);
  EXPECT_EQ(host.speaker(1, 2), 2);
  EXPECT_EQ(all.speaker(1, 2), 3);  // the fourth of three
  EXPECT_EQ(all.leader(0, 4), 1);
  EXPECT_EQ(all.leader(1, 4), 4);
  EXPECT_TRUE(all.between_hosts);
  EXPECT_FALSE(host.between_hosts || socket.between_hosts);
  EXPECT_EQ(of_two.in_turn(), (Ranks{1, 3, 0, 4, 6, 5, 2}));
  EXPECT_EQ(of_two.speaker(0, 4), 0);  // 4 is the second of its host, 0 of this one, and of this socket
  EXPECT_EQ(RankGroups(shape, 4).levels().size(), 2u);
}

TEST(RankGroups, LeaveOutGroupsOfOne) {
  EXPECT_EQ(RankGroups(shape_of({0, 0, 0}, {}), 1).levels().size(), 1u);
  EXPECT_EQ(RankGroups(shape_of({0, 1, 2}, {0, 0, 0}), 1).levels().size(), 1u);
  EXPECT_EQ(RankGroups(shape_of({}, {0, 1, 1}), 0).levels().size(), 1u);
  EXPECT_EQ(RankGroups(shape_of({}, {0, 1, 1}), 1).levels().size(), 2u);
  const RankGroups alone(shape_of({}, {0}), 0);
  ASSERT_EQ(alone.levels().size(), 1u);
  EXPECT_EQ(alone.levels()[0].parts, (std::vector<Ranks>{{0}}));
}

TEST(RankGroups, AreTheSameForAllTheirRanks) {
  for (int size = 1; size <= 17; ++size) {
    for (const Shape& shape : awkward_shapes(Coll::kAllgather, size)) {
      std::vector<RankGroups> groups;
      for (int rank = 0; rank < size; ++rank) groups.emplace_back(shape, rank);
      for (const RankGroups& one : groups) {
        EXPECT_EQ(std::set<int>(one.in_turn().begin(), one.in_turn().end()).size(), static_cast<size_t>(size));
        for (size_t number = 0; number < one.levels().size(); ++number) {
          const size_t from_top = one.levels().size() - number;
          for (const Ranks& part : one.levels()[number].parts) {
            for (int rank : part) {
              const RankGroups& other = groups[static_cast<size_t>(rank)];
              ASSERT_GE(other.levels().size(), from_top);
              const size_t same = other.levels().size() - from_top;
              ASSERT_EQ(other.levels()[same].parts, one.levels()[number].parts);
              for (int owner = 0; owner < size; ++owner) ASSERT_EQ(other.speaker(same, owner), one.speaker(number, owner));
            }
          }
        }
      }
    }
  }
}

TEST(RankGroups, AdjacentPiecesHaveOneSpeaker) {
  Shape shape = even_shape(Coll::kAllreduce, 24, 240);
  for (int rank = 0; rank < 24; ++rank) {
    shape.hosts.push_back(rank / 12);
    shape.sockets.push_back(rank / 4 % 3);
  }
  const RankGroups groups(shape, 6);
  const std::vector<OwnedPiece> pieces = divide_in_turn(groups, Slot::kInput, 240);
  int changes = 0;
  for (size_t i = 1; i < pieces.size(); ++i) changes += groups.speaker(0, pieces[i].owner) != groups.speaker(0, pieces[i - 1].owner);
  EXPECT_EQ(changes, 3);  // each of the socket's four ranks speaks for a quarter of the vector
  EXPECT_EQ(pieces.back().slice.offset + pieces.back().slice.length, 240u);
}

TEST(RankGroups, SizesAreOfHostsAndSockets) {
  const Shape shape = shape_of({0, 0, 0, 1, 1, 1, 0}, {1, 0, 1, 0, 0, 0, 1});
  EXPECT_EQ(host_sizes(shape).count, 2);
  EXPECT_EQ(host_sizes(shape).smallest, 3);
  EXPECT_EQ(host_sizes(shape).largest, 4);
  EXPECT_EQ(socket_sizes(shape).count, 3);
  EXPECT_EQ(socket_sizes(shape).smallest, 1);
  EXPECT_EQ(socket_sizes(shape).largest, 3);
}

}  // namespace
}  // namespace uzip
