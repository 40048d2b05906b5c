// Many calls in flight, several communicators at a time, and numbers that wrap around.
#include "comm/coll_case.hpp"
#include "comm/communicator_inspector.hpp"
#include "comm/loopback_job.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <string>
#include <utility>
#include <vector>

namespace uzip {
namespace {

LoopbackOptions any_wire(uint64_t seed) {
  LoopbackOptions wire;
  wire.seed = seed;
  wire.longest_delay = 15;
  wire.reorder_senders = true;
  wire.reorder_messages = seed % 2 == 1;
  wire.random_modes = true;
  wire.eager_limit = 1000;
  return wire;
}

/// The k-th of a long row of different calls.
CaseShape shape_of_call(size_t k, size_t ranks) {
  constexpr uzip_coll_t kColls[] = {UZIP_ALLREDUCE, UZIP_ALLGATHER,  UZIP_REDUCE_SCATTERV,
                                    UZIP_ALLREDUCE, UZIP_ALLGATHERV, UZIP_REDUCE_SCATTER};
  CaseShape shape;
  shape.coll = kColls[k % std::size(kColls)];
  shape.type = k % 2 == 0 ? UZIP_BF16 : UZIP_FP32;
  shape.counts.assign(ranks, k % 7 == 0 ? 3000 : k % 11);
  shape.seed = k;
  return shape;
}

using Cases = std::deque<CollCase>;

Cases make_cases(size_t calls, int ranks) {
  Cases cases;
  for (size_t k = 0; k < calls; ++k)
    cases.emplace_back(shape_of_call(k, static_cast<size_t>(ranks)));
  return cases;
}

/// Every rank starts all calls before any has to be done, each at its own pace.
std::vector<Started> start_all(LoopbackJob& job, Cases& cases,
                               const std::vector<CommunicatorHandle>* comms = nullptr) {
  const auto ranks = static_cast<size_t>(job.size());
  std::vector<size_t> next(ranks);
  std::vector<Started> started;
  while (started.size() < cases.size() * ranks) {
    const size_t rank = job.random()() % ranks;
    if (next[rank] == cases.size()) continue;
    Communicator* comm = comms ? (*comms)[rank].comm.get() : nullptr;
    const auto r = static_cast<int>(rank);
    started.push_back({r, *job.start(r, cases[next[rank]++].args(r), comm)});
    if (job.random()() % 3 == 0) job.step();
  }
  return started;
}

TEST(Communicator, ManyCallsInFlight) {
  for (int ranks : {2, 3, 5}) {
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      LoopbackJob job(ranks, any_wire(seed));
      Cases cases = make_cases(150, ranks);
      std::vector<Started> started = start_all(job, cases);
      std::shuffle(started.begin(), started.end(), job.random());
      ASSERT_EQ(expect_all(job.finish(started), UZIP_OK), "");
      for (const CollCase& test : cases) ASSERT_EQ(test.check(), "");
      job.settle();
      EXPECT_EQ(job.fabric().unfinished(), 0u);
      for (int rank = 0; rank < ranks; ++rank) {
        EXPECT_EQ(CommunicatorInspector(job.comm(rank)).remembered(), 0u);
      }
    }
  }
}

// The same call so often that only the numbers tell them apart.
TEST(Communicator, EqualCallsInFlight) {
  constexpr int kRanks = 3;
  LoopbackJob job(kRanks, any_wire(1));
  Cases cases;
  for (size_t k = 0; k < 100; ++k) {
    CaseShape shape = shape_of_call(0, kRanks);
    shape.seed = k;
    shape.counts.assign(kRanks, 10);
    cases.emplace_back(shape);
  }
  ASSERT_EQ(expect_all(job.finish(start_all(job, cases)), UZIP_OK), "");
  for (const CollCase& test : cases) ASSERT_EQ(test.check(), "");
}

TEST(Communicator, NumbersWrapAround) {
  constexpr int kRanks = 3;
  for (uint32_t first : {0xffffffe0u, 0x7fffffe0u, 0xfffffffeu}) {
    LoopbackJob job(kRanks, any_wire(first % 16));
    for (int rank = 0; rank < kRanks; ++rank) {
      CommunicatorInspector(job.comm(rank)).set_sequence(first);
    }
    Cases cases = make_cases(100, kRanks);
    std::vector<Started> started = start_all(job, cases);
    std::vector<int32_t> in(100), out(100);
    for (size_t i = 0; i < in.size(); ++i) {
      in[i] = static_cast<int32_t>(i);
      started.push_back({0, *job.start_send(0, &in[i], 1, UZIP_INT32, 1, 4)});
    }
    for (int32_t& value : out) {
      started.push_back({1, *job.start_recv(1, &value, 1, UZIP_INT32, 0, 4)});
    }
    ASSERT_EQ(expect_all(job.finish(started), UZIP_OK), "");
    for (const CollCase& test : cases) ASSERT_EQ(test.check(), "");
    EXPECT_EQ(in, out);
    job.settle();
    EXPECT_EQ(job.fabric().unfinished(), 0u);
  }
}

// A mismatch is found, and told, at the place where the numbers wrap, too.
TEST(Communicator, MismatchWhereNumbersWrap) {
  const QuietLog quiet;
  LoopbackJob job(2, any_wire(1));
  for (int rank = 0; rank < 2; ++rank) {
    CommunicatorInspector(job.comm(rank)).set_sequence(0xfffffffdu);
  }
  std::vector<float> in(10), out(20);
  for (int turn = 0; turn < 6; ++turn) {
    const auto statuses = job.run([&](int rank) {
      return make_call(UZIP_ALLREDUCE, in.data(), out.data() + 10 * rank,
                       static_cast<size_t>(5 + rank));
    });
    ASSERT_EQ(expect_all(statuses, UZIP_ERR_MISMATCH, "where rank"), "");
  }
  EXPECT_EQ(job.works(), "");
}

// Ranks use their communicators in different orders.
TEST(Communicator, SeveralAtATime) {
  constexpr int kRanks = 4, kComms = 3;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    LoopbackJob job(kRanks, any_wire(seed));
    std::vector<std::vector<CommunicatorHandle>> comms(kComms);
    std::vector<Cases> cases;
    for (auto& comm : comms) {
      comm = job.make_communicator();
      cases.push_back(make_cases(40, kRanks));
    }
    for (auto& comm : comms) job.join(comm);
    std::vector<Started> started;
    std::vector<std::vector<size_t>> next(kRanks, std::vector<size_t>(kComms));
    while (started.size() < kRanks * kComms * 40) {
      const auto rank = static_cast<size_t>(job.random()() % kRanks);
      const auto c = static_cast<size_t>(job.random()() % kComms);
      if (next[rank][c] == 40) continue;
      const auto r = static_cast<int>(rank);
      const uzip_coll_args_t call = cases[c][next[rank][c]++].args(r);
      started.push_back({r, *job.start(r, call, comms[c][rank].comm.get())});
      if (job.random()() % 4 == 0) job.step();
    }
    ASSERT_EQ(expect_all(job.finish(started), UZIP_OK), "");
    for (const Cases& some : cases) {
      for (const CollCase& test : some) ASSERT_EQ(test.check(), "");
    }
    for (auto& comm : comms) job.leave(comm);
    job.settle();
    EXPECT_EQ(job.fabric().unfinished(), 0u);
  }
}

