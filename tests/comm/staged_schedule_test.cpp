// Schedules for buffers that the transport can't reach still do what they did, and send nothing but wire places.
#include "comm/staged_schedule.hpp"

#include "algos/algorithm.hpp"
#include "algos/collective_cases.hpp"
#include "algos/passes.hpp"
#include "algos/verify.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace uzip {
namespace {

size_t plain_messages(const Schedule& schedule) {
  return static_cast<size_t>(std::ranges::count_if(schedule.steps, [](const Step& step) {
    return (step.verb == Verb::kSend && step.src.length > 0 && step.src.slot != Slot::kWire) ||
           (step.verb == Verb::kRecv && step.dst.length > 0 && step.dst.slot != Slot::kWire);
  }));
}

TEST(StagedSchedule, KeepsItsMeaning) {
  for (const Algorithm* algorithm : algorithms()) {
    for (int size = 2; size <= 6; ++size) {
      for (int with_codec = 0; with_codec < 3; ++with_codec) {
        Shape shape{.coll = algorithm->coll, .size = size, .counts = std::vector<size_t>(static_cast<size_t>(size), 40)};
        if (algorithm->coll == Coll::kAlltoallv) continue;  // whose counts are a matrix
        if (size == 4 || size == 6)
          for (int rank = 0; rank < size; ++rank) shape.hosts.push_back(rank / 2);
        if (!algorithm->supports(shape)) continue;
        std::vector<Schedule> all;
        for (int rank = 0; rank < size; ++rank) {
          Schedule schedule = algorithm->build(shape, rank);
          if (with_codec > 0) schedule = lower_codec(schedule, shape, rank, with_codec == 2);
          const size_t wires = schedule.wire_elements.size();
          schedule = stage_messages(schedule, shape, rank);
          EXPECT_EQ(plain_messages(schedule), 0u) << algorithm->name;
          EXPECT_GE(schedule.wire_elements.size(), wires);
          all.push_back(std::move(schedule));
        }
        const Status status = verify(all, shape, 3, 1);
        EXPECT_TRUE(status.ok()) << coll_name(algorithm->coll) << ":" << algorithm->name << " " << size << " "
                                 << status.message();
      }
    }
  }
}

}  // namespace
}  // namespace uzip
