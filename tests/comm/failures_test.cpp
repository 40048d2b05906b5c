// Ranks that die at any moment, sends that fail, receives that never end, and ranks that don't
// come: everybody else gets a status that names the rank, soon, and nothing is left behind.
#include "comm/coll_case.hpp"
#include "comm/loopback_job.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace uzip {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

LoopbackOptions any_wire(uint64_t seed) {
  LoopbackOptions wire;
  wire.seed = seed;
  wire.longest_delay = 6;
  wire.reorder_senders = true;
  wire.random_modes = true;
  wire.eager_limit = 800;
  wire.notice_delay = static_cast<int>(seed % 3) * 10;
  return wire;
}

struct Form {
  uzip_coll_t coll;
  const char* algorithm;
  const char* codec;
  size_t count;
};
constexpr Form kForms[] = {
    {UZIP_ALLREDUCE, "two_shot", "raw", 30}, {UZIP_ALLREDUCE, "ring", "raw", 2000},
    {UZIP_ALLREDUCE, "ring", "lev", 9000},   {UZIP_REDUCE_SCATTER, "ring", "raw", 400},
    {UZIP_ALLGATHER, "bruck", "raw", 100},   {UZIP_ALLGATHER, "ring", "lev", 5000},
    {UZIP_BARRIER, nullptr, nullptr, 0}};

uzip_options_t options_of(const Form& form) {
  uzip_options_t options = UZIP_OPTIONS_INIT;
  options.algorithm = form.algorithm;
  options.codec = form.codec;
  options.chunk_bytes = 4096;
  return options;
}

CaseShape shape_of(const Form& form, int ranks) {
  CaseShape shape;
  shape.coll = form.coll == UZIP_BARRIER ? UZIP_ALLREDUCE : form.coll;
  shape.counts.assign(static_cast<size_t>(ranks), form.count);
  return shape;
}

bool done(const std::vector<Started>& requests) {
  return std::all_of(requests.begin(), requests.end(),
                     [](const Started& started) { return started.request->done(); });
}

class Deaths : public testing::TestWithParam<size_t> {
 protected:
  static constexpr int kRanks = 3;
  const Form form_ = kForms[GetParam()];
  const uzip_options_t options_ = options_of(form_);

  uzip_coll_args_t call(CollCase& test, int rank) {
    uzip_coll_args_t args = test.args(rank, &options_);
    args.coll = form_.coll;
    return args;
  }

  // Steps of a call in which nobody dies.
  uint64_t steps_of_call(uint64_t seed) {
    LoopbackJob job(kRanks, any_wire(seed));
    CollCase test(shape_of(form_, kRanks));
    EXPECT_EQ(expect_all(job.run([&](int rank) { return call(test, rank); }), UZIP_OK), "");
    return job.fabric().steps();
  }

  // The victim dies at this step of the fabric.
  void run_death(uint64_t seed, int victim, uint64_t step) {
    LoopbackJob job(kRanks, any_wire(seed));
    job.fabric().kill_at(victim, step);
    CollCase test(shape_of(form_, kRanks));
    std::vector<Started> survivors;
    Request* lost = nullptr;
    for (int rank = 0; rank < kRanks; ++rank) {
      job.step();
      if (rank == victim && job.fabric().steps() >= step) continue;
      Result<Request*> request = job.start(rank, call(test, rank));
      if (!request.ok()) {
        EXPECT_EQ(request.status().code(), UZIP_ERR_PEER);
      } else if (rank == victim) {
        lost = *request;
      } else {
        survivors.push_back({rank, *request});
      }
    }
    ASSERT_TRUE(job.run_until([&] { return done(survivors) && job.fabric().steps() > step; }));
    expect_statuses(job.finish(survivors), survivors, test, victim);
    expect_no_more_calls(job, test, victim);
    if (lost != nullptr) lost->detach(), job.engine(victim).release(lost);
  }

