// Many communicators through the public API: made and freed over and over, thousands alive, used in
// different orders on different ranks, and by a thread for each. Counts that leave some ranks with
// nothing.
#include "comm/api_job.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

namespace uzip {
namespace {

int32_t sum_over(uzip_comm_t comm, int32_t mine) {
  int32_t result = -1;
  EXPECT_TRUE(succeeds(uzip_allreduce(&mine, &result, 1, UZIP_INT32, UZIP_SUM, comm)));
  return result;
}

TEST(ManyCommunicators, ThousandsAlive) {
  constexpr int kRanks = 2;
  constexpr size_t kComms = 2000;
  ApiJob job(kRanks);
  job.run([](int rank, uzip_comm_t world) {
    std::vector<uzip_comm_t> comms(kComms);
    for (size_t k = 0; k < kComms; ++k) {
      // Each from the one before, every third with the ranks the other way round.
      const uzip_comm_t parent = k == 0 ? world : comms[k - 1];
      ASSERT_TRUE(succeeds(uzip_comm_split(parent, 0, k % 3 == 0 ? -rank : rank, &comms[k])));
    }
    for (size_t k = 0; k < kComms; k += 37) ASSERT_EQ(sum_over(comms[k], rank + 1), 3);
    std::shuffle(comms.begin(), comms.end(), std::mt19937(4));
    for (uzip_comm_t& comm : comms) ASSERT_TRUE(succeeds(uzip_comm_free(&comm)));
  });
}

/// Calls on several communicators, started in an order of its own on each rank, and ended in another.
TEST(ManyCommunicators, InDifferentOrdersOnDifferentRanks) {
  constexpr int kRanks = 3;
  constexpr size_t kComms = 12, kCount = 5000;
  LoopbackOptions wire;
  wire.random_modes = true;
  wire.longest_delay = 3;
  wire.eager_limit = 2000;
  ApiJob job(kRanks, wire);
  job.run([](int rank, uzip_comm_t world) {
    std::vector<uzip_comm_t> comms(kComms);
    for (uzip_comm_t& comm : comms) ASSERT_TRUE(succeeds(uzip_comm_dup(world, &comm)));
    std::mt19937 random(static_cast<unsigned>(rank));
    std::vector<size_t> order(kComms);
    std::iota(order.begin(), order.end(), size_t{0});
    for (int turn = 0; turn < 4; ++turn) {
      std::vector<std::vector<int32_t>> in(kComms), out(kComms, std::vector<int32_t>(kCount));
      std::vector<uzip_request_t> requests(kComms);
      std::shuffle(order.begin(), order.end(), random);
      for (size_t k : order) {
        in[k].assign(kCount, static_cast<int32_t>(k) + turn + rank);
        ASSERT_TRUE(succeeds(uzip_iallreduce(in[k].data(), out[k].data(), kCount, UZIP_INT32,
                                             UZIP_SUM, comms[k], &requests[k])));
      }
      std::shuffle(order.begin(), order.end(), random);
      for (size_t k : order) {
        ASSERT_TRUE(succeeds(uzip_wait(&requests[k])));
        const std::vector<int32_t> expected(kCount, kRanks * (static_cast<int>(k) + turn) + 3);
        ASSERT_EQ(out[k], expected);
      }
    }
    for (uzip_comm_t& comm : comms) ASSERT_TRUE(succeeds(uzip_comm_free(&comm)));
  });
}

/// 64 calls of all kinds in flight on one communicator, completed in any order.
TEST(ManyCommunicators, SixtyFourCallsInFlightOnOne) {
  constexpr int kRanks = 3;
  constexpr size_t kCalls = 64, kCount = 700;
  LoopbackOptions wire;
  wire.random_modes = true;
  wire.longest_delay = 3;
  wire.eager_limit = 2000;
  ApiJob job(kRanks, wire);
  job.run([](int rank, uzip_comm_t comm) {
    std::vector<std::vector<int32_t>> in(kCalls), out(kCalls, std::vector<int32_t>(kCount * kRanks));
    std::vector<uzip_request_t> requests(kCalls);
    const int right = (rank + 1) % kRanks, left = (rank + kRanks - 1) % kRanks;
    for (size_t k = 0; k < kCalls; ++k) {
      in[k].assign(kCount * kRanks, static_cast<int32_t>(k) + 100 * rank);
      uzip_status_t status = UZIP_OK;
      switch (k % 4) {
        case 0:
          status = uzip_iallreduce(in[k].data(), out[k].data(), kCount, UZIP_INT32, UZIP_SUM, comm, &requests[k]);
          break;
        case 1:
          status = uzip_iallgather(in[k].data(), out[k].data(), kCount, UZIP_INT32, comm, &requests[k]);
          break;
        case 2:
          status = uzip_isend(in[k].data(), kCount, UZIP_INT32, right, 5, comm, &requests[k]);
          break;
        default:
          status = uzip_irecv(out[k].data(), kCount, UZIP_INT32, left, 5, comm, &requests[k]);
      }
      ASSERT_TRUE(succeeds(status));
    }
    std::vector<size_t> order(kCalls);
    std::iota(order.begin(), order.end(), size_t{0});
    std::shuffle(order.begin(), order.end(), std::mt19937(static_cast<unsigned>(rank)));
    for (size_t k : order) ASSERT_TRUE(succeeds(uzip_wait(&requests[k])));
    for (size_t k = 0; k < kCalls; ++k) {
      const auto number = static_cast<int32_t>(k);
      for (size_t i = 0; i < kCount; ++i) {
        switch (k % 4) {
          case 0: ASSERT_EQ(out[k][i], kRanks * number + 300); break;
          case 1: ASSERT_EQ(out[k][2 * kCount + i], number + 200); break;
          case 3: ASSERT_EQ(out[k][i], number - 1 + 100 * left); break;
          default: break;  // sent
        }
      }
    }
  });
}

/// Each thread of a rank has a communicator of its own; all work at the same time.
TEST(ManyCommunicators, AThreadForEach) {
  constexpr int kRanks = 2, kThreads = 3, kTurns = 60;
  ApiJob job(kRanks);
  job.run([](int rank, uzip_comm_t world) {
    std::vector<uzip_comm_t> comms(kThreads);
    for (uzip_comm_t& comm : comms) ASSERT_TRUE(succeeds(uzip_comm_dup(world, &comm)));
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([rank, t, comm = comms[static_cast<size_t>(t)]] {
        uzip_comm_t own;
        ASSERT_TRUE(succeeds(uzip_comm_split(comm, 0, -rank, &own)));
        std::vector<float> in(3000), out(3000);
        uzip_request_t request;
        ASSERT_TRUE(succeeds(uzip_allreduce_init(in.data(), out.data(), in.size(), UZIP_FP32, UZIP_SUM, own,
                                                 &request)));
        for (int turn = 0; turn < kTurns; ++turn) {
          ASSERT_EQ(sum_over(comm, t + turn + rank), 2 * (t + turn) + 1);
          in.assign(in.size(), static_cast<float>(turn + rank));
          ASSERT_TRUE(succeeds(uzip_start(&request)));
          float from = -1;
          const float to = static_cast<float>(100 * t + turn);
          ASSERT_EQ(uzip_group_start(), UZIP_OK);
          ASSERT_TRUE(succeeds(uzip_send(&to, 1, UZIP_FP32, 1 - rank, 0, comm)));
          ASSERT_TRUE(succeeds(uzip_recv(&from, 1, UZIP_FP32, 1 - rank, 0, comm)));
          ASSERT_TRUE(succeeds(uzip_group_end()));
          ASSERT_EQ(from, to);
          ASSERT_TRUE(succeeds(uzip_wait(&request)));
          ASSERT_EQ(out, std::vector<float>(3000, static_cast<float>(2 * turn + 1)));
        }
        ASSERT_TRUE(succeeds(uzip_request_free(&request)));
        ASSERT_TRUE(succeeds(uzip_comm_free(&own)));
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (uzip_comm_t& comm : comms) ASSERT_TRUE(succeeds(uzip_comm_free(&comm)));
  });
}

/// Ranks without elements stay in step with the others, whoever it is.
TEST(ManyCommunicators, RanksWithNothingStayInStep) {
  constexpr int kRanks = 3;
  ApiJob job(kRanks);
  job.run([](int rank, uzip_comm_t comm) {
    for (int turn = 0; turn < 12; ++turn) {
      const int hole = turn % (kRanks + 1);
      std::vector<size_t> counts(kRanks, 4000);
      if (hole < kRanks) counts[static_cast<size_t>(hole)] = 0;
      else counts.assign(kRanks, 0);
      const size_t own = counts[static_cast<size_t>(rank)], total = std::accumulate(counts.begin(), counts.end(), size_t{0});
      const std::vector<int32_t> in(own, rank + 1), all(total, 1);
      std::vector<int32_t> out(total, -1), reduced(own, -1);
      ASSERT_TRUE(succeeds(uzip_allgatherv(own > 0 ? in.data() : nullptr, total > 0 ? out.data() : nullptr,
                                           counts.data(), UZIP_INT32, comm)));
      size_t i = 0;
      for (int r = 0; r < kRanks; ++r)
        for (size_t k = 0; k < counts[static_cast<size_t>(r)]; ++k) ASSERT_EQ(out[i++], r + 1);
      ASSERT_TRUE(succeeds(uzip_reduce_scatterv(total > 0 ? all.data() : nullptr, own > 0 ? reduced.data() : nullptr,
                                                counts.data(), UZIP_INT32, UZIP_SUM, comm)));
      EXPECT_EQ(reduced, std::vector<int32_t>(own, int32_t{kRanks}));
      for (const void* none : {static_cast<const void*>(nullptr), static_cast<const void*>(UZIP_IN_PLACE)}) {
        ASSERT_TRUE(succeeds(uzip_allreduce(none, nullptr, 0, UZIP_FP32, UZIP_MAX, comm)));
        ASSERT_TRUE(succeeds(uzip_reduce_scatter(none, nullptr, 0, UZIP_FP32, UZIP_SUM, comm)));
        ASSERT_TRUE(succeeds(uzip_allgather(none, nullptr, 0, UZIP_FP32, comm)));
      }
      ASSERT_EQ(sum_over(comm, rank), 3);
    }
  });
}

}  // namespace
}  // namespace uzip
