// Gives long encodings and decodings to threads of its own, so that the calling thread can go on sending and
// receiving meanwhile. Used by Engine where cores are free (UZIP_CODEC_THREADS).
#pragma once

#include "comm/cpu_executor.hpp"

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace uzip {

class ThreadedExecutor final : public Executor {
 public:
  /// Threads are started when there is something for them. One thread calls all functions, or several under a lock.
  explicit ThreadedExecutor(int threads);
  /// Waits for what the threads are doing; completions are not called any more.
  ~ThreadedExecutor() override;
  ThreadedExecutor(const ThreadedExecutor&) = delete;
  ThreadedExecutor& operator=(const ThreadedExecutor&) = delete;

  Result<Progress> copy(void* dst, const void* src, size_t bytes, Completion* completion) override;
  Result<Progress> reduce(ReduceOp op, DataType type, void* dst, std::span<const void* const> sources, size_t count,
                          size_t average_over, Completion* completion) override;
  Result<Progress> encode(const EncodeTask& task, Completion* completion) override;
  Result<Progress> decode(const DecodeTask& task, Completion* completion) override;
  bool fuses() const override { return true; }
  Result<Progress> decode_reduce(const DecodeReduceTask& task, Completion* completion) override;
  bool progress() override;
  bool busy() const override { return in_flight_ > 0; }

 private:
  struct Task {
    enum class Kind : uint8_t { kEncode, kDecode, kDecodeReduce } kind{};
    EncodeTask encode;
    DecodeTask decode;
    DecodeReduceTask decode_reduce;
    std::vector<const void*> sources;  ///< of decode_reduce
    Completion* completion = nullptr;
    Status status;
  };

  bool has_room();
  Task* new_task(Task::Kind kind, Completion* completion);
  Result<Progress> hand_over(Task* task);
  static Status execute(CpuExecutor& executor, const Task& task);
  void work();

  CpuExecutor here_;  ///< for what is not worth a thread, in the calling thread
  int most_threads_;
  std::vector<std::thread> threads_;
  std::vector<std::unique_ptr<Task>> tasks_;  ///< all that were ever made
  std::vector<Task*> free_;
  std::vector<Task*> collected_;
  uint32_t in_flight_ = 0;  ///< handed over, completion not yet called

  std::atomic<uint32_t> finished_count_{0};
  std::mutex mutex_;  ///< for what follows
  std::condition_variable wake_;
  std::vector<Task*> queue_;  ///< first in first out, and short
  std::vector<Task*> finished_;
  bool ending_ = false;
};

/// How many threads a process should have for coding: `wanted` if that is not negative, else as many as there are
/// cores for it beside the one that calls, when `processes_here` share those of this host.
int choose_codec_threads(int wanted, int processes_here);

}  // namespace uzip
