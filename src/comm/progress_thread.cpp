#include "comm/progress_thread.hpp"

#include "comm/quiet_thread.hpp"

#include <chrono>

namespace uzip {
namespace {

/// Idle turns in a row before the thread begins to pause between them.
constexpr int kEagerTurns = 20;
constexpr std::chrono::microseconds kPause{50};

}  // namespace

ProgressThread::ProgressThread(std::function<Outcome()> turn) : turn_(std::move(turn)) {
  thread_ = start_quiet_thread("uzip-progress", [this] { run(); });
}

ProgressThread::~ProgressThread() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void ProgressThread::wake() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(awake_, true)) return;
  wake_.notify_one();
}

/// An exception ends neither the thread nor the process: the call that waits will meet it, too.
ProgressThread::Outcome ProgressThread::turn() try {
  return turn_();
} catch (...) {
  return Outcome::kIdle;
}

void ProgressThread::run() {
  std::unique_lock lock(mutex_);
  int idle = 0;
  while (!ending_) {
    awake_ = false;  // a wake() from here on counts for the next turn
    lock.unlock();
    const Outcome outcome = turn();
    if (outcome == Outcome::kMoved) idle = 0;
    else if (++idle < kEagerTurns) std::this_thread::yield();
    lock.lock();
    if (outcome == Outcome::kNothing) wake_.wait(lock, [this] { return ending_ || awake_; });
    else if (idle >= kEagerTurns) wake_.wait_for(lock, kPause, [this] { return ending_ || awake_; });
  }
}

}  // namespace uzip
