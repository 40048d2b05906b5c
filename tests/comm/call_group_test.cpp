// Groups of calls: any order of sends and receives, nesting, collectives, errors, and one request for
// all.
#include "comm/api_job.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace uzip {
namespace {

constexpr int kRanks = 4;

/// Bodies stay with the sender until they are received: a blocking send without a receive never ends.
LoopbackOptions rendezvous() {
  LoopbackOptions wire;
  wire.eager_limit = 0;
  wire.longest_delay = 3;
  return wire;
}

int32_t value(int from, int to, size_t i) {
  return static_cast<int32_t>(from * 10000 + to * 1000 + static_cast<int>(i % 997));
}

/// Everybody's messages to everybody, itself included, one call in one direction after another.
struct Exchange {
  explicit Exchange(int own, size_t count) : rank(own) {
    for (int peer = 0; peer < kRanks; ++peer) {
      out.emplace_back(count);
      in.emplace_back(count, -1);
      for (size_t i = 0; i < count; ++i) out.back()[i] = value(rank, peer, i);
    }
  }
  void send(int peer, uzip_comm_t comm) {
    const auto& data = out[static_cast<size_t>(peer)];
    EXPECT_TRUE(succeeds(uzip_send(data.data(), data.size(), UZIP_INT32, peer, 7, comm)));
  }
  void recv(int peer, uzip_comm_t comm) {
    auto& data = in[static_cast<size_t>(peer)];
    EXPECT_TRUE(succeeds(uzip_recv(data.data(), data.size(), UZIP_INT32, peer, 7, comm)));
  }
  void check() const {
    for (int peer = 0; peer < kRanks; ++peer) {
      const auto& data = in[static_cast<size_t>(peer)];
      for (size_t i = 0; i < data.size(); ++i) ASSERT_EQ(data[i], value(peer, rank, i)) << peer;
    }
  }

