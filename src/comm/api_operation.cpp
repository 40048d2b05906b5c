#include "comm/api_operation.hpp"

#include "comm/communicator.hpp"

#include <algorithm>

namespace uzip {

Result<Operation> Operation::persistent(uzip_comm_t comm, CommunicatorHandle& handle, CollArgs&& args) {
  Operation operation(handle.engine, nullptr);
  operation.persistent_ = std::make_unique<Persistent>();
  UZIP_ASSIGN_OR_RETURN(std::shared_ptr<PreparedPlan> plan, handle.comm->plan_for(args));
  args.counts = {};  // the plan has them
  args.neighbors = nullptr;
  operation.call_ = handle.engine->acquire();
  if (Status status = handle.comm->reserve(*operation.call_, args, plan); !status.ok()) {
    operation.release();
    return status;
  }
  *operation.persistent_ = {comm, std::move(args), std::move(plan), false};
  return operation;
}

Status Operation::start(Communicator& comm) {
  Persistent& persistent = *persistent_;
  UZIP_ASSIGN_OR_RETURN(const std::shared_ptr<PreparedPlan> plan, comm.plan_of_today(persistent.plan));
  // After a start that failed the transport may still refer to what it used. A new plan needs other memory.
  if (!call_->drained() || plan != persistent.plan) {
    Request* const fresh = engine_->acquire();
    release();
    call_ = fresh;
    UZIP_RETURN_IF_ERROR(comm.reserve(*call_, persistent.args, plan));
    persistent.plan = plan;
  }
  UZIP_RETURN_IF_ERROR(comm.start(*call_, CollArgs(persistent.args), persistent.plan));
  persistent.started = true;
  return Status();
}

void Operation::move() {
  if (call_ && (call_->ended() || call_->expects())) return;  // nothing is to be moved, or but what a wait looks for
  engine_->progress();
  const auto goes_on = [](const Request* call) { return !call->ended() && call->is_long(); };
  if ((call_ && goes_on(call_)) || std::any_of(group_.begin(), group_.end(), goes_on)) engine_->progress_in_background();
}

void Operation::wait(std::unique_lock<std::mutex>& lock) {
  if (call_) return engine_->wait(*call_, lock);
  for (Request* call : group_) engine_->wait(*call, lock);
}

bool Operation::done() const {
  if (call_) return call_->done();
  return std::all_of(group_.begin(), group_.end(), [](const Request* call) { return call->done(); });
}

Status Operation::end() {
  if (persistent_) {
    persistent_->started = false;
    return call_->status();
  }
  Status first = not_started_;
  if (call_) {
    first = call_->status();
    engine_->release(call_);
  }
  for (Request* call : group_) {
    if (first.ok()) first = call->status();
    engine_->release(call);
  }
  return first;
}

void Operation::fail(const Status& why) {
  if (persistent_) return release();
  if (call_) call_->fail(why);
  for (Request* call : group_) call->fail(why);
  (void)end();
}

void Operation::release() {
  call_->unreserve();
  engine_->release(call_);
}

HandleTable<Operation>& operations() {
  // Deliberately never destroyed, as programs may use requests in atexit handlers.
  static auto* table = new HandleTable<Operation>;
  return *table;
}

Status publish(Operation&& operation, uzip_request_t* request) {
  if (const uintptr_t handle = operations().add(std::move(operation))) {
    *request = reinterpret_cast<uzip_request_t>(handle);
    return Status();
  }
  const Status status = error(UZIP_ERR_NO_MEMORY, "too many requests; wait for some");
  operation.fail(status);
  return status;
}

}  // namespace uzip
