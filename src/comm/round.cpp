#include "comm/round.hpp"

#include "comm/engine.hpp"
#include "comm/request.hpp"

#include <algorithm>
#include <utility>

namespace uzip {

Status Round::reserve(const PreparedSchedule& prepared) {
  assert(!schedule_ && pending_ == 0);
  const std::vector<Step>& steps = prepared.schedule.steps;
  size_t most_sources = 0;
  for (const Step& step : steps) most_sources = std::max(most_sources, step.sources.size());
  steps_.reserve(steps.size());
  wires_.reserve(prepared.wires.size());
  ready_.reserve(steps.size());
  queue_.reserve(steps.size());
  source_pointers_.reserve(most_sources);
  if (memory_.suffices(prepared)) return Status();
  unreserve();
  UZIP_RETURN_IF_ERROR(memory_.get(prepared, request_.engine().buffers(), request_.device()));
  reserved_ = true;
  return Status();
}

void Round::unreserve() {
  reserved_ = false;
  if (pending_ == 0) memory_.put();  // else abandon() does, when it is drained
}

void Round::start(std::shared_ptr<const PreparedSchedule> prepared, uint32_t number) {
  assert(pending_ == 0);
  schedule_ = std::move(prepared);
  number_ = number;
  dead_ = false;
  const Schedule& schedule = schedule_->schedule;
  if (!memory_.suffices(*schedule_)) {
    unreserve();
    const Status got = memory_.get(*schedule_, request_.engine().buffers(), request_.device());
    if (!got.ok()) return request_.fail(got);
  }
  left_ = static_cast<uint32_t>(schedule.steps.size());
  steps_.resize(schedule.steps.size());
  for (uint32_t i = 0; i < left_; ++i) {
    StepState& state = steps_[i];
    state.completion.done = &Round::on_completion;
    state.round = this;
    state.step = i;
    state.waiting = static_cast<uint32_t>(schedule.steps[i].depends_on.size());
    state.started = state.done = state.has_message = state.copied = state.lent = false;
  }
  wires_.assign(schedule.wire_elements.size(), WireState());
  input_ = request_.base(Slot::kInput, number);
  output_ = request_.base(Slot::kOutput, number);
  queue_.clear();
  queue_head_ = 0;
  ready_.assign(schedule_->ready.rbegin(), schedule_->ready.rend());
  drain();
}

/// Starts everything that is ready, and what becomes ready by it. Program order first: the stack's top is the
/// earliest step. Not reentrant: completions that come back meanwhile only add to the stack.
void Round::drain() {
  if (draining_) return;
  draining_ = true;
  while (!ready_.empty() && !dead_) {
    const uint32_t step = ready_.back();
    ready_.pop_back();
    make_ready(step);
  }
  draining_ = false;
  if (left_ > 0 || dead_ || !schedule_) return;
  schedule_.reset();
  put_memory();
  request_.on_round_finished();  // may start the next round in this object: touch nothing behind it
}

void Round::put_memory() {
  if (!reserved_) memory_.put();
}

void Round::make_ready(uint32_t index) {
  const Step& step = schedule_->schedule.steps[index];
  StepState& state = steps_[index];
  if (step.verb == Verb::kRecv && !state.has_message) return;  // on_message() comes back to it
  if (!schedule_->is_long[index] || state.copied) return execute(index);
  // The coded stage directly follows its plain stage (the codec keeps state between them).
  if (step.verb == Verb::kEncode && step.part == Part::kCoded && queue_head_ > 0) {
    queue_[--queue_head_] = index;
  } else {
    queue_.push_back(index);
  }
  request_.engine().add_work(*this);
}

bool Round::run_one() {
  if (dead_ || queue_head_ == queue_.size()) return false;
  const uint32_t step = queue_[queue_head_++];
  execute(step);
  drain();
  return true;
}

void Round::execute(uint32_t index) {
  const Step& step = schedule_->schedule.steps[index];
  StepState& state = steps_[index];
  state.started = true;
  switch (step.verb) {
    case Verb::kSend: return settle(index, send(step, state));
    case Verb::kRecv: return settle(index, receive(step, state));
    case Verb::kReduce: return settle(index, reduce(step, state));
    case Verb::kEncode: return settle(index, encode(step, state));
    case Verb::kDecode: return settle(index, decode(step, state));
    case Verb::kDecodeReduce: return settle(index, decode_reduce(step, state));
    case Verb::kCopy: return settle(index, copy(step, state));
  }
}

void Round::settle(uint32_t index, const Result<Progress>& result) {
  if (!result.ok()) return fail(index, result.status());
  *result == Progress::kPending ? static_cast<void>(++pending_) : finish(index);
}

/// Fails the request with the rank that the step has to do with.
void Round::fail(uint32_t index, const Status& status) {
  const Step& step = schedule_->schedule.steps[index];
  const int peer = step.verb == Verb::kDecode         ? wires_[step.src.offset].peer
                   : step.verb == Verb::kDecodeReduce ? wires_[frame_of(step).offset].peer
                                                      : step.peer;
  if (peer < 0) return request_.fail(status);
  const char* direction = step.verb == Verb::kSend ? "to" : "from";
  request_.fail(status.with_context(std::string("message ") + direction + " rank " +
                                    std::to_string(request_.peer_rank(peer))));
}

void Round::on_completion(Completion* self, const Status& status) {
  auto* state = reinterpret_cast<StepState*>(self);  // its first member
  Round& round = *state->round;
  --round.pending_;
  if (round.dead_) {
    // Only drained.
  } else if (!status.ok()) {
    round.fail(state->step, status);
  } else {
    round.finish(state->step);
    round.drain();
  }
  round.request_.on_drained();
}

/// The step has done its work. What a codec did not look at is compared with its checksum here.
void Round::finish(uint32_t index) {
  const Step& step = schedule_->schedule.steps[index];
  if (step.verb == Verb::kEncode) on_encoded(step);
  if (step.verb == Verb::kReduce) end_loans(index);
  const FrameHeader& frame = steps_[index].frame;
  if (step.verb == Verb::kRecv && step.dst.slot != Slot::kWire && frame.flags & kFrameHasChecksum)
    if (Status status = check_checksum(frame, bytes_at(step.dst)); !status.ok()) return fail(index, status);
  retire(index);
}

void Round::retire(uint32_t index) {
  steps_[index].done = true;
  --left_;
  const std::vector<uint32_t>& dependents = schedule_->schedule.dependents[index];
  for (size_t i = dependents.size(); i-- > 0;)
    if (--steps_[dependents[i]].waiting == 0) ready_.push_back(dependents[i]);
}

bool Round::on_message(Incoming& incoming, const FrameHeader& frame, int source, uint32_t message) {
  if (dead_) return false;
  const auto& from = schedule_->receives[request_.peer_index(source)];
  if (message >= from.size() || from[message] == UINT32_MAX) return false;
  const uint32_t index = from[message];
  StepState& state = steps_[index];
  if (state.has_message || state.started) return false;
  const Step& step = schedule_->schedule.steps[index];
  if (Status status = check_frame(step, frame, incoming.body_bytes); !status.ok()) {
    request_.fail(status.with_context("message from rank " + std::to_string(source)));
    return false;
  }
  state.incoming = incoming;
  state.incoming.head = nullptr;
  state.frame = frame;
  state.has_message = true;
  if (state.waiting > 0 || schedule_->is_long[index]) {
    // It can't be taken now and the transport's copy ends with this call.
    request_.engine().preserve(state.incoming);
  }
  if (state.waiting == 0) {
    ready_.push_back(index);
    drain();
  }
  return true;
}

void Round::abandon() {
  dead_ = true;
  if (!schedule_) return;
  ready_.clear();
  queue_.clear();
  queue_head_ = 0;
  for (StepState& state : steps_)
    if (std::exchange(state.has_message, false)) request_.engine().discard(state.incoming);
  if (pending_ > 0) return;  // called again when it is drained
  schedule_.reset();
  put_memory();
}

void Round::waits_for(std::vector<bool>& ranks) const {
  if (!schedule_) return;
  for (const StepState& state : steps_) {
    const Step& step = schedule_->schedule.steps[state.step];
    if (state.done || (step.verb != Verb::kRecv && step.verb != Verb::kSend)) continue;
    const bool unsent = step.verb == Verb::kSend && !state.started;
    if (!unsent) ranks[static_cast<size_t>(request_.peer_rank(step.peer))] = true;
  }
}

}  // namespace uzip
