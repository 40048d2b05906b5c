#include "comm/request.hpp"

#include "comm/communicator.hpp"
#include "comm/engine.hpp"
#include "comm/struct_size.hpp"
#include "comm/user_op.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace uzip {
namespace {

/// How long a failed call waits for its sends to end before it leaves them behind.
constexpr std::chrono::milliseconds kDrainLimit{1000};
/// A nonblocking call of this size takes long enough for a thread to be woken for it.
constexpr size_t kLongBytes = size_t{256} << 10;

}  // namespace

Request::Request(Engine& engine) : engine_(engine), exchange_(*this), message_(*this), vote_(*this), offer_(*this) {
  stream_reached_.done = result_moved_.done = peers_done_.done = &Request::on_hook;
  stream_reached_.request = result_moved_.request = peers_done_.request = this;
  stream_reached_.then = &Request::on_stream_reached;
  result_moved_.then = &Request::finish;
  peers_done_.then = &Request::on_peers_done;
}

Status Request::use_memory_of(const CollArgs& args) {
  device_ = nullptr;
  if (args.device < 0) return Status();
  UZIP_ASSIGN_OR_RETURN(device_, engine_.gpus().device(args.device));
  return Status();
}

Status Request::follow_stream(const CollArgs& args) {
  follows_stream_ = false;
  if (!device_) return Status();
  UZIP_RETURN_IF_ERROR(device_->executor->check_stream(args.stream));
  // Nobody puts anything else on the stream of a blocking call, so that the peers' work can go there itself.
  return vote_.votes() && GpuPeers::may_be_on_callers_stream(args) ? Status() : watch_stream(args.stream);
}

Status Request::watch_stream(void* stream) {
  UZIP_ASSIGN_OR_RETURN(const Progress reached, device_->executor->after(stream, &stream_reached_));
  follows_stream_ = reached == Progress::kPending;
  hooks_ += follows_stream_;
  return Status();
}

Executor& Request::executor() { return device_ ? *device_->executor : engine_.executor(); }

void Request::on_hook(Completion* self, const Status& status) {
  auto* const hook = static_cast<Hook*>(self);
  Request& request = *hook->request;
  --request.hooks_;
  if (!request.ended() && !status.ok()) request.fail(status);
  else if (!request.ended()) (request.*hook->then)();
  request.on_drained();
}

void Request::on_stream_reached() {
  follows_stream_ = false;
  if (bound_ && !may_be_at_peers_) advance();
}

void Request::begin(Communicator& comm, CollArgs&& args, std::shared_ptr<PreparedPlan> prepared,
                      const CallStamp& stamp) {
  comm_ = &comm;
  args_ = std::move(args);
  args_.counts = {};  // the plan has them
  args_.neighbors = nullptr;
  prepared_ = std::move(prepared);
  stamp_ = stamp;
  next_round_ = 0;
  coding_habit_ = CodingHabit();
  finished_ = false;
  bound_ = args_.kind != CallKind::kRecv;
  status_ = Status();
  payload_bytes_ = wire_bytes_ = 0;
  at_peers_ = false;
  may_be_at_peers_ = vote_.votes();
  if (prepared_->direct) {
    start_direct();
  } else if (may_be_at_peers_) {
    if (comm_->peers()->wait_for_turn(*this)) vote_.start();
  } else if (offer_.offers()) {
    offer_.start();
  } else {
    start_rounds();
  }
  if (comm_->peers() && !ended() && !is_point_to_point(args_.kind)) comm_->offer_held(*this, MessageIndex::kInquiryRound);
}

void Request::start_direct() {
  if (is_point_to_point(args_.kind)) return message_.start();
  exchange_.start();
  if (!ended()) comm_->offer_held(*this, 0);
}

void Request::start_rounds() {
  if (prepared_->direct) return comm_->offer_held(*this, 0);  // of a receive, which goes on here after an offer
  while (rounds_.size() < plan().window) rounds_.push_back(std::make_unique<Round>(*this));
  if (bound_) advance();
}

