// Several processes for one test: forked before any of them touches UCX, with an out-of-band
// all-gather over memory that they share. Used by the tests and measurements of src/ucx.
#pragma once

#include "base/status.hpp"
#include "ucx/ucx_transport.hpp"

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace uzip {

class ProcessGroup {
 public:
  /// What a child does; its return value is its exit status.
  using Body = std::function<int(int rank, const OutOfBandAllgather& allgather)>;

  explicit ProcessGroup(int size);
  ~ProcessGroup();  ///< kills what is still running
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  /// Starts all children. Each gets SIGALRM after `limit`.
  void start(const Body& body, std::chrono::seconds limit = std::chrono::seconds(30));
  pid_t pid(int rank) const { return pids_[static_cast<size_t>(rank)]; }
  /// Waits for a child's end: its exit status, or minus the signal that ended it.
  int wait_for(int rank);
  /// Waits for all; "" if all returned 0, else what happened to whom.
  std::string wait_for_all();

  /// A number in memory that all children share, zero at first, to tell the parent or one another
  /// something.
  volatile uint64_t& shared(size_t index);

 private:
  struct Board;

  Status allgather(int rank, std::span<const std::byte> mine,
                   std::vector<std::vector<std::byte>>* all);

  int size_;
  Board* board_;
  std::vector<pid_t> pids_;
};

}  // namespace uzip