  int rank;
  std::vector<std::vector<int32_t>> out, in;
};

/// Both directions of all pairs, in an order of its own on each rank.
void call_in_random_order(Exchange& exchange, uzip_comm_t comm, uint64_t seed) {
  std::vector<int> calls(2 * kRanks);
  for (size_t i = 0; i < calls.size(); ++i) calls[i] = static_cast<int>(i);
  std::shuffle(calls.begin(), calls.end(), std::mt19937_64(seed));
  for (int call : calls) {
    if (call < kRanks) exchange.send(call, comm);
    else exchange.recv(call - kRanks, comm);
  }
}

TEST(CallGroup, AnyOrderEnds) {
  ApiJob job(kRanks, rendezvous());
  job.run([](int rank, uzip_comm_t comm) {
    for (uint64_t repeat = 0; repeat < 10; ++repeat) {
      Exchange exchange(rank, repeat % 2 == 0 ? 5 : 100000);
      ASSERT_EQ(uzip_group_start(), UZIP_OK);
      call_in_random_order(exchange, comm, repeat * kRanks + static_cast<uint64_t>(rank));
      for (const auto& data : exchange.in) ASSERT_EQ(data[0], -1);  // not before the end
      ASSERT_TRUE(succeeds(uzip_group_end()));
      exchange.check();
    }
  });
}

TEST(CallGroup, OneRequestForAll) {
  ApiJob job(kRanks, rendezvous());
  job.run([](int rank, uzip_comm_t comm) {
    Exchange first(rank, 3000), second(rank, 7);
    uzip_request_t requests[2];
    for (Exchange* exchange : {&first, &second}) {
      ASSERT_EQ(uzip_group_start(), UZIP_OK);
      call_in_random_order(*exchange, comm, static_cast<uint64_t>(rank));
      ASSERT_TRUE(succeeds(uzip_igroup_end(&requests[exchange == &second])));
      ASSERT_NE(requests[exchange == &second], UZIP_REQUEST_NULL);
    }
    EXPECT_TRUE(fails(uzip_request_free(&requests[1]), UZIP_ERR_INVALID, "in flight"));
    EXPECT_TRUE(fails(uzip_start(&requests[1]), UZIP_ERR_INVALID, "_init"));
    ASSERT_TRUE(succeeds(uzip_wait(&requests[1])));
    second.check();
    int done = 0;
    while (done == 0) ASSERT_TRUE(succeeds(uzip_test(&requests[0], &done)));
    EXPECT_EQ(requests[0], UZIP_REQUEST_NULL);
    first.check();
  });
}

TEST(CallGroup, NestsInOneThread) {
  ApiJob job(kRanks, rendezvous());
  job.run([](int rank, uzip_comm_t comm) {
    Exchange exchange(rank, 100);
    ASSERT_EQ(uzip_group_start(), UZIP_OK);
    for (int peer = 0; peer < kRanks; ++peer) {
      ASSERT_EQ(uzip_group_start(), UZIP_OK);
      exchange.send(peer, comm);
      ASSERT_TRUE(succeeds(uzip_group_end()));
    }
    uzip_request_t inner = reinterpret_cast<uzip_request_t>(uintptr_t{1});
    ASSERT_EQ(uzip_group_start(), UZIP_OK);
    for (int peer = 0; peer < kRanks; ++peer) exchange.recv(peer, comm);
    ASSERT_TRUE(succeeds(uzip_igroup_end(&inner)));
    EXPECT_EQ(inner, UZIP_REQUEST_NULL);
    ASSERT_EQ(exchange.in[0][0], -1);
    ASSERT_TRUE(succeeds(uzip_group_end()));
    exchange.check();
  });
}

/// Collectives keep the order of the calls; counts are read at once; nonblocking calls are not collected.
TEST(CallGroup, CollectsCollectivesOnSeveralCommunicators) {
  ApiJob job(kRanks, rendezvous());
  job.run([](int rank, uzip_comm_t comm) {
    uzip_comm_t other;
    ASSERT_TRUE(succeeds(uzip_comm_split(comm, 0, -rank, &other)));
    const int32_t mine[2] = {rank + 1, rank + 2};
    int32_t sum[2] = {0, 0}, at_once = 0, gathered[2 * kRanks] = {};
    std::vector<size_t> counts(kRanks, 2);
    uzip_request_t request;
    ASSERT_EQ(uzip_group_start(), UZIP_OK);
    EXPECT_TRUE(fails(uzip_comm_free(&other), UZIP_ERR_INVALID, "uzip_group_end"));
    ASSERT_TRUE(succeeds(uzip_iallreduce(mine, &at_once, 1, UZIP_INT32, UZIP_MAX, comm, &request)));
    ASSERT_TRUE(succeeds(uzip_wait(&request)));
    EXPECT_EQ(at_once, kRanks);
    // In another order on odd ranks: they are on different communicators.
    for (int k = 0; k < 2; ++k) {
      if ((k == 0) == (rank % 2 == 0)) {
        ASSERT_TRUE(succeeds(uzip_allreduce(mine, sum, 2, UZIP_INT32, UZIP_SUM, comm)));
      } else {
        ASSERT_TRUE(succeeds(uzip_allgatherv(mine, gathered, counts.data(), UZIP_INT32, other)));
        counts.assign(kRanks, 999);
      }
    }
    EXPECT_EQ(sum[0], 0);
    ASSERT_TRUE(succeeds(uzip_group_end()));
    EXPECT_EQ(sum[0], 10);
    EXPECT_EQ(sum[1], 14);
    for (int r = 0; r < kRanks; ++r) EXPECT_EQ(gathered[2 * r], kRanks - r);
    ASSERT_TRUE(succeeds(uzip_comm_free(&other)));
  });
}

TEST(CallGroup, AnErrorStartsNothing) {
  ApiJob job(2, rendezvous());
  job.run([](int rank, uzip_comm_t comm) {
    int32_t in = 5, out = -1;
    ASSERT_EQ(uzip_group_start(), UZIP_OK);
    EXPECT_TRUE(succeeds(uzip_send(&in, 1, UZIP_INT32, 1 - rank, 0, comm)));
    EXPECT_TRUE(fails(uzip_recv(&out, 1, UZIP_INT32, 17, 0, comm), UZIP_ERR_INVALID, "rank 17"));
    EXPECT_TRUE(fails(uzip_recv(&out, 1, UZIP_INT32, 0, -1, comm), UZIP_ERR_INVALID, "tag -1"));
    EXPECT_TRUE(fails(uzip_group_end(), UZIP_ERR_INVALID, "rank 17"));
    // The message was not sent: the next one is the first.
    in = 6;
    EXPECT_TRUE(succeeds(uzip_sendrecv(&in, 1, 1 - rank, 0, &out, 1, 1 - rank, 0, UZIP_INT32, comm)));
    EXPECT_EQ(out, 6);
    ASSERT_EQ(uzip_group_start(), UZIP_OK);
    EXPECT_TRUE(fails(uzip_barrier(nullptr), UZIP_ERR_INVALID, "NULL"));
    EXPECT_TRUE(fails(uzip_group_end(), UZIP_ERR_INVALID, "NULL"));
  });
}

TEST(CallGroup, MisuseIsFound) {
  EXPECT_TRUE(fails(uzip_group_end(), UZIP_ERR_INVALID, "uzip_group_start"));
  ASSERT_EQ(uzip_group_start(), UZIP_OK);
  EXPECT_TRUE(fails(uzip_igroup_end(nullptr), UZIP_ERR_INVALID, "request is NULL"));
  std::thread([] { EXPECT_TRUE(fails(uzip_group_end(), UZIP_ERR_INVALID, "in this thread")); }).join();
  uzip_request_t request;
  EXPECT_EQ(uzip_igroup_end(&request), UZIP_OK);  // empty
  EXPECT_EQ(request, UZIP_REQUEST_NULL);

  ApiJob one(1), another(1);
  int32_t in = 1, out = 0;
  ASSERT_EQ(uzip_group_start(), UZIP_OK);
  EXPECT_EQ(uzip_sendrecv(&in, 1, 0, 0, &out, 1, 0, 0, UZIP_INT32, one.comm(0)), UZIP_OK);
  EXPECT_TRUE(fails(uzip_barrier(another.comm(0)), UZIP_ERR_INVALID, "one another"));
  EXPECT_EQ(uzip_group_end(), UZIP_ERR_INVALID);
}

/// One of the calls fails on completion: the others are waited for, and its status is the group's.
TEST(CallGroup, ReturnsTheFirstFailure) {
  const QuietLog quiet;
  ApiJob job(2, rendezvous());
  job.run([](int rank, uzip_comm_t comm) {
    const std::vector<int32_t> out(1000, rank);
    std::vector<int32_t> in(1000, -1), too_many(1001);
    const int peer = 1 - rank;
    ASSERT_EQ(uzip_group_start(), UZIP_OK);
    ASSERT_EQ(uzip_send(out.data(), 1000, UZIP_INT32, peer, 1, comm), UZIP_OK);
    ASSERT_EQ(uzip_recv(too_many.data(), rank == 0 ? 1001 : 1000, UZIP_INT32, peer, 1, comm), UZIP_OK);
    ASSERT_EQ(uzip_send(out.data(), 1000, UZIP_INT32, peer, 2, comm), UZIP_OK);
    ASSERT_EQ(uzip_recv(in.data(), 1000, UZIP_INT32, peer, 2, comm), UZIP_OK);
    if (rank == 0) {
      EXPECT_TRUE(fails(uzip_group_end(), UZIP_ERR_MISMATCH, "1001"));
    } else {
      EXPECT_TRUE(succeeds(uzip_group_end()));
    }
    EXPECT_EQ(in, std::vector<int32_t>(1000, peer));
  });
}

}  // namespace
}  // namespace uzip
