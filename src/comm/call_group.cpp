#include "comm/call_group.hpp"

#include "comm/api_calls.hpp"
#include "comm/communicator.hpp"

#include <utility>

namespace uzip {

CallGroup& CallGroup::of_thread() {
  thread_local CallGroup group;
  return group;
}

Status CallGroup::add(uzip_comm_t comm, CommunicatorHandle& handle, CollArgs&& args) {
  if (engine_ && engine_ != handle.engine)
    return spoil(error(UZIP_ERR_INVALID, "a group has calls on communicators that were not split or duplicated from "
                                         "one another; give each a group of its own"));
  std::unique_lock lock(handle.engine->mutex());
  Result<std::shared_ptr<PreparedPlan>> plan = handle.comm->plan_for(args);
  if (!plan.ok()) return spoil(plan.status());
  engine_ = handle.engine;
  args.counts = {};  // the plan has them
  args.neighbors = nullptr;
  calls_.push_back({comm, std::move(args), std::move(*plan)});
  return Status();
}

Status CallGroup::spoil(const Status& status) {
  if (spoilt_.ok()) spoilt_ = status;
  return status;
}

Result<Operation> CallGroup::end() {
  if (depth_ == 0) return error(UZIP_ERR_INVALID, "no group is open in this thread; uzip_group_start() opens one");
  if (--depth_ > 0) return Operation();
  const std::shared_ptr<Engine> engine = std::exchange(engine_, nullptr);
  std::vector<Call> calls = std::exchange(calls_, {});
  if (const Status spoilt = std::exchange(spoilt_, Status()); !spoilt.ok())
    return spoilt.with_context("a call of the group, of which nothing was started");
  if (calls.empty()) return Operation();
  std::vector<Communicator*> comms;
  for (const Call& call : calls) {
    UZIP_ASSIGN_OR_RETURN(CommunicatorHandle* const handle, find(call.comm));
    comms.push_back(handle->comm.get());
  }
  const std::lock_guard lock(engine->mutex());
  std::vector<Request*> requests;
  Status not_started;
  for (const bool receives : {true, false})
    for (size_t i = 0; i < calls.size(); ++i) {
      if ((calls[i].args.kind == CallKind::kRecv) != receives) continue;
      const Result<Request*> started = comms[i]->start(std::move(calls[i].args), std::move(calls[i].plan));
      if (started.ok()) requests.push_back(*started);
      else if (not_started.ok()) not_started = started.status();
    }
  return Operation(engine, std::move(requests), not_started);
}

}  // namespace uzip
