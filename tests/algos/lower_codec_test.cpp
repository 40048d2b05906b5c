// The codec pass: encodes each value once, forwards received frames, and changes nothing else.
#include "algos/passes.hpp"

#include "algos/collective_cases.hpp"
#include "algos/rank_math.hpp"
#include "algos/schedule_builder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

namespace uzip {
namespace {

const Shape kShape{Coll::kAllreduce, 3, {4, 4, 4}, false};

Slice input(size_t offset, size_t length) { return {Slot::kInput, offset, length}; }
Slice output(size_t offset, size_t length) { return {Slot::kOutput, offset, length}; }

// The steps that make values: compression must not change the bits of a result. Copies into scratch may go where frames
// are passed on.
std::vector<Step> local_steps(const Schedule& schedule) {
  std::vector<Step> steps;
  for (Step step : schedule.steps) {
    if (step.verb != Verb::kReduce && (step.verb != Verb::kCopy || step.dst.slot == Slot::kScratch)) continue;
    step.depends_on.clear();
    steps.push_back(step);
  }
  return steps;
}

// Scratch moves when some of it is given up.
bool same_but_for_scratch(const Slice& a, const Slice& b) {
  return a == b || (a.slot == Slot::kScratch && b.slot == Slot::kScratch && a.length == b.length);
}

TEST(LowerCodec, KeepsCopiesAndReductions) {
  for (const Algorithm* algorithm : algorithms()) {
    for (const Shape& shape : awkward_shapes(algorithm->coll, 5)) {
      const Schedule plain = build_schedule(*algorithm, shape, Form::kPlain, 1);
      for (Form form : {Form::kLowered, Form::kSplit}) {
        const Schedule lowered = build_schedule(*algorithm, shape, form, 1);
        EXPECT_LE(lowered.scratch_elements, plain.scratch_elements);
        const std::vector<Step> before = local_steps(plain);
        const std::vector<Step> after = local_steps(lowered);
        ASSERT_EQ(before.size(), after.size());
        for (size_t i = 0; i < before.size(); ++i) {
          EXPECT_TRUE(std::ranges::equal(before[i].sources, after[i].sources, same_but_for_scratch));
          EXPECT_TRUE(same_but_for_scratch(before[i].src, after[i].src));
          EXPECT_TRUE(same_but_for_scratch(before[i].dst, after[i].dst));
          EXPECT_EQ(before[i].average, after[i].average);
        }
      }
    }
  }
}

Schedule lowered(ScheduleBuilder& builder, const Shape& shape = kShape) {
  return lower_codec(builder.finish(), shape, 1, false);
}

TEST(LowerCodec, SendsNoElementsPlain) {
  for (const Schedule& schedule : build_schedules(*find_algorithm(Coll::kBarrier, "dissemination"),
                                                  even_shape(Coll::kBarrier, 5, 0), Form::kSplit)) {
    EXPECT_TRUE(schedule.wire_elements.empty());
    EXPECT_EQ(schedule.steps.size(), 6u);
    EXPECT_EQ(schedule.steps[2].depends_on, (std::vector<uint32_t>{1}));
  }
}

TEST(LowerCodec, EncodesAgainAfterAChange) {
  ScheduleBuilder builder(kShape, 1);
  builder.copy(input(0, 4), output(0, 4));
  builder.send(output(0, 4), 0);
  builder.send(output(0, 4), 2);
  builder.copy(input(4, 1), output(3, 1));  // one element of the four
  builder.send(output(0, 4), 0);
  builder.send(output(0, 4), 2);
  const Schedule schedule = lowered(builder);
  EXPECT_EQ(count_steps(schedule, Verb::kEncode), 2u);
  EXPECT_EQ(schedule.wire_elements, (std::vector<size_t>{4, 4}));
}

TEST(LowerCodec, EncodesAChangedArrivalAgain) {
  ScheduleBuilder builder(kShape, 1);
  builder.recv(0, output(0, 4));
  builder.send(output(0, 4), 2);  // as it came
  builder.reduce(std::array{output(0, 4), input(0, 4)}, output(0, 4), false);
  builder.send(output(0, 4), 2);
  const Schedule schedule = lowered(builder);
  ASSERT_EQ(schedule.steps.size(), 6u);
  EXPECT_EQ(schedule.steps[2].src, schedule.steps[0].dst);
  EXPECT_EQ(schedule.steps[2].origin.length, 0u);
  EXPECT_EQ(schedule.steps[4].verb, Verb::kEncode);
  EXPECT_EQ(schedule.steps[5].src, schedule.steps[4].dst);
  EXPECT_EQ(schedule.steps[5].origin, output(0, 4));
}

Slice scratch(size_t offset, size_t length) { return {Slot::kScratch, offset, length}; }

// A rank of a tree: what comes from one side goes on to the other, its own block in front.
TEST(LowerCodec, PassesPiecesOnAsTheyAre) {
  ScheduleBuilder builder(kShape, 1);
  builder.scratch(9);
  builder.copy(input(0, 2), scratch(0, 2));
  builder.recv(0, std::array{scratch(2, 3), scratch(5, 0), scratch(5, 4)});
  builder.send(std::array{scratch(0, 2), scratch(2, 3), scratch(5, 4)}, 2);
  const Schedule plain = builder.finish();
  ASSERT_EQ(plain.steps.size(), 3u);
  EXPECT_EQ(plain.steps[1].pieces, (std::vector<size_t>{3, 4}));
  EXPECT_EQ(plain.steps[2].src, scratch(0, 9));
  const Schedule schedule = lower_codec(plain, kShape, 1, false);
  EXPECT_EQ(schedule.wire_elements, (std::vector<size_t>{3, 4, 2}));
  EXPECT_EQ(count_steps(schedule, Verb::kSend), 3u);
  EXPECT_EQ(count_steps(schedule, Verb::kEncode), 1u);
  EXPECT_EQ(count_steps(schedule, Verb::kDecode), 0u);  // nobody looks at the elements
  EXPECT_EQ(count_steps(schedule, Verb::kCopy), 1u);    // is encoded
}

TEST(LowerCodec, KnowsTheFrameOfACopy) {
  ScheduleBuilder builder(kShape, 1);
  builder.scratch(8);
  builder.recv(0, scratch(0, 4));
  builder.copy(scratch(0, 4), scratch(4, 4));
  builder.send(scratch(4, 4), 2);
  builder.copy(scratch(4, 4), output(0, 4));
  const Schedule schedule = lowered(builder);
  EXPECT_EQ(count_steps(schedule, Verb::kEncode), 0u);
  EXPECT_EQ(count_steps(schedule, Verb::kDecode), 1u);
  EXPECT_EQ(count_steps(schedule, Verb::kCopy), 2u);

  // A raw frame would be sent from where it was encoded, where there is something else by then.
  ScheduleBuilder changed(kShape, 1);
  changed.scratch(4);
  changed.copy(input(0, 4), output(0, 4));
  changed.send(output(0, 4), 0);
  changed.copy(output(0, 4), scratch(0, 4));
  changed.copy(input(4, 4), output(0, 4));
  changed.send(scratch(0, 4), 2);
  EXPECT_EQ(count_steps(lowered(changed), Verb::kEncode), 2u);

  // A copy of the copy may write over a part of it itself.
  ScheduleBuilder shifted(kShape, 1);
  shifted.scratch(4);
  shifted.copy(input(0, 6), output(0, 6));
  shifted.send(output(0, 4), 0);
  shifted.copy(output(0, 4), scratch(0, 4));
  shifted.copy(scratch(0, 4), output(2, 4));
  shifted.send(output(2, 4), 2);
  const Schedule schedule_of_shifted = lowered(shifted);
  EXPECT_EQ(count_steps(schedule_of_shifted, Verb::kEncode), 2u);
  EXPECT_EQ(schedule_of_shifted.steps.back().origin, output(2, 4));
}

TEST(DropUnread, KeepsWhatIsReadBeforeItIsOverwritten) {
  ScheduleBuilder builder(kShape, 1);
  builder.scratch(4);
  builder.copy(input(0, 4), scratch(0, 4));   // read in part by the next one
  builder.copy(scratch(1, 1), output(0, 1));
  builder.copy(input(4, 4), scratch(0, 4));   // read by nobody
  builder.copy(input(0, 4), scratch(0, 4));   // sent
  builder.send(scratch(0, 4), 0);
  builder.copy(input(2, 2), scratch(0, 2));   // read by nobody
  const Schedule schedule = drop_unread(builder.finish(), kShape, 1);
  ASSERT_EQ(schedule.steps.size(), 4u);
  EXPECT_EQ(schedule.steps[2].src, input(0, 4));
  EXPECT_EQ(schedule.steps[2].depends_on, (std::vector<uint32_t>{1}));
  EXPECT_EQ(schedule.scratch_elements, 4u);
}

TEST(DropUnread, GivesUpScratchThatNobodyUsesAnyMore) {
  ScheduleBuilder builder(kShape, 1);
  builder.scratch(20);
  builder.recv(0, scratch(2, 4));
  builder.copy(scratch(2, 4), scratch(8, 4));  // read by nobody
  builder.recv(2, scratch(14, 4));
  builder.reduce(std::array{scratch(14, 4), scratch(2, 4)}, scratch(15, 4), false);
  builder.send(scratch(16, 3), 0);
  const Schedule schedule = drop_unread(builder.finish(), kShape, 1);
  ASSERT_EQ(schedule.steps.size(), 4u);
  EXPECT_EQ(schedule.steps[0].dst, scratch(0, 4));
  EXPECT_EQ(schedule.steps[2].sources, (std::vector{scratch(4, 4), scratch(0, 4)}));
  EXPECT_EQ(schedule.steps[2].dst, scratch(5, 4));
  EXPECT_EQ(schedule.steps[3].src, scratch(6, 3));
  EXPECT_EQ(schedule.scratch_elements, 9u);
}

TEST(LowerCodec, OverlappingSlicesHaveFramesOfTheirOwn) {
  ScheduleBuilder builder(kShape, 1);
  builder.send(input(0, 4), 0);
  builder.send(input(0, 6), 0);
  builder.send(input(0, 4), 2);
  builder.send(input(0, 6), 2);
  EXPECT_EQ(count_steps(lowered(builder), Verb::kEncode), 2u);
}

TEST(LowerCodec, KnowsTheSameElementsInPlace) {
  Shape shape = kShape;
  shape.in_place = true;
  ScheduleBuilder builder(shape, 1);
  builder.send(input(0, 4), 0);
  builder.send(output(0, 4), 2);
  EXPECT_EQ(count_steps(lowered(builder, shape), Verb::kEncode), 1u);

  ScheduleBuilder changed(shape, 1);
  changed.send(input(0, 4), 0);
  changed.recv(0, output(2, 4));
  changed.send(input(0, 4), 2);
  EXPECT_EQ(count_steps(lowered(changed, shape), Verb::kEncode), 2u);
}

}  // namespace
}  // namespace uzip
