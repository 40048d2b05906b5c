// The thread that moves nonblocking calls forward while the program computes.
#include "comm/progress_thread.hpp"

#include "codec/samples.hpp"
#include "comm/loopback_job.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

namespace uzip {
namespace {

using Outcome = ProgressThread::Outcome;

bool soon(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

TEST(ProgressThread, SleepsUntilItIsWoken) {
  std::atomic<int> turns{0};
  std::atomic<int> left{0};
  ProgressThread thread([&] {
    ++turns;
    return left-- > 0 ? Outcome::kMoved : Outcome::kNothing;
  });
  ASSERT_TRUE(soon([&] { return turns == 1; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(turns, 1);
  left = 5;
  thread.wake();
  EXPECT_TRUE(soon([&] { return turns == 7; }));
}

TEST(ProgressThread, LooksAgainWhileSomethingIsInFlight) {
  std::atomic<int> turns{0};
  ProgressThread thread([&] { return ++turns, Outcome::kIdle; });
  EXPECT_TRUE(soon([&] { return turns > 200; }));
}

TEST(ProgressThread, OutlivesAnException) {
  std::atomic<int> turns{0};
  ProgressThread thread([&]() -> Outcome {
    if (++turns < 100) throw std::bad_alloc();
    return Outcome::kNothing;
  });
  EXPECT_TRUE(soon([&] { return turns == 100; }));
}

/// Nobody waits and nobody tests, and yet the calls end.
TEST(ProgressThread, CallsEndWhileTheProgramComputes) {
  constexpr int kRanks = 3;
  constexpr size_t kCount = 300000;
  Config config;
  config.codec = "lev";
  config.codec_threads = 1;
  LoopbackJob job(kRanks, {}, config);
  std::vector<std::vector<uint8_t>> in;
  std::vector<std::vector<float>> out(kRanks, std::vector<float>(kCount));
  std::vector<Request*> requests(kRanks);
  for (int rank = 0; rank < kRanks; ++rank) {
    const auto r = static_cast<size_t>(rank);
    in.push_back(make_sample(UZIP_FP32, SampleKind::kGaussian, kCount, static_cast<uint32_t>(rank)));
    const std::lock_guard lock(job.engine(rank).mutex());
    const auto request = job.start(rank, make_call(UZIP_ALLREDUCE, in[r].data(), out[r].data(), kCount));
    ASSERT_TRUE(request.ok());
    requests[r] = *request;
    EXPECT_TRUE((*request)->is_long());
    job.engine(rank).progress_in_background();
  }
  for (int rank = 0; rank < kRanks; ++rank) {
    Engine& engine = job.engine(rank);
    EXPECT_TRUE(soon([&] {
      const std::lock_guard lock(engine.mutex());
      return requests[static_cast<size_t>(rank)]->done();
    }));
    const std::lock_guard lock(engine.mutex());
    EXPECT_TRUE(requests[static_cast<size_t>(rank)]->status().ok());
    engine.release(requests[static_cast<size_t>(rank)]);
  }
  EXPECT_EQ(std::memcmp(out[0].data(), out[1].data(), kCount * sizeof(float)), 0);
  EXPECT_EQ(std::memcmp(out[0].data(), out[2].data(), kCount * sizeof(float)), 0);
}

}  // namespace
}  // namespace uzip
