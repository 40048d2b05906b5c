// Every algorithm of the registry, proved for many numbers of ranks and elements.
#include "algos/algorithm.hpp"
#include "algos/collective_cases.hpp"
#include "algos/verify.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace uzip {
namespace {

constexpr int kMostRanks = 17;

class AlgorithmTest : public testing::TestWithParam<const Algorithm*> {};

void expect_verified(const Algorithm& algorithm, int size, Form form) {
  for (const Shape& shape : awkward_shapes(algorithm.coll, size)) {
    ASSERT_TRUE(algorithm.supports(shape)) << describe(algorithm, shape, form);
    const Status status = verify(build_schedules(algorithm, shape, form), shape, 1, 1, algorithm.in_rank_order);
    ASSERT_TRUE(status.ok()) << describe(algorithm, shape, form) << "\n" << status.message();
  }
}

TEST_P(AlgorithmTest, IsRightPlain) {
  for (int size = 1; size <= kMostRanks; ++size) expect_verified(*GetParam(), size, Form::kPlain);
}

TEST_P(AlgorithmTest, IsRightWithFrames) {
  for (int size = 1; size <= kMostRanks; ++size) expect_verified(*GetParam(), size, Form::kLowered);
}

TEST_P(AlgorithmTest, IsRightWithFramesInTwoParts) {
  for (int size = 1; size <= kMostRanks; ++size) expect_verified(*GetParam(), size, Form::kSplit);
}

TEST_P(AlgorithmTest, IsRightFused) {
  for (int size = 1; size <= kMostRanks; ++size) expect_verified(*GetParam(), size, Form::kFused);
}

TEST_P(AlgorithmTest, IsRightFusedWithFramesInTwoParts) {
  for (int size = 1; size <= kMostRanks; ++size)
    expect_verified(*GetParam(), size, Form::kSplitFused);
}

TEST_P(AlgorithmTest, IsRightForManyRanks) {
  const bool nests = std::string(GetParam()->name) == "hierarchical";
  for (int size : {32, 64, 65}) {
    // Hosts of 12 ranks, and sockets of 5, 5 and 2, or of 3, 5 and 4, and so on; of one host, of 5 each.
    for (const auto& [hosts, sockets] : {std::pair{false, false}, {true, false}, {false, nests}, {true, nests}}) {
      Shape shape = even_shape(GetParam()->coll, size, 1000);
      if (is_rooted(shape.coll)) shape.root = size / 3;
      for (int rank = 0; hosts && rank < size; ++rank) shape.hosts.push_back(rank / 12);
      for (int rank = 0; sockets && rank < size; ++rank) shape.sockets.push_back(rank / 5);
      const Status status =
          verify(build_schedules(*GetParam(), shape, Form::kSplitFused), shape, 1, 1, GetParam()->in_rank_order);
      EXPECT_TRUE(status.ok()) << size << " ranks: " << status.message();
    }
  }
}

// What a record says of the order of the ranks is neither too much nor too little.
TEST_P(AlgorithmTest, SaysWhetherItKeepsTheOrderOfRanks) {
  if (GetParam()->order == Order::kMoves) {
    EXPECT_FALSE(GetParam()->in_rank_order);
    return;
  }
  bool keeps = true;
  for (int size = 2; size <= 9; ++size) {
    for (const Shape& shape : awkward_shapes(GetParam()->coll, size)) {
      const std::vector<Schedule> schedules = build_schedules(*GetParam(), shape, Form::kPlain);
      keeps = keeps && verify(schedules, shape, 1, 1, true).ok();
    }
  }
  EXPECT_EQ(keeps, GetParam()->in_rank_order);
}

// Which ranks' data the only reduction takes, in its order.
std::vector<int> reduction_order(const Schedule& schedule, int rank) {
  std::map<size_t, int> senders;  // by where in scratch their data arrives
  std::vector<int> order;
  for (const Step& step : schedule.steps) {
    if (step.verb == Verb::kRecv && step.dst.slot == Slot::kScratch) {
      senders[step.dst.offset] = step.peer;
    }
    for (const Slice& source : step.sources) {
      order.push_back(source.slot == Slot::kInput ? rank : senders.at(source.offset));
    }
  }
  return order;
}

TEST(Algorithms, DirectOnesReduceOnceInRankOrder) {
  const std::pair<Coll, const char*> direct[] = {{Coll::kAllreduce, "two_shot"},
                                                 {Coll::kAllreduce, "one_shot"},
                                                 {Coll::kReduceScatter, "two_shot"}};
  for (const auto& [coll, name] : direct) {
    for (bool in_place : {false, true}) {
      for (int rank = 0; rank < 5; ++rank) {
        const Schedule schedule =
            find_algorithm(coll, name)->build(even_shape(coll, 5, 40, in_place), rank);
        EXPECT_EQ(reduction_order(schedule, rank), (std::vector<int>{0, 1, 2, 3, 4})) << name;
      }
    }
  }
}

TEST(Algorithms, KeepTheirScratchSmall) {
  const Shape shape = even_shape(Coll::kAllreduce, 8, 800);
  const auto scratch = [&](const char* name) {
    return find_algorithm(Coll::kAllreduce, name)->build(shape, 0).scratch_elements;
  };
  EXPECT_EQ(scratch("two_shot"), 700u);
  EXPECT_EQ(scratch("ring"), 200u);
  EXPECT_EQ(scratch("recursive_doubling"), 1600u);
  EXPECT_EQ(scratch("one_shot"), 5600u);
  const auto of_blocks = [&](Coll coll, const char* name) {
    return find_algorithm(coll, name)->build(even_shape(coll, 8, 100), 0).scratch_elements;
  };
  EXPECT_EQ(of_blocks(Coll::kReduceScatter, "two_shot"), 700u);
  EXPECT_EQ(of_blocks(Coll::kReduceScatter, "ring"), 300u);
  EXPECT_EQ(of_blocks(Coll::kAllgather, "two_shot"), 0u);
  EXPECT_EQ(of_blocks(Coll::kAllgather, "ring"), 0u);
}

TEST(Algorithms, AreFoundByTheirNames) {
  for (const Algorithm* algorithm : algorithms()) {
    EXPECT_EQ(find_algorithm(algorithm->coll, algorithm->name), algorithm);
    EXPECT_GT(std::string(algorithm->summary).size(), 20u);
    for (int coll = 0; coll < kCollCount; ++coll) {
      EXPECT_EQ(algorithm->supports(even_shape(static_cast<Coll>(coll), 4, 16)),
                static_cast<Coll>(coll) == algorithm->coll);
    }
  }
  EXPECT_EQ(find_algorithm(Coll::kAllreduce, "bruck"), nullptr);
  EXPECT_EQ(find_algorithm(Coll::kAllreduce, ""), nullptr);
}

// A network of 10 us and 10 GB/s, with a codec that is worth it.
constexpr CostModel kModel{.latency = 1e-5, .seconds_per_byte = 1e-10, .reduce_per_byte = 2e-11, .ratio = 0.7,
                           .codec_per_byte = 3e-11, .message = 1e-6, .step = 3e-7};

const char* cheapest(Coll coll, int size, double bytes) {
  const Shape shape = even_shape(coll, size, 1000);
  const Algorithm* best = nullptr;
  for (const Algorithm* algorithm : algorithms()) {
    if (algorithm->coll != coll) continue;
    const double cost = algorithm->cost(shape, bytes, kModel);
    EXPECT_GT(cost, 0) << algorithm->name;
    EXPECT_LE(cost, algorithm->cost(shape, 2 * bytes, kModel)) << algorithm->name;
    if (best == nullptr || cost < best->cost(shape, bytes, kModel)) best = algorithm;
  }
  return best->name;
}

TEST(Algorithms, CostsFollowTheirPurpose) {
  EXPECT_STREQ(cheapest(Coll::kAllreduce, 4, 64), "one_shot");
  EXPECT_STREQ(cheapest(Coll::kAllreduce, 256, 64), "recursive_doubling");
  EXPECT_STREQ(cheapest(Coll::kAllreduce, 8, 1e8), "two_shot");
  EXPECT_STREQ(cheapest(Coll::kReduceScatter, 8, 1e8), "two_shot");
  EXPECT_STREQ(cheapest(Coll::kAllgather, 256, 64), "bruck");
  EXPECT_STREQ(cheapest(Coll::kAllgather, 8, 1e8), "two_shot");
  EXPECT_STREQ(cheapest(Coll::kBarrier, 8, 0), "dissemination");
  EXPECT_STREQ(cheapest(Coll::kBcast, 256, 64), "binomial");
  EXPECT_STREQ(cheapest(Coll::kBcast, 8, 1e8), "chain");
  EXPECT_STREQ(cheapest(Coll::kReduce, 256, 64), "binomial");
  EXPECT_STREQ(cheapest(Coll::kReduce, 8, 1e8), "two_shot");
  EXPECT_STREQ(cheapest(Coll::kGather, 256, 64), "binomial");
  EXPECT_STREQ(cheapest(Coll::kGather, 8, 1e8), "direct");
  EXPECT_STREQ(cheapest(Coll::kScatter, 256, 64), "binomial");
  EXPECT_STREQ(cheapest(Coll::kAlltoall, 256, 64), "bruck");
  EXPECT_STREQ(cheapest(Coll::kAlltoall, 8, 1e8), "pairwise");
  EXPECT_STREQ(cheapest(Coll::kScan, 256, 64), "recursive_doubling");
  EXPECT_STREQ(cheapest(Coll::kScan, 8, 1e8), "linear");
}

TEST(Algorithms, HierarchicalOnesAreNotForOneHost) {
  for (const Algorithm* algorithm : algorithms()) {
    if (std::string(algorithm->name) != "hierarchical") continue;
    for (int size = 2; size <= 12; ++size) {
      for (double bytes = 8; bytes < 1e9; bytes *= 3) {
        CostModel model = kModel;
        model.chunk_bytes = 256 << 10;
        const Shape shape = even_shape(algorithm->coll, size, 1000);
        const double cost = algorithm->cost(shape, bytes, model);
        const bool another = std::any_of(algorithms().begin(), algorithms().end(), [&](const Algorithm* other) {
          return other != algorithm && other->coll == algorithm->coll && other->cost(shape, bytes, model) < cost;
        });
        EXPECT_TRUE(another) << coll_name(algorithm->coll) << ", " << size << " ranks, " << bytes << " bytes";
      }
    }
  }
}

std::string test_name(const testing::TestParamInfo<const Algorithm*>& info) {
  return std::string(coll_name(info.param->coll)) + "_" + info.param->name;
}

INSTANTIATE_TEST_SUITE_P(All, AlgorithmTest,
                         testing::ValuesIn(algorithms().begin(), algorithms().end()), test_name);

}  // namespace
}  // namespace uzip