  void expect_statuses(const std::vector<Status>& statuses, const std::vector<Started>& survivors,
                       const CollCase& test, int victim) {
    for (size_t i = 0; i < statuses.size(); ++i) {
      if (statuses[i].ok()) {  // it had all that it needs
        ASSERT_EQ(form_.coll == UZIP_BARRIER ? "" : test.check(survivors[i].rank), "");
        continue;
      }
      ASSERT_EQ(statuses[i].code(), UZIP_ERR_PEER) << statuses[i].message();
      const std::string name = "rank " + std::to_string(victim);
      ASSERT_NE(statuses[i].message().find(name), std::string::npos) << statuses[i].message();
    }
  }

  // Everybody has heard of it, and nothing of the call is left.
  void expect_no_more_calls(LoopbackJob& job, CollCase& test, int victim) {
    job.settle();
    for (int rank = 0; rank < kRanks; ++rank) {
      if (rank == victim) continue;
      const Result<Request*> request = job.start(rank, call(test, rank));
      ASSERT_FALSE(request.ok());
      ASSERT_EQ(request.status().code(), UZIP_ERR_PEER);
      ASSERT_NE(request.status().message().find("rank " + std::to_string(victim)),
                std::string::npos);
      EXPECT_EQ(job.engine(rank).buffers().in_use_bytes(), 0u);
    }
  }
};

TEST_P(Deaths, AtEveryStep) {
  const QuietLog quiet;
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const uint64_t steps = steps_of_call(seed) + 20;
    const uint64_t stride = std::max<uint64_t>(steps / 80, 1);
    for (uint64_t step = 1 + seed % stride; step < steps; step += stride) {
      for (int victim = 0; victim < kRanks; ++victim) run_death(seed, victim, step);
      if (HasFatalFailure()) FAIL() << "seed " << seed << ", step " << step;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, Deaths, testing::Range(size_t{0}, std::size(kForms)));

// A rank's number in a communicator is not its process's number.
TEST(Failures, NameTheRankOfTheCommunicator) {
  const QuietLog quiet;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    LoopbackJob job(4, any_wire(seed));
    std::vector<CommunicatorHandle> comm = job.make_communicator({3, 2, 1, 0});
    job.join(comm);
    const std::vector<float> in(3000, 1);
    std::vector<float> out(3000 * 4);
    std::vector<Started> survivors;
    for (int process = 0; process < 3; ++process) {
      const auto call = make_call(UZIP_ALLREDUCE, in.data(), out.data() + 3000 * process, 3000);
      survivors.push_back(
          {process, *job.start(process, call, comm[static_cast<size_t>(process)].comm.get())});
    }
    job.fabric().kill(3);
    for (const Status& status : job.finish(survivors)) {
      EXPECT_EQ(status.code(), UZIP_ERR_PEER);
      EXPECT_NE(status.message().find("rank 0"), std::string::npos) << status.message();
    }
    job.leave(comm);
  }
}

TEST(Failures, PointToPointWithADeadRank) {
  const QuietLog quiet;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    LoopbackJob job(3, any_wire(seed));
    const std::vector<float> in(3000, 1);
    std::vector<float> out(3000);
    std::vector<Started> started = {
        {0, *job.start_recv(0, out.data(), 3000, UZIP_FP32, 2, 0)},
        {1, *job.start_send(1, in.data(), 3000, UZIP_FP32, 2, 0)},
        {1, *job.start_recv(1, out.data(), 3000, UZIP_FP32, 0, 0)}};  // of the living
    job.fabric().kill(2);
    for (const Status& status : job.finish(started)) {
      if (status.ok()) continue;  // a send may be done before its receiver dies
      EXPECT_EQ(status.code(), UZIP_ERR_PEER);
      EXPECT_NE(status.message().find("rank 2"), std::string::npos) << status.message();
    }
    EXPECT_FALSE(job.start_send(0, in.data(), 1, UZIP_FP32, 1, 0).ok());
  }
}

