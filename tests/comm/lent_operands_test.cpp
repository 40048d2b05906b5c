// Which receives may leave their elements to a reduction: those that nothing else reads.
#include "comm/lent_operands.hpp"

#include "algos/algorithm.hpp"
#include "algos/schedule_builder.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace uzip {
namespace {

Shape allreduce_shape(int size) { return {.coll = Coll::kAllreduce, .size = size, .counts = std::vector<size_t>(static_cast<size_t>(size), 8)}; }

/// So many receives lend in what `write` writes for rank 0 of two, with 16 elements of scratch taken from rank 1 first.
size_t lending(const std::function<void(ScheduleBuilder&, Slice)>& write) {
  ScheduleBuilder builder(allreduce_shape(2), 0);
  const Slice arrived = builder.scratch(16);
  builder.recv(1, arrived);
  write(builder, arrived);
  const LentOperands lent = find_lent_operands(builder.finish());
  return static_cast<size_t>(std::count(lent.lends.begin(), lent.lends.end(), true));
}

TEST(LentOperands, OfTwoShotAreAllButTheRanksOwn) {
  const Algorithm* const two_shot = find_algorithm(Coll::kAllreduce, "two_shot");
  ASSERT_NE(two_shot, nullptr);
  for (int size : {2, 3, 4, 9}) {
    const Schedule schedule = two_shot->build(allreduce_shape(size), size / 2);
    const LentOperands lent = find_lent_operands(schedule);
    ASSERT_EQ(lent.lends.size(), schedule.steps.size());
    ASSERT_EQ(lent.lenders.size(), schedule.steps.size());
    size_t lenders = 0;
    for (size_t i = 0; i < schedule.steps.size(); ++i) {
      const Step& step = schedule.steps[i];
      EXPECT_EQ(lent.lends[i], step.verb == Verb::kRecv && step.dst.slot == Slot::kScratch) << i;
      if (step.verb != Verb::kReduce) {
        EXPECT_TRUE(lent.lenders[i].empty()) << i;
        continue;
      }
      ASSERT_EQ(lent.lenders[i].size(), step.sources.size());
      for (size_t s = 0; s < step.sources.size(); ++s) {
        const uint32_t lender = lent.lenders[i][s];
        ASSERT_EQ(lender == kNoLender, step.sources[s].slot != Slot::kScratch);
        if (lender == kNoLender) continue;
        EXPECT_EQ(schedule.steps[lender].dst.offset, step.sources[s].offset);
        ++lenders;
      }
    }
    EXPECT_EQ(lenders, static_cast<size_t>(size) - 1);
  }
}

TEST(LentOperands, AreReadByOneReductionAndByNothingElse) {
  const auto input = [](const ScheduleBuilder& builder) { return Slice{builder.input_block(0).slot, 0, 16}; };
  const auto output = [](const ScheduleBuilder& builder) { return Slice{builder.output_block(0).slot, 0, 16}; };
  const auto reduce = [&](ScheduleBuilder& builder, Slice with, Slice into) {
    const Slice sources[] = {input(builder), with};
    builder.reduce(sources, into, true);
  };
  EXPECT_EQ(lending([&](auto& b, Slice x) { reduce(b, x, output(b)); }), 1u);
  EXPECT_EQ(lending([&](auto&, Slice) {}), 0u);
  EXPECT_EQ(lending([&](auto& b, Slice x) { b.copy(x, output(b)); }), 0u);
  EXPECT_EQ(lending([&](auto& b, Slice x) { reduce(b, x, output(b)), b.send(x, 1); }), 0u);
  EXPECT_EQ(lending([&](auto& b, Slice x) { b.send(x, 1), reduce(b, x, output(b)); }), 0u);
  EXPECT_EQ(lending([&](auto& b, Slice x) { reduce(b, x, x), b.send(x, 1); }), 0u) << "its sum stands in its place";
  EXPECT_EQ(lending([&](auto& b, Slice x) { reduce(b, x, output(b)), reduce(b, x, output(b)); }), 0u) << "twice";
  EXPECT_EQ(lending([&](auto& b, Slice x) {
              const Slice halves[] = {{x.slot, x.offset, 8}, {x.slot, x.offset + 8, 8}};
              b.reduce(halves, b.output_block(0), true);
            }),
            0u)
      << "in halves";
  EXPECT_EQ(lending([&](auto& b, Slice x) {
              const Slice both[] = {x, x};
              b.reduce(both, output(b), true);
            }),
            0u)
      << "both operands";
  EXPECT_EQ(lending([&](auto& b, Slice x) { reduce(b, x, output(b)), b.recv(1, x), b.copy(x, output(b)); }), 0u)
      << "the second one's reader is not told from the first one's";
}

}  // namespace
}  // namespace uzip
