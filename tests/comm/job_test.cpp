// Making, splitting and leaving communicators, each rank in a thread of its own.
#include "comm/job.hpp"
#include "comm/loopback_job.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace uzip {
namespace {

LoopbackOptions any_wire(uint64_t seed) {
  LoopbackOptions wire;
  wire.seed = seed;
  wire.longest_delay = 3;
  wire.random_modes = true;
  return wire;
}

/// Sum of the processes' numbers + 1 over a communicator, by one of its ranks.
int32_t sum_over(CommunicatorHandle& handle, int process) {
  const int32_t mine = process + 1;
  int32_t sum = 0;
  const auto call = make_call(UZIP_ALLREDUCE, &mine, &sum, 1, UZIP_INT32);
  Result<CollArgs> args = validate_collective(call, handle.comm->context());
  std::unique_lock lock(handle.engine->mutex());
  Result<Request*> request = handle.comm->start(std::move(*args));
  if (!request.ok()) return -1;
  handle.engine->wait(**request, lock);
  const Status status = (*request)->status();
  handle.engine->release(*request);
  return status.ok() ? sum : -1;
}

struct Part {
  int color;
  int key;
  int rank;     // expected, -1: none
  int32_t sum;  // expected
};

// All ranks split their world as told; each compares its rank and a sum over its part.
void expect_parts(LoopbackJob& job, const std::vector<Part>& parts) {
  job.on_all_ranks([&](int process) {
    const Part& part = parts[static_cast<size_t>(process)];
    Result<CommunicatorHandle> made = split(job.world(process), part.color, part.key);
    ASSERT_TRUE(made.ok()) << made.status().message();
    if (part.rank < 0) {
      EXPECT_EQ(made->comm, nullptr);
      return;
    }
    EXPECT_EQ(made->comm->rank(), part.rank) << process;
    EXPECT_EQ(sum_over(*made, process), part.sum) << process;
    leave(*made);
  });
}

TEST(Split, GroupsByColorAndOrdersByKey) {
  LoopbackJob job(6, any_wire(1));
  expect_parts(
      job,
      {{0, 0, 0, 21}, {0, 0, 1, 21}, {0, 0, 2, 21}, {0, 0, 3, 21}, {0, 0, 4, 21}, {0, 0, 5, 21}});
  expect_parts(
      job,
      {{0, 5, 5, 21}, {0, 4, 4, 21}, {0, 3, 3, 21}, {0, 2, 2, 21}, {0, 1, 1, 21}, {0, 0, 0, 21}});
  expect_parts(
      job, {{1, 0, 0, 9}, {2, 0, 0, 12}, {1, 0, 1, 9}, {2, 0, 1, 12}, {1, 0, 2, 9}, {2, 0, 2, 12}});
  // Negative keys; equal ones keep the order of the ranks.
  expect_parts(job, {{7, 3, 2, 10},
                     {7, -3, 0, 10},
                     {7, 3, 3, 10},
                     {7, 0, 1, 10},
                     {2147483647, -2147483647 - 1, 0, 11},
                     {2147483647, 2147483647, 1, 11}});
  expect_parts(
      job,
      {{-1, 0, -1, 0}, {0, 0, 0, 2}, {-1, 0, -1, 0}, {-1, 0, -1, 0}, {-1, 0, -1, 0}, {3, 0, 0, 6}});
  EXPECT_EQ(job.works(), "");
}

TEST(Split, OfParts) {
  LoopbackJob job(4, any_wire(2));
  job.on_all_ranks([&](int process) {
    Result<CommunicatorHandle> half = split(job.world(process), process / 2, -process);
    ASSERT_TRUE(half.ok());
    EXPECT_EQ(half->comm->rank(), 1 - process % 2);
    Result<CommunicatorHandle> copy = split(*half, 0, 0);
    ASSERT_TRUE(copy.ok());
    EXPECT_EQ(copy->comm->rank(), half->comm->rank());
    leave(*half);
    EXPECT_EQ(sum_over(*copy, process), process < 2 ? 3 : 7);
    Result<CommunicatorHandle> alone = split(*copy, process, 0);
    ASSERT_TRUE(alone.ok());
    EXPECT_EQ(sum_over(*alone, process), process + 1);
    leave(*alone);
    leave(*copy);
  });
  EXPECT_EQ(job.works(), "");
}

// A chunk size for everybody is one for the library's own small calls, too.
TEST(Split, WithOddSettings) {
  Config config;
  config.chunk_bytes = SIZE_MAX;
  config.codec = "lev";
  config.algorithm = "ring";
  config.checksum = true;
  LoopbackJob job(3, any_wire(3), config);
  expect_parts(job, {{0, 0, 0, 6}, {0, 0, 1, 6}, {0, 0, 2, 6}});
  EXPECT_EQ(job.works(), "");
}

TEST(Split, RefusedByAllWhenOneHasTooMany) {
  LoopbackJob job(3, any_wire(4));
  std::vector<uint32_t> taken;
  for (uint32_t number; (number = job.engine(1).reserve_number()) != Engine::kNoNumber;) {
    taken.push_back(number);
  }
  EXPECT_GT(taken.size(), 1000000u);
  job.on_all_ranks([&](int process) {
    const Result<CommunicatorHandle> made = split(job.world(process), 0, 0);
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.status().code(), UZIP_ERR_NO_MEMORY);
    EXPECT_NE(made.status().message().find("rank 1 "), std::string::npos);
  });
  // One that is freed is enough.
  job.engine(1).free_number(taken[500]);
  expect_parts(job, {{0, 0, 0, 6}, {0, 0, 1, 6}, {0, 0, 2, 6}});
  EXPECT_EQ(job.works(), "");
}

