// Which sends are said to have the same body: those between which nothing can be written to it.
#include "comm/repeated_sends.hpp"

#include "algos/algorithm.hpp"
#include "algos/passes.hpp"
#include "algos/schedule_builder.hpp"
#include "codec/codec.hpp"

#include <gtest/gtest.h>

namespace uzip {
namespace {

using Counts = std::vector<uint32_t>;

Shape shape_of(Coll coll, int size) { return {.coll = coll, .size = size, .counts = std::vector<size_t>(static_cast<size_t>(size), 8)}; }

/// What is counted for the sends of a schedule.
Counts of_sends(const Schedule& schedule) {
  const Counts all = count_receivers(schedule);
  Counts result;
  EXPECT_EQ(all.size(), schedule.steps.size());
  for (size_t i = 0; i < all.size(); ++i) {
    if (schedule.steps[i].verb == Verb::kSend) result.push_back(all[i]);
    else EXPECT_EQ(all[i], 1u) << i;
  }
  return result;
}

Counts of_algorithm(Coll coll, const char* name, int size, int rank) {
  return of_sends(find_algorithm(coll, name)->build(shape_of(coll, size), rank));
}

TEST(RepeatedSends, OneBlockToAll) {
  EXPECT_EQ(of_algorithm(Coll::kAllgather, "two_shot", 2, 1), (Counts{1}));
  EXPECT_EQ(of_algorithm(Coll::kAllgather, "two_shot", 5, 3), (Counts{4, 0, 0, 0}));
  EXPECT_EQ(of_algorithm(Coll::kBcast, "direct", 4, 0), (Counts{3, 0, 0}));
  EXPECT_EQ(of_algorithm(Coll::kBcast, "direct", 4, 2), (Counts{}));
  EXPECT_EQ(of_algorithm(Coll::kBcast, "binomial", 8, 4), (Counts{2, 0}));
}

TEST(RepeatedSends, NotBlocksThatDiffer) {
  EXPECT_EQ(of_algorithm(Coll::kReduceScatter, "two_shot", 4, 0), (Counts{1, 1, 1}));
  EXPECT_EQ(of_algorithm(Coll::kAlltoall, "pairwise", 4, 1), (Counts{1, 1, 1}));
  // The blocks of the first shot differ, the result of the second is one.
  EXPECT_EQ(of_algorithm(Coll::kAllreduce, "two_shot", 3, 0), (Counts{1, 1, 2, 0}));
}

TEST(RepeatedSends, FramesToo) {
  const Shape shape = shape_of(Coll::kAllgather, 4);
  const Schedule raw = find_algorithm(Coll::kAllgather, "two_shot")->build(shape, 0);
  EXPECT_EQ(of_sends(lower_codec(raw, shape, 0, false)), (Counts{3, 0, 0}));
}

// What comes between two sends may have changed the body; it is then one of the steps that the second waits for.
TEST(RepeatedSends, NotWhatWaitsForOtherSteps) {
  ScheduleBuilder builder(shape_of(Coll::kAllreduce, 3), 0);
  const Slice place = builder.scratch(24), input = {Slot::kInput, 0, 24};
  builder.copy(input, place);
  builder.send(place, 1);
  builder.copy({Slot::kInput, 8, 8}, {Slot::kScratch, 0, 8});
  builder.send(place, 2);
  builder.send(place, 1);
  EXPECT_EQ(of_sends(builder.finish()), (Counts{1, 2, 0}));
}

}  // namespace
}  // namespace uzip