// A receive that has begun may never end: the call is given up after a while, the buffers that the
// transport may still write to are kept.
TEST(Failures, ReceivesThatNeverEnd) {
  const QuietLog quiet;
  LoopbackOptions wire;
  wire.slow_receives = true;
  wire.park_receives_of_dead = true;
  wire.eager_limit = 0;
  LoopbackJob job(2, wire);
  std::vector<float> in(50000, 1), out(50000);
  const Started receive = {0, *job.start_recv(0, out.data(), out.size(), UZIP_FP32, 1, 0)};
  Request* send = *job.start_send(1, in.data(), in.size(), UZIP_FP32, 0, 0);
  job.engine(0).progress();  // the body is on its way
  job.fabric().kill(1);
  ASSERT_TRUE(job.run_until([&] { return receive.request->failed(); }));
  EXPECT_FALSE(receive.request->done());
  EXPECT_FALSE(receive.request->drained());
  const Clock::time_point start = Clock::now();
  while (!receive.request->done() && seconds_since(start) < 10) job.engine(0).progress();
  EXPECT_TRUE(receive.request->done());
  EXPECT_LT(seconds_since(start), 3);
  EXPECT_EQ(receive.request->status().code(), UZIP_ERR_PEER);
  job.engine(0).release(receive.request);
  // It is not used again.
  EXPECT_NE(job.engine(0).acquire(), receive.request);
  send->detach();
}

TEST(Failures, SendsThatFail) {
  const QuietLog quiet;
  constexpr int kRanks = 3;
  for (const Form& form : kForms) {
    if (form.coll == UZIP_BARRIER) continue;
    const uzip_options_t options = options_of(form);
    LoopbackJob job(kRanks, any_wire(5));
    for (uint64_t n = 0; n < 12; ++n) {
      for (int from = 0; from < kRanks; ++from) {
        const int to = (from + 1) % kRanks;
        job.fabric().fail_send(from, to, n, error(UZIP_ERR_TRANSPORT, "the cable is cut"));
        CollCase test(shape_of(form, kRanks));
        const auto statuses = job.run([&](int rank) { return test.args(rank, &options); });
        for (int rank = 0; rank < kRanks; ++rank) {
          const Status& status = statuses[static_cast<size_t>(rank)];
          if (status.ok()) {
            ASSERT_EQ(test.check(rank), "");
          } else {
            ASSERT_EQ(status.code(), UZIP_ERR_TRANSPORT) << status.message();
            ASSERT_NE(status.message().find("the cable is cut"), std::string::npos);
            ASSERT_NE(status.message().find("rank "), std::string::npos);
          }
        }
        // The failure may be still to come: after some calls it has.
        for (int turn = 0; turn < 12; ++turn) {
          CollCase again(shape_of(form, kRanks));
          job.run([&](int rank) { return again.args(rank, &options); });
        }
        ASSERT_EQ(job.works(), "");
      }
    }
    job.settle();
    EXPECT_EQ(job.fabric().unfinished(), 0u);
  }
}

// ---- Deadlines ----

Config with_timeouts(double warn, double limit) {
  Config config;
  config.timeout = warn;
  config.timeout_limit = limit;
  return config;
}

Status wait_for(LoopbackJob& job, int rank, Result<Request*> request) {
  if (!request.ok()) return request.status();
  std::unique_lock lock(job.engine(rank).mutex());
  job.engine(rank).wait(**request, lock);
  const Status status = (*request)->status();
  job.engine(rank).release(*request);
  return status;
}

TEST(Deadlines, NameWhoIsMissing) {
  const QuietLog quiet;
  constexpr int kRanks = 4, kMissing = 2;
  LoopbackJob job(kRanks, {}, with_timeouts(0, 0.1));
  uzip_options_t options = UZIP_OPTIONS_INIT;
  options.algorithm = "one_shot";
  const std::vector<float> in(10, 1);
  std::vector<float> out(10 * kRanks);
  std::vector<Status> statuses(kRanks);
  const auto call = [&](int rank) {
    auto args = make_call(UZIP_ALLREDUCE, in.data(), out.data() + 10 * rank, 10);
    args.options = &options;
    return args;
  };
  job.on_all_ranks([&](int rank) {
    if (rank == kMissing) return;
    statuses[static_cast<size_t>(rank)] = wait_for(job, rank, job.start(rank, call(rank)));
  });
  for (int rank = 0; rank < kRanks; ++rank) {
    const Status& status = statuses[static_cast<size_t>(rank)];
    if (rank == kMissing) continue;
    EXPECT_EQ(status.code(), UZIP_ERR_TIMEOUT);
    EXPECT_NE(status.message().find("rank(s) 2 "), std::string::npos) << status.message();
  }
  // The one that comes late may find all that it needs.
  const Status late = wait_for(job, kMissing, job.start(kMissing, call(kMissing)));
  EXPECT_TRUE(late.ok() || late.code() == UZIP_ERR_TIMEOUT) << late.message();
  EXPECT_EQ(job.works(), "");
}

