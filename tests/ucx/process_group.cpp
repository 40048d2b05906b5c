#include "ucx/process_group.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <new>

#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

namespace uzip {
namespace {

constexpr size_t kMaxProcesses = 64;
constexpr size_t kMaxBytes = 16384;
constexpr size_t kSharedNumbers = 64;

}  // namespace

// In memory that parent and children share.
struct ProcessGroup::Board {
  struct Entry {
    std::atomic<size_t> filled;  // rounds of all-gather in which this process has put its bytes
    std::atomic<size_t> read;    // rounds in which it has read everybody's
    size_t bytes;
    std::byte data[kMaxBytes];
  };
  uint64_t shared[kSharedNumbers];
  Entry entries[kMaxProcesses];
};

ProcessGroup::ProcessGroup(int size) : size_(size) {
  void* memory =
      mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || static_cast<size_t>(size) > kMaxProcesses) throw std::bad_alloc();
  board_ = static_cast<Board*>(memory);
}

ProcessGroup::~ProcessGroup() {
  for (pid_t pid : pids_) {
    if (pid <= 0) continue;
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  munmap(board_, sizeof(Board));
}

void ProcessGroup::start(const Body& body, std::chrono::seconds limit) {
  std::fflush(nullptr);
  for (int rank = 0; rank < size_; ++rank) {
    const pid_t pid = fork();
    if (pid == 0) {
      alarm(static_cast<unsigned>(limit.count()));
      const int result = body(rank, [this, rank](std::span<const std::byte> mine, auto* all) {
        return allgather(rank, mine, all);
      });
      std::fflush(nullptr);
      _exit(result);
    }
    pids_.push_back(pid);
  }
}

int ProcessGroup::wait_for(int rank) {
  pid_t& pid = pids_[static_cast<size_t>(rank)];
  int status = 0;
  if (pid <= 0 || waitpid(pid, &status, 0) != pid) return -1;
  pid = -1;
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

std::string ProcessGroup::wait_for_all() {
  std::string report;
  for (int rank = 0; rank < size_; ++rank) {
    if (pid(rank) <= 0) continue;
    const int result = wait_for(rank);
    if (result == 0) continue;
    report += "process " + std::to_string(rank) +
              (result < 0 ? " was ended by signal " + std::to_string(-result)
                          : " returned " + std::to_string(result)) +
              "; ";
  }
  return report;
}

volatile uint64_t& ProcessGroup::shared(size_t index) { return board_->shared[index]; }

Status ProcessGroup::allgather(int rank, std::span<const std::byte> mine,
                               std::vector<std::vector<std::byte>>* all) {
  if (mine.size() > kMaxBytes) return error(UZIP_ERR_INTERNAL, "%zu bytes", mine.size());
  Board::Entry& own = board_->entries[rank];
  const size_t round = own.filled + 1;
  for (int other = 0; other < size_; ++other) {
    while (board_->entries[other].read < round - 1) sched_yield();
  }
  own.bytes = mine.size();
  std::ranges::copy(mine, own.data);
  own.filled = round;
  all->clear();
  for (int other = 0; other < size_; ++other) {
    const Board::Entry& entry = board_->entries[other];
    while (entry.filled < round) sched_yield();
    all->emplace_back(entry.data, entry.data + entry.bytes);
  }
  own.read = round;
  return {};
}

}  // namespace uzip
