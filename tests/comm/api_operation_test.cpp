// Persistent operations: many starts, all collectives and messages, mixed with plain calls, errors,
// and the end of their communicator.
#include "comm/api_job.hpp"
#include "comm/coll_case.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

namespace uzip {
namespace {

constexpr int kRanks = 3;

LoopbackOptions mixed_wire() {
  LoopbackOptions wire;
  wire.random_modes = true;
  wire.longest_delay = 2;
  wire.eager_limit = 3000;
  return wire;
}

/// Starts use what is in the buffers then; ranks that make plain calls take part in the same operation.
TEST(Persistent, MayBeMixedWithPlainCalls) {
  ApiJob job(kRanks, mixed_wire());
  for (size_t count : {size_t{1}, size_t{1000}, size_t{200000}}) {
    job.run([count](int rank, uzip_comm_t comm) {
      std::vector<int32_t> in(count), out(count);
      uzip_request_t request = UZIP_REQUEST_NULL;
      ASSERT_TRUE(succeeds(uzip_allreduce_init(in.data(), out.data(), count, UZIP_INT32, UZIP_SUM,
                                               comm, &request)));
      for (int turn = 0; turn < 6; ++turn) {
        std::iota(in.begin(), in.end(), turn * 100 + rank);
        if ((turn + rank) % 3 != 0) {
          ASSERT_TRUE(succeeds(uzip_start(&request)));
          ASSERT_TRUE(succeeds(uzip_wait(&request)));
          ASSERT_NE(request, UZIP_REQUEST_NULL);
        } else {
          ASSERT_TRUE(succeeds(uzip_allreduce(in.data(), out.data(), count, UZIP_INT32, UZIP_SUM, comm)));
        }
        for (size_t i = 0; i < count; ++i)
          ASSERT_EQ(out[i], static_cast<int32_t>(kRanks * (turn * 100 + static_cast<int>(i)) + 3));
      }
      ASSERT_TRUE(succeeds(uzip_request_free(&request)));
      EXPECT_EQ(request, UZIP_REQUEST_NULL);
    });
  }
}

/// Every collective, several persistent operations of it in flight at a time, with and without codec.
TEST(Persistent, EveryCollective) {
  ApiJob job(kRanks, mixed_wire());
  for (uzip_coll_t coll : {UZIP_ALLREDUCE, UZIP_REDUCE_SCATTER, UZIP_REDUCE_SCATTERV, UZIP_ALLGATHER,
                           UZIP_ALLGATHERV}) {
    for (const char* codec : {"raw", "lev"}) {
      const bool v = coll == UZIP_REDUCE_SCATTERV || coll == UZIP_ALLGATHERV;
      std::vector<size_t> counts(kRanks, 30000);
      if (v) counts = {30000, 0, 17};
      CollCase first({coll, UZIP_FP32, UZIP_SUM, counts, Placement::kApart, Values::kExact, 1});
      CollCase second({coll, UZIP_FP32, UZIP_SUM, counts, Placement::kApart, Values::kExact, 2});
      uzip_options_t options = UZIP_OPTIONS_INIT;
      options.codec = codec;
      options.chunk_bytes = 8192;
      job.run([&](int rank, uzip_comm_t comm) {
        const uzip_coll_args_t calls[2] = {first.args(rank, &options), second.args(rank, &options)};
        uzip_request_t requests[2];
        for (int k = 0; k < 2; ++k) ASSERT_TRUE(succeeds(uzip_coll_init(&calls[k], comm, &requests[k])));
        for (int turn = 0; turn < 3; ++turn) {
          ASSERT_TRUE(succeeds(uzip_startall(2, requests)));
          ASSERT_TRUE(succeeds(uzip_waitall(2, requests, nullptr)));
        }
        for (uzip_request_t& request : requests) ASSERT_TRUE(succeeds(uzip_request_free(&request)));
      });
      for (int rank = 0; rank < kRanks; ++rank) {
        EXPECT_EQ(first.check(rank), "") << first.describe() << codec;
        EXPECT_EQ(second.check(rank), "") << second.describe() << codec;
      }
    }
  }
}

TEST(Persistent, SendsAndReceives) {
  ApiJob job(kRanks, mixed_wire());
  job.run([](int rank, uzip_comm_t comm) {
    const int right = (rank + 1) % kRanks, left = (rank + kRanks - 1) % kRanks;
    constexpr size_t kCount = 50000;
    std::vector<int32_t> out(kCount), in(kCount);
    uzip_request_t requests[2];
    ASSERT_TRUE(succeeds(uzip_recv_init(in.data(), kCount, UZIP_INT32, left, 3, comm, &requests[0])));
    ASSERT_TRUE(succeeds(uzip_send_init(out.data(), kCount, UZIP_INT32, right, 3, comm, &requests[1])));
    for (int turn = 0; turn < 10; ++turn) {
      std::iota(out.begin(), out.end(), turn + rank);
      ASSERT_TRUE(succeeds(uzip_startall(2, requests)));
      ASSERT_TRUE(succeeds(uzip_waitall(2, requests, nullptr)));
      std::vector<int32_t> expected(kCount);
      std::iota(expected.begin(), expected.end(), turn + left);
      ASSERT_EQ(in, expected);
    }
    for (uzip_request_t& request : requests) ASSERT_TRUE(succeeds(uzip_request_free(&request)));
  });
}

TEST(Persistent, WrongUseIsFound) {
  ApiJob job(1);
  int32_t in = 4, out = 0;
  uzip_request_t request;
  EXPECT_TRUE(fails(uzip_allreduce_init(&in, nullptr, 1, UZIP_INT32, UZIP_SUM, job.comm(0), &request),
                    UZIP_ERR_INVALID, "dst is NULL"));
  EXPECT_EQ(request, UZIP_REQUEST_NULL);
  EXPECT_TRUE(fails(uzip_start(&request), UZIP_ERR_INVALID, "not valid"));
  EXPECT_EQ(uzip_request_free(&request), UZIP_OK);
  ASSERT_TRUE(succeeds(uzip_allreduce_init(&in, &out, 1, UZIP_INT32, UZIP_SUM, job.comm(0), &request)));

  // Not started: complete, and stays.
  int done = 0;
  EXPECT_EQ(uzip_wait(&request), UZIP_OK);
  EXPECT_EQ(uzip_test(&request, &done), UZIP_OK);
  EXPECT_EQ(done, 1);
  ASSERT_NE(request, UZIP_REQUEST_NULL);
  EXPECT_EQ(out, 0);

  ASSERT_TRUE(succeeds(uzip_start(&request)));
  EXPECT_TRUE(fails(uzip_start(&request), UZIP_ERR_INVALID, "in flight"));
  EXPECT_TRUE(fails(uzip_request_free(&request), UZIP_ERR_INVALID, "in flight"));
  EXPECT_EQ(uzip_wait(&request), UZIP_OK);
  EXPECT_EQ(out, 4);
  uzip_request_t copy = request;
  EXPECT_EQ(uzip_request_free(&request), UZIP_OK);
  EXPECT_TRUE(fails(uzip_start(&copy), UZIP_ERR_INVALID, "not valid"));
}

TEST(Persistent, OutlivesItsCommunicator) {
  ApiJob job(2);
  job.run([](int rank, uzip_comm_t comm) {
    uzip_comm_t child;
    ASSERT_TRUE(succeeds(uzip_comm_dup(comm, &child)));
    int32_t in = rank, out = 0, never = 0;
    uzip_request_t request, receive;
    ASSERT_TRUE(succeeds(uzip_allreduce_init(&in, &out, 1, UZIP_INT32, UZIP_SUM, child, &request)));
    ASSERT_TRUE(succeeds(uzip_recv_init(&never, 1, UZIP_INT32, 1 - rank, 0, child, &receive)));
    ASSERT_TRUE(succeeds(uzip_start(&request)));
    ASSERT_TRUE(succeeds(uzip_wait(&request)));
    ASSERT_TRUE(succeeds(uzip_start(&receive)));
    ASSERT_TRUE(succeeds(uzip_comm_free(&child)));
    EXPECT_TRUE(fails(uzip_wait(&receive), UZIP_ERR_INVALID, "freed"));
    EXPECT_TRUE(fails(uzip_start(&receive), UZIP_ERR_INVALID, "freed"));
    EXPECT_TRUE(fails(uzip_start(&request), UZIP_ERR_INVALID, "freed"));
    EXPECT_EQ(uzip_request_free(&request), UZIP_OK);
    EXPECT_EQ(uzip_request_free(&receive), UZIP_OK);
  });
}

/// After an error it can be started again.
TEST(Persistent, GoesOnAfterAMismatch) {
  const QuietLog quiet;
  ApiJob job(2, mixed_wire());
  job.run([](int rank, uzip_comm_t comm) {
    std::vector<float> in(40000, 1), out(40000);
    uzip_request_t request;
    ASSERT_TRUE(succeeds(uzip_allreduce_init(in.data(), out.data(), 40000, UZIP_FP32, UZIP_SUM, comm,
                                             &request)));
    for (int turn = 0; turn < 6; ++turn) {
      if (turn % 2 == 0 && rank == 1) {
        EXPECT_EQ(uzip_allreduce(in.data(), out.data(), 39999, UZIP_FP32, UZIP_SUM, comm),
                  UZIP_ERR_MISMATCH);
        continue;
      }
      ASSERT_TRUE(succeeds(uzip_start(&request)));
      EXPECT_EQ(uzip_wait(&request), turn % 2 == 0 ? UZIP_ERR_MISMATCH : UZIP_OK);
      if (turn % 2 == 1) {
        EXPECT_EQ(out, std::vector<float>(40000, 2));
      }
    }
    EXPECT_TRUE(succeeds(uzip_request_free(&request)));
  });
}

}  // namespace
}  // namespace uzip
