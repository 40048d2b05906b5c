#include "comm/communicator.hpp"

#include "base/log.hpp"
#include "comm/engine.hpp"
#include "comm/user_op.hpp"

#include <algorithm>
#include <bit>
#include <cinttypes>
#include <set>

namespace uzip {
namespace {

constexpr size_t kFirstCapacity = 64;  // calls in flight before the table grows
constexpr size_t kPastCalls = 64;
constexpr uint16_t kVoteStep = 0x9e37;  // odd, so that all numbers of votes differ in a digest

/// Which host each rank is on, if that tells ranks apart: some share one, and there are several.
std::vector<int> hosts_of(const Engine& engine, const std::vector<int>& processes) {
  std::vector<int> hosts;
  for (int process : processes) hosts.push_back(engine.host_of(process));
  const size_t different = std::set<int>(hosts.begin(), hosts.end()).size();
  if (different == 1 || different == hosts.size()) hosts.clear();
  return hosts;
}

uint8_t op_in_stamp(const CollArgs& args) {
  if (!is_reduction(args.kind)) return 0;
  if (args.user_op) return args.user_op->commutative ? kUserOpInStamp : kOrderedUserOpInStamp;
  return static_cast<uint8_t>(args.op);
}

}  // namespace

CallStamp Communicator::PastCall::expected(const MessageHead& head) const {
  const bool inquiry = MessageIndex::unpack(head.envelope.index).round == MessageIndex::kInquiryRound;
  const uint32_t source = head.envelope.source;
  CallStamp result = stamp;
  if (pairs) result.count = (inquiry ? pairs->sent : pairs->received).counts[source];
  return neighbors ? stamp_between(result, neighbors->plan, static_cast<int>(source), inquiry) : result;
}

Communicator::Communicator(Engine& engine, int rank, std::vector<int> processes,
                           std::vector<uint32_t> numbers)
    : engine_(engine),
      rank_(rank),
      processes_(std::move(processes)),
      numbers_(std::move(numbers)),
      selector_(engine.config(), engine.link_facts(processes_), hosts_of(engine, processes_), engine.tuning(),
                engine.sockets_of(processes_)),
      // A frame's checksum is compared when all is decoded: too late for a reduction that has written by then.
      schedules_(rank, engine.executor().fuses() && !engine.config().checksum),
      collectives_(kFirstCapacity),
      past_(kPastCalls),
      next_sent_(processes_.size()),
      next_arrival_(processes_.size()) {
  std::copy_n(engine.default_options(), kCollCount, defaults_);
  if (size() > 1 && selector_.has_gpu_peers()) peers_ = std::make_unique<GpuPeers>(engine.gpus(), engine.config(), rank_, size());
}

Communicator::~Communicator() {
  for (Request* request : collectives_)
    if (request) request->detach();
  while (!receives_.empty()) receives_.back()->detach();
  while (!sends_.empty()) sends_.back()->detach();
  for (const auto& vote : votes_) engine_.release(vote->request);
  for (HeldMessage& message : held_) discard(message);
}

// ---- Starting calls --------------------------------------------------------------------------------------

CallContext Communicator::context() const { return {rank_, size(), defaults_, &engine_.gpus()}; }

Result<Request*> Communicator::start(CollArgs&& args) {
  UZIP_ASSIGN_OR_RETURN(std::shared_ptr<PreparedPlan> plan, plan_for(args));
  return start(std::move(args), std::move(plan));
}

Result<Request*> Communicator::start(CollArgs&& args, std::shared_ptr<PreparedPlan> plan) {
  Request* const request = engine_.acquire();
  if (Status status = start(*request, std::move(args), std::move(plan)); !status.ok()) {
    engine_.release(request);
    return status;
  }
  return request;
}

Status Communicator::start(Request& request, CollArgs&& args, std::shared_ptr<PreparedPlan> plan) {
  if (!health_.ok()) return health_.with_context(call_name(args.kind));
  UZIP_RETURN_IF_ERROR(request.use_memory_of(args));
  request.prepare_vote(peers_ ? peers_->vote(args, plan->plan) : Ballot::kNo, size());
  request.prepare_offer(peers_ && peers_->offers(args));
  UZIP_RETURN_IF_ERROR(request.follow_stream(args));
  if (!args.announced && calibration_due(args)) UZIP_RETURN_IF_ERROR(start_vote(false).status());
  CallStamp stamp;
  stamp.coll = static_cast<uint8_t>(args.kind == CallKind::kRecv ? CallKind::kSend : args.kind);
  stamp.op = op_in_stamp(args);
  stamp.plan = plan->plan.digest;
  if (!is_point_to_point(args.kind)) stamp.plan = static_cast<uint16_t>(stamp.plan + kVoteStep * voted_);
  stamp.count = plan->plan.with_neighbors() ? 0 : args.count;  // which each rank has its own of
  if (args.kind == CallKind::kRecv) {
    stamp.sequence = next_arrival_[static_cast<size_t>(args.peer)];  // probably; Request::bind_sender() knows
    receives_.push_back(&request);
    request.begin(*this, std::move(args), std::move(plan), stamp);
    bind_held(request);
  } else if (args.kind == CallKind::kSend) {
    stamp.sequence = next_sent_[static_cast<size_t>(args.peer)]++;
    sends_.push_back(&request);
    request.begin(*this, std::move(args), std::move(plan), stamp);
  } else {
    start_collective(request, std::move(args), std::move(plan), stamp);
  }
  return Status();
}

bool Communicator::calibration_due(const CollArgs& args) {
  // Short calls first: they have no time for the rest.
  if (args.count * datatype_size(args.type) < kCalibratedBytes / static_cast<size_t>(size())) return false;
  if (!needs_all_ranks(args.kind) || !selector_.lacks_calibration() || size() == 1) return false;
  if (!is_float(args.type) || args.options.codec.codec || !find_codec("lev")->supports(args.type)) return false;
  if (tuned_bytes(args.kind, args.count, datatype_size(args.type), size()) < kCalibratedBytes) return false;
  return std::has_single_bit(++large_calls_);
}

Result<const CalibrationVote*> Communicator::start_vote(bool waits) {
  std::erase_if(votes_, [this](const auto& vote) {
    if (!vote->request->done()) return false;
    engine_.release(vote->request);
    return true;
  });
  auto vote = std::make_unique<CalibrationVote>();
  vote->mine = std::byte{waits};
  CollArgs args;
  args.kind = CallKind::kAgreement;
  args.type = UZIP_UINT8;
  args.op = UZIP_MIN;
  args.src = &vote->mine;
  args.dst = &vote->least;
  args.count = 1;
  UZIP_ASSIGN_OR_RETURN(vote->request, start(std::move(args)));
  votes_.push_back(std::move(vote));
  ++voted_;
  return votes_.back().get();
}

void Communicator::start_collective(Request& request, CollArgs&& args, std::shared_ptr<PreparedPlan> plan,
                                    CallStamp stamp) {
  stamp.sequence = next_sequence_++;
  while (collectives_[stamp.sequence & (collectives_.size() - 1)]) {
    // The place is taken by a call that is still in flight: double the table.
    std::vector<Request*> larger(collectives_.size() * 2);
    for (Request* other : collectives_)
      if (other) larger[other->stamp().sequence & (larger.size() - 1)] = other;
    collectives_.swap(larger);
  }
  collectives_[stamp.sequence & (collectives_.size() - 1)] = &request;
  past_[stamp.sequence % kPastCalls] = {stamp, false, args.pairs, plan->plan.with_neighbors() ? plan : nullptr};
  request.begin(*this, std::move(args), std::move(plan), stamp);
  std::erase_if(failed_ahead_, [&](const FailedAhead& failed) {
    if (failed.sequence != stamp.sequence) return false;
    request.fail(failed.status, false);  // the first of those who told; the others change nothing
    return true;
  });
}

void Communicator::on_request_ended(Request& request) {
  if (request.args().kind == CallKind::kSend) {
    std::erase(sends_, &request);
    return;
  }
  if (request.args().kind == CallKind::kRecv) {
    std::erase(receives_, &request);
  } else {
    const uint32_t sequence = request.stamp().sequence;
    Request*& place = collectives_[sequence & (collectives_.size() - 1)];
    if (place == &request) place = nullptr;
    PastCall& past = past_[sequence % kPastCalls];
    if (past.stamp.sequence == sequence) past.failed = request.failed();
  }
  if (!held_.empty()) drop_held_of_ended_calls();
}

// ---- Messages --------------------------------------------------------------------------------------------

bool Communicator::on_message(Incoming& incoming, const MessageHead& head) {
  if (head.envelope.source >= processes_.size() ||
      processes_[head.envelope.source] != incoming.peer) {
    log(LogLevel::kWarn, "dropped a message from process %d that claims to be rank %u", incoming.peer,
        head.envelope.source);
    return false;
  }
  const MessageKind kind = MessageIndex::unpack(head.envelope.index).kind;
  if (!health_.ok() && kind != MessageKind::kControl) return false;  // nobody waits for anything any more
  if (const auto frame = parse_frame_header(std::as_bytes(std::span(&head.frame, 1))); !frame.ok()) {
    on_bad_frame(head, frame.status());
    return false;
  }
  switch (kind) {
    case MessageKind::kCollective: return on_collective(incoming, head);
    case MessageKind::kPointToPoint: return on_point_to_point(incoming, head);
    case MessageKind::kControl: engine_.take_control(incoming, head); return true;
  }
  return false;
}

bool Communicator::deliver(Request& request, Incoming& incoming, const MessageHead& head) {
  const MessageIndex index = MessageIndex::unpack(head.envelope.index);
  const auto source = static_cast<int>(head.envelope.source);
  if (Status status = check_stamp(request, head); !status.ok()) {
    decline_offer(head);
    request.fail(status);
    return false;
  }
  if (index.round == MessageIndex::kInquiryRound) return request.on_aside(incoming, source, index.message);
  switch (request.on_message(incoming, head.frame, source, index.round, index.message)) {
    case Request::Answer::kTaken: return true;
    case Request::Answer::kLater: hold(incoming, head); return true;
    case Request::Answer::kRefused: break;
  }
  if (!request.failed())
    log(LogLevel::kWarn, "dropped message %u of round %u from rank %d: %s does not expect it", index.message,
        index.round, source, request.describe().c_str());
  return false;
}

bool Communicator::on_collective(Incoming& incoming, const MessageHead& head) {
  const uint32_t sequence = head.frame.call.sequence;
  if (!before(sequence, next_sequence_)) {
    hold(incoming, head);
    return true;
  }
  Request* request = find_collective(sequence);
  return request ? deliver(*request, incoming, head) : on_past_call(head);
}

Request* Communicator::find_collective(uint32_t sequence) {
  Request* request = collectives_[sequence & (collectives_.size() - 1)];
  return request && request->stamp().sequence == sequence ? request : nullptr;
}

/// A call that ended here while the sender is still in it: if the sender's differs all must be told, once. Not
/// only the sender: others may wait for it, and it for this rank.
bool Communicator::on_past_call(const MessageHead& head) {
  const CallStamp& theirs = head.frame.call;
  decline_vote(head);
  PastCall& past = past_[theirs.sequence % kPastCalls];
  if (past.failed || past.stamp.sequence != theirs.sequence || past.expected(head) == theirs) return false;
  past.failed = true;
  tell_call_failed(theirs.sequence,
                   error(UZIP_ERR_MISMATCH, "rank %d called %s where rank %u called %s", rank_,
                         describe_call(past.expected(head)).c_str(), head.envelope.source,
                         describe_call(theirs).c_str()));
  return false;
}

/// What a message must carry that belongs to the call. An inquiry tells what its sender expects from this rank.
CallStamp Communicator::stamp_for(const Request& request, const MessageHead& head) const {
  const auto source = static_cast<int>(head.envelope.source);
  if (is_point_to_point(request.args().kind)) return request.stamp();
  const bool inquiry = MessageIndex::unpack(head.envelope.index).round == MessageIndex::kInquiryRound;
  return inquiry ? request.sent_stamp(source) : request.expected_stamp(source);
}

Status Communicator::check_stamp(const Request& request, const MessageHead& head) const {
  const CallStamp ours = stamp_for(request, head);
  const CallStamp& theirs = head.frame.call;
  if (ours == theirs && (ours.count == 0 || head.frame.count == 0 ||
                         head.frame.type == static_cast<uint8_t>(request.type())))
    return Status();
  if (is_pairwise(request.args().kind) && ours.coll == theirs.coll && ours.plan == theirs.plan &&
      ours.count != theirs.count)
    return error(UZIP_ERR_MISMATCH, "rank %u sends %llu elements where rank %d expects %llu", head.envelope.source,
                 static_cast<unsigned long long>(theirs.count), rank_, static_cast<unsigned long long>(ours.count));
  std::string call = describe_call(theirs);
  if (head.frame.count > 0) call += std::string(" of ") + datatype_info(static_cast<DataType>(head.frame.type)).name;
  if (ours.coll == theirs.coll && ours.op == theirs.op && ours.count == theirs.count &&
      (head.frame.count == 0 || head.frame.type == static_cast<uint8_t>(request.type())))
    call += " with another algorithm, codec, chunk size, counts or root";
  return error(UZIP_ERR_MISMATCH, "rank %u called %s where rank %d called this", head.envelope.source,
               call.c_str(), rank_);
}

void Communicator::hold(Incoming& incoming, const MessageHead& head) {
  HeldMessage message{incoming, head};
  engine_.preserve(message.incoming);
  held_.push_back(message);
}

void Communicator::offer_held(Request& request, uint32_t round) {
  if (request.args().kind == CallKind::kSend) return;
  const MessageKind kind =
      request.args().kind == CallKind::kRecv ? MessageKind::kPointToPoint : MessageKind::kCollective;
  const auto belongs = [&](const MessageHead& head) {
    const MessageIndex index = MessageIndex::unpack(head.envelope.index);
    if (index.kind != kind || head.frame.call.sequence != request.stamp().sequence) return false;
    if (kind == MessageKind::kPointToPoint && static_cast<int>(head.envelope.source) != request.args().peer)
      return false;
    return index.round == round || !(head.frame.call == stamp_for(request, head));  // or it shows a disagreement
  };
  for (size_t i = 0; i < held_.size() && !request.ended();) {
    if (!belongs(held_[i].head)) {
      ++i;
      continue;
    }
    HeldMessage message = held_[i];
    held_.erase(held_.begin() + static_cast<ptrdiff_t>(i));
    if (!deliver(request, message.incoming, message.head)) engine_.discard(message.incoming);
    i = 0;  // delivering may have taken others, or added some
  }
}

/// Nobody takes them any more. A call may have ended because it had nothing to do, and these show that the others
/// called something else.
void Communicator::drop_held_of_ended_calls() {
  std::erase_if(held_, [this](HeldMessage& message) {
    const uint32_t source = message.head.envelope.source, sequence = message.head.frame.call.sequence;
    bool ended;
    if (MessageIndex::unpack(message.head.envelope.index).kind == MessageKind::kCollective) {
      ended = before(sequence, next_sequence_) && !find_collective(sequence);
      if (ended) on_past_call(message.head);
    } else {
      ended = before(sequence, next_arrival_[source]) && !find_receive(source, sequence) &&
              !waits_for_receive(source, sequence);
    }
    if (ended) engine_.discard(message.incoming);
    return ended;
  });
}

// ---- Failures --------------------------------------------------------------------------------------------

/// The head is as it was sent, but the frame header makes no sense. Its call is known, and waits for it.
void Communicator::on_bad_frame(const MessageHead& head, const Status& why) {
  const uint32_t source = head.envelope.source, sequence = head.frame.call.sequence;
  const Status status = why.with_context("message from rank " + std::to_string(source));
  switch (MessageIndex::unpack(head.envelope.index).kind) {
    case MessageKind::kCollective:
      if (before(sequence, next_sequence_) && !find_collective(sequence)) return;
      tell_call_failed(sequence, status);
      return on_call_failed(sequence, status);
    case MessageKind::kPointToPoint: return on_message_lost(source, sequence, head.envelope.tag, status);
    case MessageKind::kControl: return;
  }
}

void Communicator::on_process_failed(int process, const Status& why, bool tell_others) {
  const auto found = std::find(processes_.begin(), processes_.end(), process);
  if (found == processes_.end() || !health_.ok()) return;
  const auto rank = static_cast<int>(found - processes_.begin());
  const StatusCode code = why.code() == UZIP_ERR_CORRUPT ? UZIP_ERR_CORRUPT : UZIP_ERR_PEER;
  health_ = error(code, "rank %d failed (%s); free the communicator, no call on it can succeed", rank,
                  why.message().c_str());
  for (int peer = 0; tell_others && peer < size(); ++peer)
    if (peer != rank_) send_control(peer, ControlKind::kPeerFailed, static_cast<uint32_t>(rank), health_);
  std::vector<Request*> victims = receives_;
  victims.insert(victims.end(), sends_.begin(), sends_.end());
  for (Request* request : collectives_)
    if (request) victims.push_back(request);
  for (Request* request : victims) request->fail(health_, false);
  for (HeldMessage& message : std::exchange(held_, {})) engine_.discard(message.incoming);
}

/// Another rank gave it up, and told all.
void Communicator::on_call_failed(uint32_t sequence, const Status& why) {
  if (Request* request = find_collective(sequence)) {
    request->fail(why, false);
  } else if (!before(sequence, next_sequence_)) {
    failed_ahead_.push_back({sequence, why});
  }
}

void Communicator::tell_call_failed(const Request& request) {
  const CollArgs& args = request.args();
  if (args.kind == CallKind::kSend)
    send_control(args.peer, ControlKind::kMessageLost, request.stamp().sequence, request.status(), args.tag);
  if (!is_point_to_point(args.kind)) tell_call_failed(request.stamp().sequence, request.status());
}

void Communicator::tell_call_failed(uint32_t sequence, const Status& status) {
  for (int peer = 0; peer < size(); ++peer)
    if (peer != rank_) send_control(peer, ControlKind::kCallFailed, sequence, status);
}

void Communicator::send_control(int peer, ControlKind kind, uint32_t sequence, const Status& status,
                                uint32_t tag) {
  MessageHead head;
  head.envelope = {0, 0, MessageIndex::control(tag).pack(), static_cast<uint32_t>(kind)};
  head.frame.call.sequence = sequence;
  head.frame.call.count = static_cast<uint64_t>(status.code());
  seal(head);
  readdress(head, numbers_[static_cast<size_t>(peer)], static_cast<uint32_t>(rank_));
  engine_.send_control(process(peer), head, status.message());
}

void Communicator::on_control(const MessageHead& head, const std::string& text) {
  const uint64_t code = head.frame.call.count;
  const uint32_t sequence = head.frame.call.sequence;
  if (code == UZIP_OK || code > UZIP_ERR_INTERNAL) return;
  const Status status(static_cast<StatusCode>(code),
                      "rank " + std::to_string(head.envelope.source) + " reports: " + text);
  switch (static_cast<ControlKind>(head.envelope.tag)) {
    case ControlKind::kPeerFailed: {
      // Who is called failed, and lives, has lost the one that says so.
      const uint32_t failed = static_cast<int>(sequence) == rank_ ? head.envelope.source : sequence;
      if (failed < processes_.size()) engine_.on_process_failed(processes_[failed], status, false);
      break;
    }
    case ControlKind::kCallFailed: on_call_failed(sequence, status); break;
    case ControlKind::kMessageLost:
      on_message_lost(head.envelope.source, sequence,
                      MessageIndex::unpack(head.envelope.index).tag_of_lost(), status);
      break;
  }
}

// ---- Sending ---------------------------------------------------------------------------------------------

Result<Progress> Communicator::send(int peer, MessageIndex index, uint32_t tag, const FrameHeader& frame,
                                    std::span<const std::byte> body, Completion* completion, const SendHints& hints) {
  MessageHead head;
  head.envelope = {0, 0, index.pack(), tag};
  head.frame = frame;
  seal(head);
  return send(peer, head, body, completion, hints);
}

Result<Progress> Communicator::send(int peer, MessageHead& head, std::span<const std::byte> body,
                                    Completion* completion, const SendHints& hints) {
  readdress(head, numbers_[static_cast<size_t>(peer)], static_cast<uint32_t>(rank_));
  return engine_.transport().send(process(peer), bytes_of(head), body, completion, hints);
}

bool Communicator::take_expected(int peer, MessageHead& head, std::span<std::byte> body) {
  readdress(head, numbers_[static_cast<size_t>(rank_)], static_cast<uint32_t>(peer));
  return engine_.transport().take_expected(process(peer), bytes_of(head), body);
}

}  // namespace uzip