void Request::on_voted(bool at_peers) {
  if (at_peers) return comm_->peers()->take_turn(*this);
  may_be_at_peers_ = false;
  if (GpuPeers::may_be_on_callers_stream(args_))
    if (const Status watched = watch_stream(args_.stream); !watched.ok()) fail(watched);
  comm_->peers()->leave_turn(*this);
  if (!ended()) start_rounds();
}

void Request::on_answered(bool at_peers) {
  may_be_at_peers_ = at_peers;
  at_peers ? start_at_peers() : start_rounds();
}

void Request::start_at_peers() {
  GpuPeers& peers = *comm_->peers();
  const bool message = is_point_to_point(args_.kind);
  way_ = message ? offer_.way() : vote_.wants_plain() ? GpuPeers::Way() : peers.way_of(plan());
  void* const stream = GpuPeers::may_be_on_callers_stream(args_) ? args_.stream : peers.own_stream(args_.kind);
  void* const after = follows_stream_ ? device_->executor->event_of(&stream_reached_) : nullptr;
  const auto sent = peers.start(args_, way_, stamp_, stream, after, &peers_done_);
  if (!sent.ok()) return fail(sent.status());
  at_peers_ = true;
  ++hooks_;
  payload_bytes_ = sent->payload;
  wire_bytes_ = sent->wire;
}

void Request::on_peers_done() {
  may_be_at_peers_ = false;
  args_.result_moves ? move_result() : finish();
}

Status Request::reserve(const std::shared_ptr<PreparedPlan>& prepared) {
  if (prepared->direct) {
    if (!prepared->plan.point_to_point()) exchange_.reserve(prepared->plan);
    return Status();
  }
  const uint32_t window = prepared->plan.window;
  while (rounds_.size() < window) rounds_.push_back(std::make_unique<Round>(*this));
  for (uint32_t i = 0; i < window; ++i)
    for (const auto& schedule : prepared->kept()) {
      // Where a GPU's memory is short there are fewer rounds in flight.
      const bool fits = !device_ || i == 0 ||
                        engine_.gpus().has_room(*device_, schedule->memory_bytes, schedule->device_bytes);
      if (fits) UZIP_RETURN_IF_ERROR(rounds_[i]->reserve(*schedule));
    }
  return Status();
}

void Request::unreserve() {
  for (const auto& round : rounds_) round->unreserve();
}

void Request::set_sender(uint32_t sequence) {
  stamp_.sequence = sequence;
  bound_ = true;
}

void Request::bind_sender(uint32_t sequence, bool offered) {
  set_sender(sequence);
  if (offered) return offer_.expect();
  prepared_->direct ? comm_->offer_held(*this, 0) : advance();
}

bool Request::on_aside(Incoming& incoming, int source, uint32_t number) {
  return is_point_to_point(args_.kind) ? offer_.on_message(incoming, number) : vote_.on_message(incoming, source, number);
}

/// Starts rounds while there are free places in the window. Rounds that finish at once come back through
/// on_round_finished(), which must not recurse.
void Request::advance() {
  if (advancing_ || follows_stream_ || offer_.active()) return;
  advancing_ = true;
  while (!finished_ && status_.ok() && next_round_ < plan().rounds) {
    Round& round = *rounds_[next_round_ % plan().window];
    if (round.active()) break;
    auto schedule = comm_->schedules().get(*prepared_, next_round_, device_);
    if (!schedule.ok()) {
      fail(schedule.status());
      break;
    }
    if (device_ && !has_room(round, **schedule)) break;
    const uint32_t number = next_round_++;
    round.start(std::move(*schedule), number);
    if (status_.ok() && round.active() && round.number() == number) comm_->offer_held(*this, number);
  }
  advancing_ = false;
  if (finished_ || !status_.ok() || next_round_ < plan().rounds) return;
  for (uint32_t i = 0; i < plan().window; ++i)
    if (rounds_[i]->active()) return;
  args_.result_moves ? move_result() : finish();
}

