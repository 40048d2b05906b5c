// A thread's open group (uzip_group_start): the calls made in it are collected, and started together at its end. Used
// by the entry points of the C API.
#pragma once

#include "comm/api_operation.hpp"
#include "comm/coll_args.hpp"
#include "comm/job.hpp"

#include <memory>
#include <vector>

namespace uzip {

class CallGroup {
 public:
  static CallGroup& of_thread();

  bool open() const { return depth_ > 0; }
  void begin() { ++depth_; }

  /// Plans a call and keeps it for the end of the group. After an error nothing of the group will be started.
  Status add(uzip_comm_t comm, CommunicatorHandle& handle, CollArgs&& args);
  /// A call could not be added.
  Status spoil(const Status& status);

  /// Ends the innermost group. Of the outermost one, all calls are started: receives first, then the others in the
  /// order of the calls. Without an engine: there was nothing to start.
  Result<Operation> end();

 private:
  struct Call {
    uzip_comm_t comm;
    CollArgs args;
    std::shared_ptr<PreparedPlan> plan;
  };

  int depth_ = 0;
  Status spoilt_;
  std::shared_ptr<Engine> engine_;
  std::vector<Call> calls_;
};

}  // namespace uzip
