#include "comm/threaded_executor.hpp"

#include "comm/cores.hpp"
#include "comm/quiet_thread.hpp"

#include <algorithm>
#include <utility>

namespace uzip {
namespace {

/// Waking a thread and hearing from it again costs some ten microseconds: as long as coding this takes.
constexpr size_t kLeastBytes = size_t{64} << 10;
/// One task in work and one waiting for each thread; beyond that the calling thread helps.
constexpr uint32_t kTasksPerThread = 2;
/// A third thread no longer gained anything where cores were plenty (docs/PERFORMANCE.md).
constexpr int kMostByDefault = 2;

}  // namespace

int choose_codec_threads(int wanted, int processes_here) {
  if (wanted >= 0) return wanted;
  const Cores there = cores();
  const int share = there.of_host / std::max(processes_here, 1);
  return std::clamp(std::min(there.of_process, share) - 1, 0, kMostByDefault);
}

ThreadedExecutor::ThreadedExecutor(int threads) : most_threads_(threads) {}

ThreadedExecutor::~ThreadedExecutor() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

Result<Progress> ThreadedExecutor::copy(void* dst, const void* src, size_t bytes, Completion* completion) {
  return here_.copy(dst, src, bytes, completion);
}

Result<Progress> ThreadedExecutor::reduce(ReduceOp op, DataType type, void* dst, std::span<const void* const> sources,
                                          size_t count, size_t average_over, Completion* completion) {
  return here_.reduce(op, type, dst, sources, count, average_over, completion);
}

Result<Progress> ThreadedExecutor::encode(const EncodeTask& task, Completion* completion) {
  // The stages of one frame share a scratch, and nothing may come in between: they stay in this thread.
  const bool in_stages = task.stage != EncodeStage::kWhole;
  if (in_stages || task.count * datatype_size(task.type) < kLeastBytes || !has_room())
    return here_.encode(task, completion);
  Task* handed = new_task(Task::Kind::kEncode, completion);
  handed->encode = task;
  return hand_over(handed);
}

Result<Progress> ThreadedExecutor::decode(const DecodeTask& task, Completion* completion) {
  if (task.dst.size() < kLeastBytes || !has_room()) return here_.decode(task, completion);
  Task* handed = new_task(Task::Kind::kDecode, completion);
  handed->decode = task;
  return hand_over(handed);
}

Result<Progress> ThreadedExecutor::decode_reduce(const DecodeReduceTask& task, Completion* completion) {
  if (task.count * datatype_size(task.type) < kLeastBytes || !has_room()) return here_.decode_reduce(task, completion);
  Task* handed = new_task(Task::Kind::kDecodeReduce, completion);
  handed->sources.assign(task.sources.begin(), task.sources.end());
  handed->decode_reduce = task;
  handed->decode_reduce.sources = handed->sources;
  return hand_over(handed);
}

/// Whether a thread will come to another task soon. Starts threads that are missing.
bool ThreadedExecutor::has_room() {
  if (in_flight_ >= kTasksPerThread * static_cast<uint32_t>(most_threads_)) return false;
  if (in_flight_ < threads_.size() || static_cast<int>(threads_.size()) == most_threads_) return true;
  std::thread thread = start_quiet_thread("uzip-codec", [this] { work(); });
  if (thread.joinable()) threads_.push_back(std::move(thread));
  else most_threads_ = static_cast<int>(threads_.size());  // the system has no more
  return most_threads_ > 0;
}

ThreadedExecutor::Task* ThreadedExecutor::new_task(Task::Kind kind, Completion* completion) {
  if (free_.empty()) {
    tasks_.push_back(std::make_unique<Task>());
    free_.push_back(tasks_.back().get());
  }
  Task* task = free_.back();
  free_.pop_back();
  task->kind = kind;
  task->completion = completion;
  return task;
}

Result<Progress> ThreadedExecutor::hand_over(Task* task) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(task);
  }
  ++in_flight_;
  wake_.notify_one();
  return Progress::kPending;
}

Status ThreadedExecutor::execute(CpuExecutor& executor, const Task& task) {
  switch (task.kind) {
    case Task::Kind::kEncode: return executor.encode(task.encode, nullptr).status();
    case Task::Kind::kDecode: return executor.decode(task.decode, nullptr).status();
    case Task::Kind::kDecodeReduce: return executor.decode_reduce(task.decode_reduce, nullptr).status();
  }
  return Status();
}

void ThreadedExecutor::work() {
  CpuExecutor executor;  // with the scratch of this thread
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return ending_ || !queue_.empty(); });
    if (ending_) return;
    Task* task = queue_.front();
    queue_.erase(queue_.begin());
    lock.unlock();
    try {
      task->status = execute(executor, *task);
    } catch (const std::bad_alloc&) {
      task->status = error(UZIP_ERR_NO_MEMORY, "no memory for coding");
    }
    lock.lock();
    finished_.push_back(task);
    finished_count_.store(static_cast<uint32_t>(finished_.size()), std::memory_order_release);
  }
}

bool ThreadedExecutor::progress() {
  if (finished_count_.load(std::memory_order_acquire) == 0) return false;
  {
    const std::lock_guard lock(mutex_);
    std::swap(collected_, finished_);
    finished_count_.store(0, std::memory_order_relaxed);
  }
  in_flight_ -= static_cast<uint32_t>(collected_.size());
  for (Task* task : collected_) {
    free_.push_back(task);
    const Status status = std::move(task->status);
    task->status = Status();
    task->completion->done(task->completion, status);  // may hand over another one
  }
  collected_.clear();
  return true;
}

}  // namespace uzip