TEST(Split, FailsWhenARankDies) {
  const QuietLog quiet;
  for (uint64_t step = 1; step < 120; step += 4) {
    LoopbackOptions wire;  // in which nothing waits for a rank that has gone on
    wire.longest_delay = 3;
    LoopbackJob job(3, wire);
    job.fabric().kill_at(2, step);
    job.on_all_ranks([&](int process) {
      if (process == 2) {  // as far as it gets
        for (int turn = 0; turn < 40; ++turn) {
          const std::lock_guard lock(job.engine(2).mutex());
          job.engine(2).progress();
        }
        return;
      }
      Result<CommunicatorHandle> made = split(job.world(process), 0, 0);
      EXPECT_FALSE(made.ok());
      EXPECT_EQ(made.status().code(), UZIP_ERR_PEER) << made.status().message();
    });
  }
}

// A process that failed while the communicator was being made is known to it.
TEST(Split, KnowsWhoFailedMeanwhile) {
  const QuietLog quiet;
  LoopbackJob job(3, any_wire(5));
  std::vector<CommunicatorHandle> comm = job.make_communicator();
  job.fabric().kill(2);
  job.settle();
  job.join(comm);
  float value = 0;
  const Result<Request*> request =
      job.start(0, make_call(UZIP_BARRIER, &value, &value, 0), comm[0].comm.get());
  ASSERT_FALSE(request.ok());
  EXPECT_EQ(request.status().code(), UZIP_ERR_PEER);
  job.leave(comm);
}

TEST(Leave, WaitsForTheOthers) {
  LoopbackJob job(2, any_wire(6));
  std::atomic<bool> left{false};
  std::vector<CommunicatorHandle> comm = job.make_communicator();
  job.join(comm);
  job.on_all_ranks([&](int process) {
    if (process == 1) {
      for (int turn = 0; turn < 2000; ++turn) {
        const std::lock_guard lock(job.engine(1).mutex());
        job.engine(1).progress();
      }
      EXPECT_FALSE(left);
    }
    leave(comm[static_cast<size_t>(process)]);
    left = true;
  });
  EXPECT_EQ(job.works(), "");
}

TEST(Leave, DoesNotWaitForTheDead) {
  const QuietLog quiet;
  LoopbackJob job(3, any_wire(7));
  std::vector<CommunicatorHandle> comm = job.make_communicator();
  job.join(comm);
  job.fabric().kill(2);
  const auto start = std::chrono::steady_clock::now();
  job.on_all_ranks([&](int process) {
    if (process != 2) leave(comm[static_cast<size_t>(process)]);
  });
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  job.leave(comm);
}

TEST(Leave, GivesUpAfterTheLimit) {
  const QuietLog quiet;
  Config config;
  config.timeout_limit = 0.05;
  LoopbackJob job(2, any_wire(8), config);
  std::vector<CommunicatorHandle> comm = job.make_communicator();
  job.join(comm);
  const auto start = std::chrono::steady_clock::now();
  leave(comm[0]);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  job.leave(comm, 1);
  EXPECT_EQ(job.works(), "");
}

}  // namespace
}  // namespace uzip
