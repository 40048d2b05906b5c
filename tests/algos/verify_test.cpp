// The verifier: what it says about schedules that are wrong.
#include "algos/verify.hpp"

#include "algos/collective_cases.hpp"
#include "algos/schedule_builder.hpp"

#include <gtest/gtest.h>

#include <array>
#include <functional>

namespace uzip {
namespace {

using Steps = std::vector<uint32_t>;

const Shape kTwoRanks{Coll::kAllreduce, 2, {2, 2}, false};
const Slice kInputs{Slot::kInput, 0, 4};
const Slice kOutputs{Slot::kOutput, 0, 4};

// Both ranks send everything and reduce; `vary` may change how.
std::vector<Schedule> exchange(const std::function<void(std::vector<Schedule>&)>& vary) {
  std::vector<Schedule> schedules;
  for (int rank = 0; rank < 2; ++rank) {
    ScheduleBuilder builder(kTwoRanks, rank);
    const Slice arrival = builder.scratch(4);
    builder.send(kInputs, 1 - rank);
    builder.recv(1 - rank, arrival);
    builder.reduce(std::array{kInputs, arrival}, kOutputs, true);
    schedules.push_back(builder.finish());
  }
  vary(schedules);
  for (Schedule& schedule : schedules) link_dependents(schedule);
  return schedules;
}

void expect_fault(const std::vector<Schedule>& schedules, const Shape& shape,
                  const std::string& message) {
  const Status status = verify(schedules, shape, 1, 1);
  ASSERT_FALSE(status.ok()) << "not found: " << message;
  EXPECT_NE(status.message().find(message), std::string::npos) << status.message();
}

void expect_fault(const std::function<void(std::vector<Schedule>&)>& vary,
                  const std::string& message) {
  expect_fault(exchange(vary), kTwoRanks, message);
}

TEST(Verify, AcceptsTheExchange) {
  EXPECT_TRUE(verify(exchange([](auto&) {}), kTwoRanks, 5, 1).ok());
}

TEST(Verify, NamesRankAndStep) {
  expect_fault([](auto& s) { s[1].steps[1].dst.offset = 1; },
               "rank 1 step 1 (recv rank 0 #0 -> scratch[1,5)): a slice outside its buffer");
}

TEST(Verify, FindsFaultsOfSingleSteps) {
  expect_fault([](auto& s) { s[0].steps[1].dst = kInputs; }, "writes to the input");
  expect_fault([](auto& s) { s[0].steps[2].sources.pop_back(); }, "only 1 of 2 ranks are in");
  expect_fault([](auto& s) { s[0].steps[2].sources.clear(); }, "reduces nothing");
  expect_fault([](auto& s) { s[0].steps[2].dst.length = 3; }, "differ in length");
  expect_fault([](auto& s) { s[0].steps[2].peer = 1; }, "has a peer");
  expect_fault([](auto& s) { s[0].steps[0].peer = 0; }, "no such peer");
  expect_fault([](auto& s) { s[0].steps[0].part = Part::kCoded; }, "only frames have parts");
  expect_fault([](auto& s) { s[0].steps[0].average = true; }, "only a reduction");
  expect_fault([](auto& s) { s[0].steps[0].depends_on = {2}; },
               "depends on itself or a later step");
}

TEST(Verify, FindsFaultsOfMessages) {
  expect_fault([](auto& s) { s[0].steps[0].message = 1; }, "should be message 0");
  expect_fault([](auto& s) { s[0].steps[0].src.length = 3; }, "does not fit rank 0 step 0");
  expect_fault(
      [](auto& s) {
        s[0].steps.erase(s[0].steps.begin());
        s[0].steps[1].depends_on = {0};
      },
      "nobody sends this");
  expect_fault(
      [](auto& s) {
        s[0].steps.pop_back();
        s[0].steps.pop_back();
      },
      "nobody receives this");
}

TEST(Verify, FindsRaces) {
  expect_fault(
      [](auto& s) { s[0].steps[2].depends_on.clear(); },
      "rank 0 step 2 (reduce input[0,4) + scratch[0,4) -> output[0,4), last): touches the same "
      "memory as step 1 and does not wait for it");
}

TEST(Verify, FindsDeadlocks) {
  expect_fault(
      [](auto& s) {
        for (Schedule& schedule : s) {
          std::swap(schedule.steps[0], schedule.steps[1]);
          schedule.steps[1].depends_on = {0};  // sends when it has received
          schedule.steps[2].depends_on = {0};
        }
      },
      "rank 0 step 0 (recv rank 1 #0 -> scratch[0,4)): deadlock: waits for rank 1 step 1 (send "
      "input[0,4) -> "
      "rank 0 #0), which waits for its step 0");
}

TEST(Verify, FindsWrongValues) {
  expect_fault([](auto& s) { s[0].steps[2].sources[1] = kInputs; },
               "rank 0 would contribute twice");
  expect_fault([](auto& s) { s[0].steps[2].average = false; },
               "no reduction of element 0 is marked");
  expect_fault(
      [](auto& s) { s[0].steps[2] = {.verb = Verb::kCopy, .src = kInputs, .dst = kOutputs}; },
      "rank 0: element 0 of the result is 0 only");
  expect_fault([](auto& s) { s[0].steps.pop_back(); },
               "rank 0: a part of the output is never written");
}

TEST(Verify, FindsElementsInTheWrongPlace) {
  const Shape shape{Coll::kAllgather, 2, {2, 2}, false};
  std::vector<Schedule> schedules;
  for (int rank = 0; rank < 2; ++rank) {
    ScheduleBuilder builder(shape, rank);
    builder.send(builder.input_block(rank), 1 - rank);
    builder.recv(1 - rank, builder.output_block(rank));
    builder.copy(builder.input_block(rank), builder.output_block(1 - rank));
    schedules.push_back(builder.finish());
  }
  expect_fault(schedules, shape, "rank 0: 2 elements of the result are rank 1's from element 2 on");
}

TEST(Verify, FindsSlicesAcrossBlocks) {
  const Shape shape{Coll::kReduceScatter, 2, {2, 2}, false};
  std::vector<Schedule> schedules;
  for (int rank = 0; rank < 2; ++rank) {
    ScheduleBuilder builder(shape, rank);
    const Slice arrival = builder.scratch(4);
    builder.send(kInputs, 1 - rank);
    builder.recv(1 - rank, arrival);
    Slice mine = arrival;
    mine.offset += shape.offset(rank);
    mine.length = shape.counts[rank];
    builder.reduce(std::array{builder.input_block(rank), mine}, builder.output_block(rank), true);
    schedules.push_back(builder.finish());
  }
  expect_fault(schedules, shape, "across two blocks");
}

TEST(Verify, FindsAnotherOrderOfReduction) {
  const Shape shape = even_shape(Coll::kAllreduce, 3, 4);
  std::vector<Schedule> schedules =
      build_schedules(*find_algorithm(Coll::kAllreduce, "one_shot"), shape, Form::kPlain);
  std::swap(schedules[2].steps.back().sources[0], schedules[2].steps.back().sources[1]);
  expect_fault(schedules, shape,
               "rank 2 reduces in another order than rank 0: 1 + 0 + 2, not 0 + 1 + 2");
}

TEST(Verify, TakesTwoOperandsInEitherOrder) {
  EXPECT_TRUE(verify(exchange([](auto& s) {
                       std::swap(s[0].steps[2].sources[0], s[0].steps[2].sources[1]);
                     }),
                     kTwoRanks, 1, 1)
                  .ok());
}

TEST(Verify, FindsWhoLeavesABarrierTooEarly) {
  const Shape shape = even_shape(Coll::kBarrier, 4, 0);
  std::vector<Schedule> schedules =
      build_schedules(*find_algorithm(Coll::kBarrier, "dissemination"), shape, Form::kPlain);
  ASSERT_TRUE(verify(schedules, shape, 3, 1).ok());
  schedules[1].steps[2].depends_on.clear();
  link_dependents(schedules[1]);
  expect_fault(schedules, shape, "rank 3 leaves the barrier without knowing of rank 0");
}

TEST(Verify, FindsFaultsOfFrames) {
  const Shape shape = even_shape(Coll::kAllgather, 3, 4);
  const Algorithm& ring = *find_algorithm(Coll::kAllgather, "ring");
  const auto expect = [&](const std::function<void(std::vector<Step>&)>& vary,
                          const char* message) {
    std::vector<Schedule> schedules = build_schedules(ring, shape, Form::kSplit);
    vary(schedules[0].steps);
    link_dependents(schedules[0]);
    expect_fault(schedules, shape, message);
  };
  // 0 copy, 1 encode plain, 2 send it, 3 encode coded, 4 send it, 5 and 6 receive, 7 decode,
  // 8 and 9 forward, 10 and 11 receive, 12 decode
  expect([](auto& steps) { steps[4].origin = {}; },
         "the origin is not what the frame was encoded from");
  expect([](auto& steps) { steps[8].origin = steps[7].dst; }, "the origin is not what");
  expect([](auto& steps) { steps[7].depends_on = {5}; }, "touches the same memory as step 6");
  expect(
      [](auto& steps) {
        steps[3].src = {Slot::kOutput, 0, 4};
        steps[3].depends_on = {0, 1};
        steps[4].origin = steps[3].src;
      },
      "the plain part is of other elements");
  expect([](auto& steps) { steps[1].dst.offset = 9; }, "a wire place that does not exist");
}

TEST(Verify, FindsWrongPieces) {
  expect_fault([](auto& s) { s[0].steps[0].pieces = {1, 2}; }, "pieces that do not make up the slice");
  expect_fault([](auto& s) { s[0].steps[0].pieces = {4}; }, "pieces that do not make up the slice");
  expect_fault([](auto& s) { s[0].steps[2].pieces = {1, 3}; }, "only messages of elements have pieces");
  expect_fault([](auto& s) { s[0].steps[0].pieces = {1, 3}; }, "does not fit rank 0 step 0");
  EXPECT_TRUE(verify(exchange([](auto& s) { s[0].steps[0].pieces = s[1].steps[1].pieces = {1, 3}; }), kTwoRanks, 1, 1).ok());
}

TEST(Verify, LooksAtTheOrderOfRanks) {
  // Each rank takes its own elements first: right for sums, not for what is not commutative.
  const std::vector<Schedule> own_first = exchange([](auto&) {});
  EXPECT_TRUE(verify(own_first, kTwoRanks, 1, 1).ok());
  const Status status = verify(own_first, kTwoRanks, 1, 1, true);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.message(), "rank 1: element 0 of the result is 1 + 0, which is not in the order of the ranks");
  const std::vector<Schedule> in_order = exchange([](auto& s) { std::swap(s[1].steps[2].sources[0], s[1].steps[2].sources[1]); });
  EXPECT_TRUE(verify(in_order, kTwoRanks, 1, 1, true).ok());
}

TEST(Verify, NeedsAScheduleForEachRank) {
  std::vector<Schedule> schedules = exchange([](auto&) {});
  schedules.pop_back();
  EXPECT_EQ(verify(schedules, kTwoRanks, 1, 1).code(), UZIP_ERR_INVALID);
}

}  // namespace
}  // namespace uzip
