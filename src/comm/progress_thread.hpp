// A thread that moves what is in flight forward while the program computes. Used by Engine for long nonblocking
// calls, where cores are free (UZIP_CODEC_THREADS).
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace uzip {

class ProgressThread {
 public:
  enum class Outcome {
    kMoved,    ///< look again at once
    kIdle,     ///< look again soon
    kNothing,  ///< nothing is in flight: sleep until wake()
  };

  /// `turn` is called in the thread, again and again. Where no thread can be had nothing is called.
  explicit ProgressThread(std::function<Outcome()> turn);
  /// Returns when the thread has ended. Not to be called with a lock that `turn` takes.
  ~ProgressThread();
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;

  void wake();

 private:
  Outcome turn();
  void run();

  const std::function<Outcome()> turn_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool awake_ = true;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace uzip
