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

struct CodecCount {
  const char* name;
  Coll coll;
  size_t (*encodes)(size_t ranks);
  size_t (*decodes)(size_t ranks);
};

size_t one(size_t) { return 1; }
size_t others(size_t ranks) { return ranks - 1; }
size_t all(size_t ranks) { return ranks; }
size_t others_twice(size_t ranks) { return 2 * (ranks - 1); }
// For powers of two only.
size_t hops(size_t ranks) { return static_cast<size_t>(doubling_rounds(static_cast<int>(ranks))); }

// What every rank has to do, and no more.
constexpr CodecCount kCounts[] = {
    {"two_shot", Coll::kAllreduce, all, others_twice},  // P-1 shares and the result
    {"ring", Coll::kAllreduce, all, others_twice},      // P-1 partial sums and the result
    {"one_shot", Coll::kAllreduce, one, others},
    {"recursive_doubling", Coll::kAllreduce, hops, hops},
    {"two_shot", Coll::kReduceScatter, others, others},
    {"ring", Coll::kReduceScatter, others, others},
    {"two_shot", Coll::kAllgather, one, others},
    {"ring", Coll::kAllgather, one, others},
    {"bruck", Coll::kAllgather, hops, hops},
};

void expect_counts(const CodecCount& expected, const Shape& shape) {
  const Algorithm& algorithm = *find_algorithm(expected.coll, expected.name);
  const size_t ranks = static_cast<size_t>(shape.size);
  for (int rank = 0; rank < shape.size; ++rank) {
    const Schedule plain = algorithm.build(shape, rank);
    const Schedule whole = lower_codec(plain, shape, rank, false);
    const Schedule split = lower_codec(plain, shape, rank, true);
    const std::string what = describe(algorithm, shape, Form::kLowered);
    EXPECT_EQ(count_steps(whole, Verb::kEncode), expected.encodes(ranks)) << what;
    EXPECT_EQ(count_steps(whole, Verb::kDecode), expected.decodes(ranks)) << what;
    EXPECT_EQ(count_steps(whole, Verb::kSend), count_steps(plain, Verb::kSend)) << what;
    for (Part part : {Part::kPlain, Part::kCoded}) {
      EXPECT_EQ(count_steps(split, Verb::kEncode, part), expected.encodes(ranks)) << what;
      EXPECT_EQ(count_steps(split, Verb::kSend, part), count_steps(plain, Verb::kSend)) << what;
      EXPECT_EQ(count_steps(split, Verb::kRecv, part), count_steps(plain, Verb::kRecv)) << what;
    }
    EXPECT_EQ(count_steps(split, Verb::kDecode), expected.decodes(ranks)) << what;
  }
}

TEST(LowerCodec, EncodesAsLittleAsPossible) {
  for (const CodecCount& expected : kCounts) {
    for (int size : {2, 3, 4, 7, 8, 16}) {
      const bool power_of_two = (size & (size - 1)) == 0;
      if (!power_of_two && expected.encodes == hops) continue;
      for (bool in_place : {false, true}) {
        expect_counts(expected, even_shape(expected.coll, size, 1000, in_place));
      }
    }
  }
}

TEST(LowerCodec, CoversEveryAlgorithm) {
  for (const Algorithm* algorithm : algorithms()) {
    if (algorithm->coll == Coll::kBarrier) continue;
    EXPECT_TRUE(std::any_of(std::begin(kCounts), std::end(kCounts), [&](const CodecCount& row) {
      return row.coll == algorithm->coll && std::string(row.name) == algorithm->name;
    })) << algorithm->name;
  }
}

// The steps that make values: compression must not change the bits of a result.
std::vector<Step> local_steps(const Schedule& schedule) {
  std::vector<Step> steps;
  for (Step step : schedule.steps) {
    if (step.verb != Verb::kCopy && step.verb != Verb::kReduce) continue;
    step.depends_on.clear();
    steps.push_back(step);
  }
  return steps;
}

TEST(LowerCodec, KeepsCopiesAndReductions) {
  for (const Algorithm* algorithm : algorithms()) {
    for (const Shape& shape : awkward_shapes(algorithm->coll, 5)) {
      const Schedule plain = build_schedule(*algorithm, shape, Form::kPlain, 1);
      for (Form form : {Form::kLowered, Form::kSplit}) {
        const Schedule lowered = build_schedule(*algorithm, shape, form, 1);
        EXPECT_EQ(lowered.scratch_elements, plain.scratch_elements);
        const std::vector<Step> before = local_steps(plain);
        const std::vector<Step> after = local_steps(lowered);
        ASSERT_EQ(before.size(), after.size());
        for (size_t i = 0; i < before.size(); ++i) {
          EXPECT_EQ(before[i].sources, after[i].sources);
          EXPECT_EQ(before[i].src, after[i].src);
          EXPECT_EQ(before[i].dst, after[i].dst);
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