/// Whether the GPU's memory suffices for one more round. One round of a call always starts, so that it gets on.
bool Request::has_room(const Round& round, const PreparedSchedule& schedule) const {
  if (round.has_memory_for(schedule)) return true;
  const bool fits = engine_.gpus().has_room(*device_, schedule.memory_bytes, schedule.device_bytes);
  return fits || std::none_of(rounds_.begin(), rounds_.end(), [](const auto& other) { return other->active(); });
}

void Request::on_round_finished() { advance(); }

int Request::rank() const { return comm_->rank(); }

/// MPI's in-place reduce_scatter: the result was made in the rank's own block and goes to the front.
void Request::move_result() {
  auto* front = const_cast<std::byte*>(args_.src);
  const std::vector<size_t>& counts = plan().shape.counts;
  const size_t count = counts.empty() ? args_.count : counts[static_cast<size_t>(rank())];
  const auto moved = executor().copy(front, args_.dst, count * datatype_size(args_.type), &result_moved_);
  if (!moved.ok()) return fail(moved.status());
  if (*moved == Progress::kDone) return finish();
  ++hooks_;
}

void Request::finish() {
  finished_ = true;
  if (args_.info) {
    const size_t chunk = at_peers_ ? args_.count : plan().chunk;
    const char* const codec = !at_peers_ ? plan().codec_name() : way_.codec ? way_.codec->name : "raw";
    write_struct({0, at_peers_ ? "gpu_peers" : plan().algorithm_name(), codec, chunk * datatype_size(args_.type),
                  payload_bytes_, wire_bytes_},
                 args_.info);
  }
  comm_->on_request_ended(*this);
}

Request::Answer Request::on_message(Incoming& incoming, const FrameHeader& frame, int source,
                                        uint32_t round, uint32_t message) {
  if (finished_ || !status_.ok()) return Answer::kRefused;
  if (round >= plan().rounds || may_be_at_peers_) return round < plan().rounds ? Answer::kLater : Answer::kRefused;
  if (prepared_->direct) {
    if (offer_.active()) return Answer::kLater;
    const bool taken = message == 0 && (is_point_to_point(args_.kind) ? message_.on_message(incoming, frame)
                                                                      : exchange_.on_message(incoming, frame, source));
    return taken ? Answer::kTaken : Answer::kRefused;
  }
  if (round >= next_round_) return Answer::kLater;
  Round& running = *rounds_[round % plan().window];
  if (!running.active() || running.number() != round) return Answer::kRefused;
  return running.on_message(incoming, frame, source, message) ? Answer::kTaken : Answer::kRefused;
}

void Request::fail(const Status& status, bool tell_others) {
  if (finished_ || !status_.ok()) return;
  status_ = status.with_context(describe());
  failed_at_ = std::chrono::steady_clock::now();
  exchange_.abandon();
  message_.abandon();
  vote_.abandon();
  offer_.abandon();
  for (const auto& round : rounds_) round->abandon();
  if (tell_others && comm_) comm_->tell_call_failed(*this);
  if (std::exchange(may_be_at_peers_, false) && comm_) {
    comm_->peers()->give_up();
    comm_->peers()->leave_turn(*this);
  }
  if (comm_) comm_->on_request_ended(*this);
}

void Request::detach() {
  if (!finished_ && status_.ok())
    fail(error(UZIP_ERR_INVALID, "its communicator was freed before it completed"), false);
  comm_ = nullptr;
}

void Request::on_drained() {
  if (status_.ok()) return;
  for (const auto& round : rounds_) round->abandon();
}

bool Request::drained() const {
  return exchange_.pending() == 0 && message_.pending() == 0 && vote_.pending() == 0 && offer_.pending() == 0 && hooks_ == 0 &&
         std::all_of(rounds_.begin(), rounds_.end(), [](const auto& round) { return round->pending() == 0; });
}

