// The builder: hazards become dependencies, all of them and few others, quickly.
#include "algos/schedule_builder.hpp"

#include "algos/collective_cases.hpp"
#include "algos/hazard_oracle.hpp"
#include "algos/passes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <ctime>

namespace uzip {
namespace {

using Steps = std::vector<uint32_t>;

constexpr int kRank = 1;
const Shape kShape{Coll::kAllreduce, 3, {4, 4, 4}, false};

Slice input(size_t offset, size_t length) { return {Slot::kInput, offset, length}; }
Slice output(size_t offset, size_t length) { return {Slot::kOutput, offset, length}; }

TEST(ScheduleBuilder, ReadWaitsForWrite) {
  ScheduleBuilder builder(kShape, kRank);
  builder.recv(0, output(0, 4));
  builder.recv(2, output(4, 4));
  builder.send(output(2, 4), 0);  // overlaps both
  builder.send(output(8, 4), 0);  // overlaps neither
  const Schedule schedule = builder.finish();
  EXPECT_EQ(schedule.steps[1].depends_on, Steps());
  EXPECT_EQ(schedule.steps[2].depends_on, (Steps{0, 1}));
  EXPECT_EQ(schedule.steps[3].depends_on, Steps());
}

TEST(ScheduleBuilder, WriteWaitsForReadersAndWriter) {
  ScheduleBuilder builder(kShape, kRank);
  builder.recv(0, output(0, 4));
  builder.send(output(0, 4), 0);
  builder.send(output(0, 2), 2);
  builder.recv(2, output(0, 4));
  builder.recv(2, output(0, 4));
  const Schedule schedule = builder.finish();
  EXPECT_EQ(schedule.steps[3].depends_on, (Steps{1, 2}));
  EXPECT_EQ(schedule.steps[4].depends_on, (Steps{3}));
}

TEST(ScheduleBuilder, ReadersDoNotWaitForEachOther) {
  ScheduleBuilder builder(kShape, kRank);
  builder.send(input(0, 4), 0);
  builder.send(input(0, 4), 0);
  builder.copy(input(0, 4), output(0, 4));
  for (const Step& step : builder.finish().steps) EXPECT_TRUE(step.depends_on.empty());
}

TEST(ScheduleBuilder, ReduceInPlaceReadsAndWrites) {
  ScheduleBuilder builder(kShape, kRank);
  const Slice arrival = builder.scratch(4);
  builder.copy(input(0, 4), output(0, 4));
  for (int i = 0; i < 2; ++i) {
    builder.recv(0, arrival);
    builder.reduce(std::array{output(0, 4), arrival}, output(0, 4), i == 1);
  }
  const Schedule schedule = builder.finish();
  EXPECT_EQ(schedule.steps[2].depends_on, (Steps{0, 1}));
  EXPECT_EQ(schedule.steps[3].depends_on, (Steps{2}));
  EXPECT_EQ(schedule.steps[4].depends_on, (Steps{3})) << "step 3 has waited for step 2";
  EXPECT_FALSE(schedule.steps[2].average);
  EXPECT_TRUE(schedule.steps[4].average);
}

TEST(ScheduleBuilder, SeesTheSameMemoryInPlace) {
  Shape shape = kShape;
  shape.in_place = true;
  ScheduleBuilder allreduce(shape, kRank);
  allreduce.copy(input(0, 12), output(0, 12));
  allreduce.send(input(0, 4), 0);
  allreduce.recv(0, output(2, 4));
  const Schedule schedule = allreduce.finish();
  ASSERT_EQ(schedule.steps.size(), 2u) << "a copy onto itself is no step";
  EXPECT_EQ(schedule.steps[1].depends_on, (Steps{0}));
}

TEST(ScheduleBuilder, SeesTheOwnBlockInPlace) {
  ScheduleBuilder scatter({Coll::kReduceScatter, 3, {2, 4, 3}, true}, kRank);
  scatter.send(input(2, 4), 0);  // the own block
  scatter.send(input(0, 2), 0);
  scatter.recv(0, output(0, 4));
  EXPECT_EQ(scatter.finish().steps[2].depends_on, (Steps{0}));

  ScheduleBuilder gather({Coll::kAllgather, 3, {2, 4, 3}, true}, kRank);
  gather.copy(input(0, 4), gather.output_block(kRank));
  gather.send(input(0, 4), 0);
  gather.recv(0, output(2, 4));
  const Schedule schedule = gather.finish();
  ASSERT_EQ(schedule.steps.size(), 2u);
  EXPECT_EQ(schedule.steps[1].depends_on, (Steps{0}));
}

TEST(ScheduleBuilder, DropsEmptySteps) {
  ScheduleBuilder builder(kShape, kRank);
  builder.send(input(3, 0), 0);
  builder.recv(0, output(3, 0));
  builder.copy(input(3, 0), output(5, 0));
  builder.reduce(std::array{input(3, 0), input(4, 0)}, output(5, 0), true);
  EXPECT_TRUE(builder.finish().steps.empty());
}

TEST(ScheduleBuilder, NumbersMessagesByPeerAndDirection) {
  ScheduleBuilder builder(kShape, kRank);
  builder.send(input(0, 4), 0);
  builder.send(input(0, 4), 2);
  builder.recv(0, output(0, 4));
  builder.send(input(4, 4), 0);
  builder.signal(0);
  builder.recv(0, output(4, 4));
  const Schedule schedule = builder.finish();
  std::vector<uint32_t> numbers;
  for (const Step& step : schedule.steps) numbers.push_back(step.message);
  EXPECT_EQ(numbers, (Steps{0, 0, 0, 1, 2, 1}));
}

TEST(ScheduleBuilder, SignalWaitsForAllReceives) {
  ScheduleBuilder builder(kShape, kRank);
  builder.await_signal(0);
  builder.recv(2, output(0, 4));
  builder.signal(0);
  const Schedule schedule = builder.finish();
  EXPECT_EQ(schedule.steps[2].depends_on, (Steps{0, 1}));
  EXPECT_EQ(schedule.steps[2].src.length, 0u);
}

TEST(ScheduleBuilder, PartsOfAFrameAreSeparate) {
  ScheduleBuilder builder(kShape, kRank);
  const Slice wire = builder.wire(4);
  builder.encode(input(0, 4), wire, Part::kPlain);        // 0
  builder.encode(input(0, 4), wire, Part::kCoded);        // 1
  builder.send_wire(wire, Part::kPlain, 0, input(0, 4));  // 2
  builder.send_wire(wire, Part::kCoded, 0, input(0, 4));  // 3
  const Slice arrival = builder.wire(4);
  builder.recv_wire(0, arrival, Part::kPlain);      // 4
  builder.recv_wire(0, arrival, Part::kCoded);      // 5
  builder.decode(arrival, output(0, 4));            // 6
  builder.send_wire(arrival, Part::kPlain, 2, {});  // 7
  const Schedule schedule = builder.finish();
  EXPECT_EQ(schedule.steps[1].depends_on, (Steps{0}));
  EXPECT_EQ(schedule.steps[2].depends_on, (Steps{0}));
  EXPECT_EQ(schedule.steps[3].depends_on, (Steps{1}));
  EXPECT_EQ(schedule.steps[5].depends_on, Steps());
  EXPECT_EQ(schedule.steps[6].depends_on, (Steps{4, 5}));
  EXPECT_EQ(schedule.steps[7].depends_on, (Steps{4}));
}

TEST(ScheduleBuilder, OriginStaysUntilSent) {
  ScheduleBuilder builder(kShape, kRank);
  const Slice wire = builder.wire(4);
  builder.encode(output(0, 4), wire, Part::kWhole);
  builder.send_wire(wire, Part::kWhole, 0, output(0, 4));
  builder.recv(0, output(0, 4));
  EXPECT_EQ(builder.finish().steps[2].depends_on, (Steps{1}));
}

TEST(ScheduleBuilder, DependentsMirrorDependencies) {
  const Algorithm& ring = *find_algorithm(Coll::kAllreduce, "ring");
  const Schedule schedule = ring.build(even_shape(Coll::kAllreduce, 5, 23), 2);
  for (uint32_t step = 0; step < schedule.steps.size(); ++step) {
    for (uint32_t earlier : schedule.steps[step].depends_on) {
      const Steps& later = schedule.dependents[earlier];
      EXPECT_TRUE(std::find(later.begin(), later.end(), step) != later.end());
    }
  }
}

// The interval maps against the comparison of all pairs, element by element.
TEST(ScheduleBuilder, FindsAllHazardsAndDropsRedundantOnes) {
  for (const Algorithm* algorithm : algorithms()) {
    for (int size : {2, 3, 4, 6}) {
      for (const Shape& shape : awkward_shapes(algorithm->coll, size)) {
        if (shape.total() > 100) continue;
        for (Form form : kForms) {
          for (int rank : {0, size - 1}) {
            const Schedule schedule = build_schedule(*algorithm, shape, form, rank);
            ASSERT_EQ(find_race(schedule, shape, rank), "") << describe(*algorithm, shape, form);
            ASSERT_EQ(find_redundant_dependency(schedule), "") << describe(*algorithm, shape, form);
          }
        }
      }
    }
  }
}

size_t dependencies(const Schedule& schedule) {
  size_t sum = 0;
  for (const Step& step : schedule.steps) sum += step.depends_on.size();
  return sum;
}

TEST(ScheduleBuilder, HasFewDependenciesAtManyRanks) {
  for (const Algorithm* algorithm : algorithms()) {
    const Shape shape = even_shape(algorithm->coll, 512, 4096);
    for (Form form : kForms) {
      const Schedule schedule = build_schedule(*algorithm, shape, form, 100);
      EXPECT_LE(dependencies(schedule), 2 * schedule.steps.size() + 100)
          << coll_name(algorithm->coll) << " " << algorithm->name << " " << form_name(form);
    }
  }
}

double seconds_to_build(const Algorithm& algorithm, int size) {
  const Shape shape = even_shape(algorithm.coll, size, 1 << 20);
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    const std::clock_t begin = std::clock();  // of the processor: others may have it meanwhile
    const Schedule schedule = build_schedule(algorithm, shape, Form::kSplit, 1);
    const double taken = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    if (!schedule.steps.empty()) best = std::min(best, taken);
  }
  return best;
}

// Eight times the ranks, eight times the steps: about ten times the time, and 64 times if every
// step were compared with all before.
TEST(ScheduleBuilder, TakesNearlyLinearTime) {
  for (const char* name : {"two_shot", "ring", "one_shot"}) {
    const Algorithm& algorithm = *find_algorithm(Coll::kAllreduce, name);
    EXPECT_LT(seconds_to_build(algorithm, 512), 30 * seconds_to_build(algorithm, 64)) << name;
  }
}

}  // namespace
}  // namespace uzip
