// What a request handle of the C API stands for: one call, the calls of a group, or a persistent operation, which is
// started and ended any number of times.
#pragma once

#include "comm/coll_args.hpp"
#include "comm/engine.hpp"
#include "comm/handle_table.hpp"
#include "comm/job.hpp"

#include <uzipcoll/uzipcoll.h>

#include <memory>
#include <mutex>
#include <vector>

namespace uzip {

/// Keeps the engine alive. All members but the constructors need the engine's mutex.
class Operation {
 public:
  Operation() = default;
  /// A call in flight.
  Operation(std::shared_ptr<Engine> engine, Request* call) : engine_(std::move(engine)), call_(call) {}
  /// Calls in flight that end together; `not_started` is why there is no request of another one, or success.
  Operation(std::shared_ptr<Engine> engine, std::vector<Request*> calls, const Status& not_started)
      : engine_(std::move(engine)), group_(std::move(calls)), not_started_(not_started) {}
  /// A persistent operation, not started: plan, schedules and memory are made here.
  static Result<Operation> persistent(uzip_comm_t comm, CommunicatorHandle& handle, CollArgs&& args);

  const std::shared_ptr<Engine>& engine() const { return engine_; }
  bool is_persistent() const { return persistent_ != nullptr; }
  /// False only for a persistent operation that is not started.
  bool in_flight() const { return !persistent_ || persistent_->started; }

  /// Starts a persistent operation that is not in flight, on its communicator.
  Status start(Communicator& comm);
  uzip_comm_t comm() const { return persistent_->comm; }

  /// The first turn of what has been started; what is long goes on in the background, where there is one.
  void move();
  void wait(std::unique_lock<std::mutex>& lock);
  bool done() const;
  /// Gives a done operation's calls back and returns its status: of a group, the first that is an error. A
  /// persistent operation can be started again.
  Status end();
  /// Gives up what is in flight, without telling anybody; then as end().
  void fail(const Status& why);
  /// Gives back what a persistent operation has. It must not be in flight.
  void release();

 private:
  struct Persistent {
    uzip_comm_t comm = nullptr;
    CollArgs args;
    std::shared_ptr<PreparedPlan> plan;
    bool started = false;
  };

  std::shared_ptr<Engine> engine_;
  Request* call_ = nullptr;
  std::vector<Request*> group_;
  Status not_started_;
  std::unique_ptr<Persistent> persistent_;
};

/// The requests of the process that the user has not waited for, or not freed.
HandleTable<Operation>& operations();

/// A handle for it; an error, and the operation given up, when there are too many.
Status publish(Operation&& operation, uzip_request_t* request);

}  // namespace uzip