bool Request::is_long() const {
  return plan().rounds > 1 || args_.count * datatype_size(args_.type) >= kLongBytes;
}

bool Request::done() const {
  if (finished_) return true;
  if (status_.ok()) return false;
  return drained() || std::chrono::steady_clock::now() - failed_at_ > kDrainLimit;
}

std::byte* Request::base(Slot slot, uint32_t round) const {
  const Plan& plan = prepared_->plan;
  if (plan.with_neighbors()) return nullptr;
  if (!plan.point_to_point() && layout_of(plan.coll(), slot, rank() == plan.shape.root) == Layout::kBlocks) return nullptr;
  auto* begin = slot == Slot::kInput ? const_cast<std::byte*>(args_.src) : args_.dst;
  if (!begin) return nullptr;  // this rank has no such buffer
  const size_t ranks = plan.of_vectors() ? static_cast<size_t>(plan.shape.size) : 1;
  return begin + size_t{round} * plan.chunk * ranks * datatype_size(args_.type);
}

std::byte* Request::block_address(const Slice& slice, const PreparedSchedule& schedule, uint32_t round) const {
  const Plan& plan = prepared_->plan;
  auto* begin = slice.slot == Slot::kInput ? const_cast<std::byte*>(args_.src) : args_.dst;
  const bool input = slice.slot == Slot::kInput;
  const auto& starts = schedule.block_begin[static_cast<size_t>(slice.slot)];
  // The last block that begins at or before the slice; empty blocks share their beginning with the next.
  const auto next = std::upper_bound(starts.begin(), starts.end(), slice.offset);
  const auto block = static_cast<size_t>(next - starts.begin()) - 1;
  size_t element = slice.offset - starts[block];
  if (plan.with_neighbors()) {
    const Neighborhood& all = plan.shape.neighborhood;
    const NeighborBlock& where = (input ? all.sends : all.receives)[block];
    element += where.offset + size_t{round} * where.chunk;
  } else {
    element += size_t{round} * plan.chunk;
    element += args_.pairs ? (input ? args_.pairs->sent : args_.pairs->received).begins[block]
                           : plan.block_offset(static_cast<int>(block));
  }
  return begin + element * datatype_size(args_.type);
}

Result<Progress> Request::send(int peer, MessageIndex index, FrameHeader frame, size_t elements,
                                 std::span<const std::byte> body, Completion* completion, uint32_t receivers,
                                 SecondCopy* second) {
  frame.call = plan().point_to_point() ? stamp_ : sent_stamp(peer);
  payload_bytes_ += elements * datatype_size(args_.type);
  wire_bytes_ += sizeof(MessageHead) + body.size();
  uint32_t tag = 0;
  if (plan().point_to_point()) {
    index.kind = MessageKind::kPointToPoint;
    tag = args_.tag;
  }
  return comm_->send(peer_rank(peer), index, tag, frame, body, completion, {plan().body_use(), receivers, second});
}

MessageHead Request::sealed_head(MessageIndex index, FrameHeader frame) const {
  MessageHead head;
  head.envelope.index = index.pack();
  head.envelope.tag = args_.tag;  // 0 of collectives
  head.frame = frame;
  head.frame.call = stamp_;
  seal(head);
  return head;
}

Result<Progress> Request::send(int peer, MessageHead& head, size_t elements, std::span<const std::byte> body,
                               Completion* completion, uint32_t receivers) {
  payload_bytes_ += elements * datatype_size(args_.type);
  wire_bytes_ += sizeof head + body.size();
  return comm_->send(peer, head, body, completion, {plan().body_use(), receivers, nullptr});
}

bool Request::take_expected(int peer, MessageHead& head, std::span<std::byte> body) {
  return comm_->take_expected(peer, head, body);
}

Result<Progress> Request::reduce(void* dst, std::span<const void* const> sources, size_t count, size_t average_over,
                                 Completion* completion) {
  if (args_.user_op) {
    UZIP_RETURN_IF_ERROR(args_.user_op->reduce(args_.type, dst, sources, count));
    return Progress::kDone;
  }
  return executor().reduce(args_.op, args_.type, dst, sources, count, args_.op == UZIP_AVG ? average_over : 0,
                            completion);
}