// Some ranks have made the communicator and use it, others don't know it yet.
TEST(Communicator, MessagesThatComeBeforeIt) {
  constexpr int kRanks = 3;
  for (bool fleeting : {false, true}) {
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      Meddling meddling;
      meddling.fleeting = fleeting;
      LoopbackJob job(kRanks, any_wire(seed), Config(), meddling);
      std::vector<CommunicatorHandle> comm = job.make_communicator();
      Cases cases = make_cases(20, kRanks);
      std::vector<Started> started;
      const int late = static_cast<int>(seed % kRanks);
      for (int rank = 0; rank < kRanks; ++rank) {
        if (rank == late) continue;
        job.join(comm, rank);
        for (CollCase& test : cases) {
          Communicator* mine = comm[static_cast<size_t>(rank)].comm.get();
          started.push_back({rank, *job.start(rank, test.args(rank), mine)});
        }
      }
      job.settle();
      job.join(comm, late);
      for (CollCase& test : cases) {
        Communicator* mine = comm[static_cast<size_t>(late)].comm.get();
        started.push_back({late, *job.start(late, test.args(late), mine)});
      }
      ASSERT_EQ(expect_all(job.finish(started), UZIP_OK), "") << fleeting << seed;
      for (const CollCase& test : cases) ASSERT_EQ(test.check(), "");
      job.leave(comm);
      job.settle();
      EXPECT_EQ(job.fabric().unfinished(), 0u);
    }
  }
}

