// Schedules are built once, laid out so that everything fits, and forgotten when there are many.
#include "comm/schedule_cache.hpp"

#include "comm/selector.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <utility>
#include <vector>

namespace uzip {
namespace {

PreparedPlan plan_of(CallKind kind, size_t count, int ranks, const char* codec, int split = 0,
                     std::vector<size_t> counts = {}) {
  static const Config kConfig;
  CallShape shape;
  shape.kind = kind;
  shape.type = UZIP_BF16;
  shape.size = ranks;
  shape.count = count;
  shape.counts = std::move(counts);
  shape.options.codec.codec = find_codec(codec);
  shape.options.chunk_bytes = 20000;
  shape.options.split_send = split;
  PreparedPlan prepared;
  prepared.plan = *Selector(kConfig, link_facts(true, nullptr)).select(shape);
  return prepared;
}

TEST(ScheduleCache, BuildsOnceForEachShapeOfRound) {
  ScheduleCache cache(1, true);
  PreparedPlan plan = plan_of(CallKind::kAllreduce, 100000, 3, "raw");
  ASSERT_GT(plan.plan.rounds, 2u);
  const auto first = *cache.get(plan, 0);
  const auto last = *cache.get(plan, plan.plan.rounds - 1);
  for (uint32_t round = 0; round + 1 < plan.plan.rounds; ++round) {
    EXPECT_EQ(*cache.get(plan, round), first);
  }
  EXPECT_NE(first, last);
  EXPECT_EQ(first->shape, plan.plan.round_shape(0));
  EXPECT_EQ(last->shape, plan.plan.round_shape(plan.plan.rounds - 1));
  // Another plan of the same shape finds them, too.
  PreparedPlan again = plan_of(CallKind::kAllreduce, 100000, 3, "raw");
  EXPECT_EQ(*cache.get(again, 1), first);
  EXPECT_EQ(*cache.get(again, plan.plan.rounds - 1), last);
}

TEST(ScheduleCache, RoundsOfUnevenBlocksDiffer) {
  ScheduleCache cache(0, true);
  PreparedPlan plan = plan_of(CallKind::kAllgatherV, 60000, 3, "raw", 0, {50000, 0, 10000});
  ASSERT_GT(plan.plan.rounds, 2u);
  for (uint32_t round = 0; round < plan.plan.rounds; ++round) {
    EXPECT_EQ((*cache.get(plan, round))->shape, plan.plan.round_shape(round));
  }
}

TEST(ScheduleCache, TellsTypesCodecsAndSplitsApart) {
  ScheduleCache cache(0, true);
  std::set<const PreparedSchedule*> all;
  std::vector<std::shared_ptr<const PreparedSchedule>> kept;
  for (const char* codec : {"raw", "lev"}) {
    for (int split : {0, 1}) {
      PreparedPlan plan = plan_of(CallKind::kAllgather, 5000, 3, codec, split);
      kept.push_back(*cache.get(plan, 0));
      all.insert(kept.back().get());
    }
  }
  EXPECT_EQ(all.size(), 3u);  // without a codec there is nothing to split
}

// Straight from frames only where there are frames, whoever runs the schedule can, and the operation is
// the library's.
TEST(ScheduleCache, FusesWhereItCan) {
  const auto fusions = [](ScheduleCache& cache, const char* codec, bool user_defined) {
    PreparedPlan plan = plan_of(CallKind::kAllreduce, 5000, 3, codec);
    plan.plan.shape.user_defined = user_defined;
    const auto schedule = *cache.get(plan, 0);
    const auto& steps = schedule->schedule.steps;
    return std::count_if(steps.begin(), steps.end(),
                         [](const Step& step) { return step.verb == Verb::kDecodeReduce; });
  };
  ScheduleCache cache(0, true), unable(0, false);
  EXPECT_EQ(fusions(cache, "lev", false), 1);
  EXPECT_EQ(fusions(cache, "lev", true), 0);
  EXPECT_EQ(fusions(cache, "raw", false), 0);
  EXPECT_EQ(fusions(unable, "lev", false), 0);
}

// No place for a frame overlaps another, or the scratch, and every frame fits.
TEST(ScheduleCache, LaysOutMemory) {
  for (int split : {0, 1}) {
    for (int rank = 0; rank < 4; ++rank) {
      ScheduleCache cache(rank, true);
      PreparedPlan plan = plan_of(CallKind::kAllreduce, 9999, 4, "lev", split);
      const auto prepared = *cache.get(plan, 0);
      ASSERT_EQ(prepared->wires.size(), prepared->schedule.wire_elements.size());
      size_t end = prepared->schedule.scratch_elements * 2;
      for (size_t i = 0; i < prepared->wires.size(); ++i) {
        const PreparedSchedule::Wire& wire = prepared->wires[i];
        const size_t elements = prepared->schedule.wire_elements[i];
        const EncodedSizes bound = plan.plan.codec->bound(UZIP_BF16, elements);
        EXPECT_GE(wire.plain_offset, end);
        EXPECT_GE(wire.plain_capacity, std::max(bound.plain, elements * 2));
        EXPECT_GE(wire.capacity, bound.plain + bound.coded);
        EXPECT_GE(wire.coded_offset, wire.plain_offset + wire.plain_capacity);
        EXPECT_GE(wire.coded_capacity, bound.coded);
        end = std::max(wire.plain_offset + wire.capacity, wire.coded_offset + wire.coded_capacity);
      }
      EXPECT_GE(prepared->memory_bytes, end);
    }
  }
}

TEST(ScheduleCache, FindsReceivesByMessage) {
  ScheduleCache cache(2, true);
  PreparedPlan plan = plan_of(CallKind::kAllreduce, 9999, 4, "lev", 1);
  const auto prepared = *cache.get(plan, 0);
  size_t receives = 0;
  for (size_t peer = 0; peer < prepared->receives.size(); ++peer) {
    for (size_t message = 0; message < prepared->receives[peer].size(); ++message) {
      const Step& step = prepared->schedule.steps[prepared->receives[peer][message]];
      EXPECT_EQ(step.verb, Verb::kRecv);
      EXPECT_EQ(step.peer, static_cast<int>(peer));
      EXPECT_EQ(step.message, message);
      ++receives;
    }
  }
  const auto& steps = prepared->schedule.steps;
  EXPECT_EQ(receives,
            static_cast<size_t>(std::count_if(
                steps.begin(), steps.end(), [](const Step& s) { return s.verb == Verb::kRecv; })));
}

// The least recently used go; what is in use stays alive.
TEST(ScheduleCache, ForgetsTheOldest) {
  ScheduleCache cache(0, true);
  PreparedPlan plan = plan_of(CallKind::kAllgather, 10, 2, "raw");
  std::weak_ptr<const PreparedSchedule> watched = *cache.get(plan, 0);
  plan.schedules[0][0] = plan.schedules[0][1] = nullptr;
  for (size_t count = 11; count < 40; ++count) {
    PreparedPlan other = plan_of(CallKind::kAllgather, count, 2, "raw");
    ASSERT_TRUE(cache.get(other, 0).ok());
  }
  EXPECT_FALSE(watched.expired());
  for (size_t count = 11; count < 200; ++count) {
    PreparedPlan other = plan_of(CallKind::kAllgather, count, 2, "raw");
    ASSERT_TRUE(cache.get(other, 0).ok());
  }
  EXPECT_TRUE(watched.expired());
}

TEST(ScheduleCache, ServesMessages) {
  ScheduleCache cache(3, true);
  PreparedPlan send = plan_of(CallKind::kSend, 100, 1, "raw");
  PreparedPlan recv = plan_of(CallKind::kRecv, 100, 1, "raw");
  PreparedPlan nothing = plan_of(CallKind::kSend, 0, 1, "raw");
  const auto sends = *cache.get(send, 0), receives = *cache.get(recv, 0);
  ASSERT_EQ(sends->schedule.steps.size(), 1u);
  EXPECT_EQ(sends->schedule.steps[0].verb, Verb::kSend);
  ASSERT_EQ(receives->schedule.steps.size(), 1u);
  EXPECT_EQ(receives->schedule.steps[0].verb, Verb::kRecv);
  EXPECT_EQ(receives->receives[kPeerInSchedule][0], 0u);
  EXPECT_EQ((*cache.get(nothing, 0))->schedule.steps.size(), 1u);
}

}  // namespace
}  // namespace uzip