Result<Progress> Request::decode_reduce(DecodeReduceTask& task, Completion* completion) {
  assert(!args_.user_op);  // its schedules are not fused
  task.op = args_.op;
  if (args_.op != UZIP_AVG) task.average_over = 0;
  return engine_.executor().decode_reduce(task, completion);
}

std::vector<int> Request::waits_for() const {
  std::vector<int> result;
  if (!bound_ || offer_.active() || ((at_peers_ || prepared_->direct) && plan().point_to_point())) return {args_.peer};
  std::vector<bool> ranks(static_cast<size_t>(plan().shape.size));
  exchange_.waits_for(ranks);
  vote_.waits_for(ranks);
  if (at_peers_ && !ended()) {
    ranks.assign(ranks.size(), true);  // which ones the GPU knows
    ranks[static_cast<size_t>(rank())] = false;
  }
  for (const auto& round : rounds_) {
    if (plan().point_to_point() && round->active()) return {args_.peer};
    round->waits_for(ranks);
  }
  for (size_t r = 0; r < ranks.size(); ++r)
    if (ranks[r]) result.push_back(static_cast<int>(r));
  return result;
}

void Request::inquire() {
  if (ended() || plan().point_to_point()) return;
  for (int rank : waits_for()) comm_->send_aside(rank, expected_stamp(rank), 0);
}

CallStamp Request::sent_stamp(int rank) const {
  CallStamp stamp = stamp_between(stamp_, plan(), rank, true);
  if (args_.pairs) stamp.count = args_.pairs->sent.counts[static_cast<size_t>(rank)];
  return stamp;
}

CallStamp Request::expected_stamp(int rank) const {
  CallStamp stamp = stamp_between(stamp_, plan(), rank, false);
  if (args_.pairs) stamp.count = args_.pairs->received.counts[static_cast<size_t>(rank)];
  return stamp;
}

std::string Request::describe() const {
  std::string text = call_name(args_.kind);
  if (args_.kind == CallKind::kBarrier || args_.kind == CallKind::kAgreement) return text;
  text += " of " + std::to_string(args_.count) + " " + datatype_info(args_.type).name;
  if (is_reduction(args_.kind)) text += std::string(" (") + uzip_op_name(args_.op) + ")";
  if (args_.kind == CallKind::kSend) text += " to rank " + std::to_string(args_.peer);
  if (args_.kind == CallKind::kRecv) text += " from rank " + std::to_string(args_.peer);
  return text;
}

CallStamp stamp_between(CallStamp stamp, const Plan& plan, int rank, bool sent) {
  if (plan.with_neighbors())
    stamp.count = sent ? plan.shape.neighborhood.sent_to(rank) : plan.shape.neighborhood.received_from(rank);
  return stamp;
}

std::string describe_call(const CallStamp& stamp) {
  const auto kind = static_cast<CallKind>(stamp.coll);
  std::string text = call_name(kind);
  if (kind == CallKind::kNeighborAlltoallV)
    return text + (stamp.count == UINT64_MAX ? " without a block from one to the other"
                                             : " with a block of " + std::to_string(stamp.count) + " elements");
  if (kind == CallKind::kBarrier || kind == CallKind::kAgreement) return text;
  text += " of " + std::to_string(stamp.count) + " elements";
  const auto op = static_cast<ReduceOp>(stamp.op);
  const char* user_op = stamp.op == kUserOpInStamp          ? "user-defined, commutative"
                        : stamp.op == kOrderedUserOpInStamp ? "user-defined, not commutative"
                                                            : "?";
  if (is_reduction(kind)) text += std::string(" (") + (is_reduce_op(op) ? reduce_op_name(op) : user_op) + ")";
  return text;
}

}  // namespace uzip
