// The fuse pass: one frame of a reduction goes straight into it, where nobody else needs its
// elements, and nothing else changes.
#include "algos/collective_cases.hpp"
#include "algos/passes.hpp"
#include "algos/schedule_builder.hpp"
#include "algos/value_oracle.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

namespace uzip {
namespace {

const Shape kShape{Coll::kAllreduce, 3, {4, 4, 4}, false};

Slice input(size_t offset, size_t length) { return {Slot::kInput, offset, length}; }
Slice output(size_t offset, size_t length) { return {Slot::kOutput, offset, length}; }

Schedule fused(ScheduleBuilder& builder) {
  return fuse(lower_codec(builder.finish(), kShape, 1, false), kShape, 1);
}

size_t fusions(const Schedule& schedule) { return count_steps(schedule, Verb::kDecodeReduce); }

TEST(Fuse, ReplacesADecodeAndAReduction) {
  ScheduleBuilder builder(kShape, 1);
  const Slice arrived = builder.scratch(4);
  builder.recv(0, arrived);
  builder.reduce(std::array{input(0, 4), arrived}, output(0, 4), true);
  const Schedule schedule = fused(builder);
  ASSERT_EQ(schedule.steps.size(), 2u);
  const Step& step = schedule.steps[1];
  EXPECT_EQ(step.verb, Verb::kDecodeReduce);
  EXPECT_EQ(step.sources, (std::vector<Slice>{input(0, 4), schedule.steps[0].dst}));
  EXPECT_EQ(step.dst, output(0, 4));
  EXPECT_TRUE(step.average);
  EXPECT_EQ(step.depends_on, (std::vector<uint32_t>{0}));
  EXPECT_EQ(frame_of(step), schedule.steps[0].dst);
  EXPECT_EQ(schedule.scratch_elements, 0u);
}

TEST(Fuse, TakesTheLastFrameOfAReduction) {
  ScheduleBuilder builder(kShape, 1);
  const Slice first = builder.scratch(4);
  const Slice second = builder.scratch(4);
  builder.recv(0, first);
  builder.recv(2, second);
  builder.reduce(std::array{second, first, input(0, 4)}, output(0, 4), true);
  const Schedule schedule = fused(builder);
  EXPECT_EQ(count_steps(schedule, Verb::kDecode), 1u);
  ASSERT_EQ(fusions(schedule), 1u);
  const Step& step = schedule.steps.back();
  EXPECT_EQ(step.sources[0], schedule.steps[2].dst);  // what came from rank 2
  EXPECT_EQ(step.sources[1], (Slice{Slot::kScratch, 0, 4}));
  EXPECT_EQ(step.sources[2], input(0, 4));
  EXPECT_EQ(schedule.scratch_elements, 4u);
}

TEST(Fuse, LeavesElementsThatAreNeededAgain) {
  ScheduleBuilder builder(kShape, 1);
  const Slice arrived = builder.scratch(4);
  builder.recv(0, arrived);
  builder.reduce(std::array{input(0, 4), arrived}, output(0, 4), false);
  builder.copy(arrived, output(4, 4));
  EXPECT_EQ(fusions(fused(builder)), 0u);
}

TEST(Fuse, LeavesElementsOfWhichAPartIsNeededAgain) {
  ScheduleBuilder builder(kShape, 1);
  const Slice arrived = builder.scratch(4);
  builder.recv(0, arrived);
  builder.reduce(std::array{input(0, 4), arrived}, output(0, 4), false);
  builder.recv(2, {Slot::kScratch, 0, 3});
  builder.copy({Slot::kScratch, 3, 1}, output(7, 1));
  EXPECT_EQ(fusions(fused(builder)), 0u);
}

TEST(Fuse, LeavesElementsThatWereNeededBefore) {
  ScheduleBuilder builder(kShape, 1);
  const Slice arrived = builder.scratch(4);
  builder.recv(0, arrived);
  builder.copy(arrived, output(4, 4));
  builder.reduce(std::array{input(0, 4), arrived}, output(0, 4), false);
  EXPECT_EQ(fusions(fused(builder)), 0u);
}

TEST(Fuse, LeavesElementsThatChangeBefore) {
  ScheduleBuilder builder(kShape, 1);
  const Slice arrived = builder.scratch(4);
  builder.recv(0, arrived);
  builder.copy(input(0, 1), {Slot::kScratch, 2, 1});
  builder.reduce(std::array{input(0, 4), arrived}, output(0, 4), false);
  EXPECT_EQ(fusions(fused(builder)), 0u);
}

TEST(Fuse, LeavesOtherSlicesAndTheCallersBuffers) {
  ScheduleBuilder builder(kShape, 1);
  const Slice arrived = builder.scratch(4);
  builder.recv(0, arrived);
  builder.reduce(std::array{input(0, 2), Slice{Slot::kScratch, 0, 2}}, output(0, 2), false);
  builder.recv(2, output(4, 4));
  builder.reduce(std::array{input(4, 4), output(4, 4)}, output(8, 4), false);
  EXPECT_EQ(fusions(fused(builder)), 0u);
}

TEST(Fuse, MayReduceIntoThePlaceOfTheElements) {
  ScheduleBuilder builder(kShape, 1);
  const Slice arrived = builder.scratch(4);
  builder.recv(0, arrived);
  builder.reduce(std::array{input(0, 4), arrived}, arrived, false);
  builder.copy(arrived, output(0, 4));
  const Schedule schedule = fused(builder);
  ASSERT_EQ(fusions(schedule), 1u);
  EXPECT_EQ(schedule.scratch_elements, 4u);
}

TEST(Fuse, StillForwardsTheFrame) {
  ScheduleBuilder builder(kShape, 1);
  const Slice arrived = builder.scratch(4);
  builder.recv(0, arrived);
  builder.reduce(std::array{input(0, 4), arrived}, output(0, 4), false);
  builder.send(arrived, 2);
  const Schedule schedule = fused(builder);
  EXPECT_EQ(fusions(schedule), 1u);
  EXPECT_EQ(schedule.steps.back().src, schedule.steps.front().dst);
  EXPECT_EQ(count_steps(schedule, Verb::kEncode), 0u);
}

TEST(Fuse, LeavesReductionsOfVeryManySources) {
  for (size_t sources : {size_t{64}, size_t{65}}) {
    const Shape shape{Coll::kAllreduce, 2, {100, 100}, false};
    ScheduleBuilder builder(shape, 1);
    std::vector<Slice> all{builder.scratch(1)};
    builder.recv(0, all[0]);
    while (all.size() < sources) all.push_back(input(all.size(), 1));
    builder.reduce(all, output(0, 1), false);
    EXPECT_EQ(fusions(fuse(lower_codec(builder.finish(), shape, 1, false), shape, 1)),
              sources == 64 ? 1u : 0u);
  }
}

// How many frames `peer` sends before the one that the receive takes.
size_t sent_before(const std::vector<Schedule>& schedules, const Step& recv, int rank) {
  size_t before = 0;
  for (const Step& step : schedules[static_cast<size_t>(recv.peer)].steps) {
    if (step.verb != Verb::kSend || step.src.slot != Slot::kWire) continue;
    if (step.peer == rank && step.message == recv.message) break;
    ++before;
  }
  return before;
}

TEST(Fuse, TakesTheFrameThatOtherHostsSendLast) {
  size_t fused_steps = 0;
  for (Coll coll : {Coll::kAllreduce, Coll::kReduce, Coll::kReduceScatter}) {
    Shape shape = even_shape(coll, 8, 80);
    shape.hosts = {0, 0, 1, 1, 2, 2, 3, 3};
    const std::vector<Schedule> schedules = build_schedules(*find_algorithm(coll, "hierarchical"), shape, Form::kFused);
    for (int rank = 0; rank < shape.size; ++rank) {
      size_t last = 0, taken = 0;
      for (const Step& step : schedules[static_cast<size_t>(rank)].steps) {
        if (step.verb == Verb::kRecv && step.dst.slot == Slot::kWire)
          last = std::max(last, sent_before(schedules, step, rank));
        if (step.verb != Verb::kDecodeReduce) continue;
        ++fused_steps;
        for (const Step& recv : schedules[static_cast<size_t>(rank)].steps)
          if (recv.verb == Verb::kRecv && recv.dst == frame_of(step)) taken = sent_before(schedules, recv, rank);
        EXPECT_EQ(taken, last) << coll_name(coll) << ", rank " << rank;
        break;
      }
    }
  }
  EXPECT_EQ(fused_steps, 3u * 8);
}

// Runs all ranks on values, and compares what is in the callers' buffers in the end.
TEST(Fuse, ChangesNoValueOfAnyAlgorithm) {
  size_t fused_steps = 0;
  for (const Algorithm* algorithm : algorithms()) {
    for (int size : {2, 3, 5}) {
      std::vector<Shape> shapes{even_shape(algorithm->coll, size, 20),
                                even_shape(algorithm->coll, size, 20, true)};
      for (const Shape& shape : shapes) {
        const auto apart = build_schedules(*algorithm, shape, Form::kSplit);
        const auto together = build_schedules(*algorithm, shape, Form::kSplitFused);
        for (size_t rank = 0; rank < together.size(); ++rank) {
          fused_steps += fusions(together[rank]);
          EXPECT_LE(together[rank].scratch_elements, apart[rank].scratch_elements);
          EXPECT_EQ(together[rank].wire_elements, apart[rank].wire_elements);
        }
        EXPECT_TRUE(run_elementwise(apart, shape) == run_elementwise(together, shape))
            << describe(*algorithm, shape, Form::kSplitFused);
      }
    }
  }
  EXPECT_GT(fused_steps, 100u);
}

}  // namespace
}  // namespace uzip