TEST(Deadlines, OfMessages) {
  const QuietLog quiet;
  LoopbackOptions wire;
  wire.eager_limit = 0;
  LoopbackJob job(2, wire, with_timeouts(0, 0.05));
  std::vector<float> in(10, 1), out(10);
  const Status received = wait_for(job, 0, job.start_recv(0, out.data(), 10, UZIP_FP32, 1, 0));
  EXPECT_EQ(received.code(), UZIP_ERR_TIMEOUT);
  EXPECT_NE(received.message().find("rank(s) 1 "), std::string::npos) << received.message();
  const Status sent = wait_for(job, 0, job.start_send(0, in.data(), 10, UZIP_FP32, 1, 0));
  EXPECT_EQ(sent.code(), UZIP_ERR_TIMEOUT);
  EXPECT_NE(sent.message().find("rank(s) 1 "), std::string::npos) << sent.message();
  // What was given up is not received later.
  job.settle();
  const Started late = {1, *job.start_recv(1, out.data(), 10, UZIP_FP32, 0, 0)};
  EXPECT_EQ(expect_all(job.finish({late}), UZIP_ERR_TIMEOUT, "rank 0 reports"), "");
  EXPECT_EQ(job.works(), "");
}

// Also when something else moves all the time.
TEST(Deadlines, PassWhileOthersAreBusy) {
  const QuietLog quiet;
  Meddling meddling;
  meddling.always_moving = true;
  LoopbackJob job(2, {}, with_timeouts(0, 0.05), meddling);
  float value = 0;
  const Clock::time_point start = Clock::now();
  const Status status = wait_for(job, 0, job.start_recv(0, &value, 1, UZIP_FP32, 1, 0));
  EXPECT_EQ(status.code(), UZIP_ERR_TIMEOUT);
  EXPECT_LT(seconds_since(start), 5);
}

// A rank that called nothing, and is sent nothing, is asked after UZIP_TIMEOUT.
TEST(Deadlines, AskWhoIsSilent) {
  const QuietLog quiet;
  LoopbackJob job(3, {}, with_timeouts(0.05, 20));
  uzip_options_t options = UZIP_OPTIONS_INIT;
  options.algorithm = "recursive_doubling";
  const std::vector<float> in(10, 1);
  std::vector<float> out(30);
  std::vector<Status> statuses(3);
  std::atomic<int> waiting{2};
  job.on_all_ranks([&](int rank) {
    const size_t count = rank == 1 ? 0 : 10;
    auto args = make_call(UZIP_ALLREDUCE, in.data(), out.data() + 10 * rank, count);
    args.options = &options;
    statuses[static_cast<size_t>(rank)] = wait_for(job, rank, job.start(rank, args));
    if (rank != 1) --waiting;
    while (waiting > 0) {
      const std::lock_guard lock(job.engine(rank).mutex());
      job.engine(rank).progress();
    }
  });
  EXPECT_TRUE(statuses[1].ok());
  for (int rank : {0, 2}) {
    const Status& status = statuses[static_cast<size_t>(rank)];
    EXPECT_EQ(status.code(), UZIP_ERR_MISMATCH) << status.message();
    EXPECT_NE(status.message().find("rank 1 called allreduce of 0"), std::string::npos);
  }
}

}  // namespace
}  // namespace uzip