// What still comes for a communicator that is gone is dropped, also when its place has a new one.
TEST(Communicator, MessagesThatComeAfterIt) {
  const QuietLog quiet;
  LoopbackJob job(2, any_wire(2));
  std::vector<float> in(1000, 1), out(1000);
  std::vector<CommunicatorHandle> old = job.make_communicator();
  job.join(old);
  Request* request =
      *job.start(0, make_call(UZIP_ALLREDUCE, in.data(), out.data(), 1000), old[0].comm.get());
  job.leave(old, 1);
  std::vector<CommunicatorHandle> fresh = job.make_communicator();
  job.join(fresh, 1);
  job.settle();
  EXPECT_FALSE(request->done());
  job.leave(old, 0);
  job.settle();
  EXPECT_TRUE(request->done());
  EXPECT_EQ(request->status().code(), UZIP_ERR_INVALID);
  EXPECT_NE(request->status().message().find("freed"), std::string::npos);
  job.engine(0).release(request);
  job.join(fresh, 0);
  const std::vector<int32_t> ones(5, 1);
  std::vector<int32_t> sums(10);
  std::vector<Started> started;
  for (int rank = 0; rank < 2; ++rank) {
    const auto call = make_call(UZIP_ALLREDUCE, ones.data(), sums.data() + 5 * rank, 5, UZIP_INT32);
    started.push_back({rank, *job.start(rank, call, fresh[static_cast<size_t>(rank)].comm.get())});
  }
  EXPECT_EQ(expect_all(job.finish(started), UZIP_OK), "");
  EXPECT_EQ(sums, std::vector<int32_t>(10, 2));
  job.leave(fresh);
  job.settle();
  EXPECT_EQ(job.fabric().unfinished(), 0u);
}

TEST(Communicator, FreedWithMessagesHeld) {
  LoopbackJob job(2, any_wire(2));
  std::vector<CommunicatorHandle> comm = job.make_communicator();
  const std::vector<float> in(5000, 1);
  std::vector<Started> sends;
  for (int tag = 0; tag < 5; ++tag) {
    sends.push_back({0, *job.start_send(0, in.data(), in.size(), UZIP_FP32, 1, tag, nullptr,
                                        comm[0].comm.get())});
  }
  job.join(comm);
  job.settle();
  job.leave(comm, 1);
  EXPECT_EQ(expect_all(job.finish(sends), UZIP_OK), "");
  job.leave(comm, 0);
  job.settle();
  EXPECT_EQ(job.fabric().unfinished(), 0u);
}

TEST(Communicator, NumbersOfFreedOnesAreUsedAgain) {
  LoopbackJob job(2);
  uint32_t highest = 0;
  std::vector<uint32_t> seen;
  for (int turn = 0; turn < 5000; ++turn) {
    std::vector<CommunicatorHandle> comm = job.make_communicator();
    job.join(comm);
    highest = std::max(highest, comm[0].number & 0xfffff);
    seen.push_back(comm[0].number);
    job.leave(comm);
  }
  EXPECT_EQ(highest, 1u);
  // A number comes back after thousands of others only.
  EXPECT_EQ(std::count(seen.begin(), seen.end(), seen[0]), 2);
  EXPECT_EQ(job.works(), "");
}

}  // namespace
}  // namespace uzip
