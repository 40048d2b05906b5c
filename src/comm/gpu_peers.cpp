#include "comm/gpu_peers.hpp"

#include "base/config.hpp"
#include "base/log.hpp"
#include "comm/gpu_devices.hpp"
#include "comm/gpu_moves.hpp"
#include "comm/gpu_offer.hpp"
#include "comm/request.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <optional>

namespace uzip {
namespace {

/// After so long a kernel that waits for a rank gives up, if the host has not done so before.
constexpr double kKernelSeconds = 60;
/// Memory of a communicator's GPU, unless UZIP_GPU_PEER_MEMORY says another: room for six pieces of an all-reduce on
/// their way. With less of it large calls between two GPUs take up to 1.2 times as long.
constexpr size_t kDefaultMemory = size_t{384} << 20;

/// What a rank sends another of a call must have so many bytes before coding it is faster. Measured on two H200;
/// for more ranks what was right for coding by pieces. fp8 takes longer to code than to send, and fp16 to code, reduce
/// and code again; fp64 is coded by pieces only.
size_t least_coded_bytes(CallKind kind, DataType type, int ranks) {
  constexpr size_t kMiB = size_t{1} << 20;
  if (is_point_to_point(kind) || moves_only(kind)) return 48 * kMiB;
  if (datatype_size(type) == 1) return SIZE_MAX;
  const bool is_slow = type == UZIP_FP64 || (type == UZIP_FP16 && kind == CallKind::kAllreduce);
  if (ranks > 2 || is_slow) return 128 * kMiB;
  return (kind == CallKind::kReduceScatter || kind == CallKind::kReduce ? 16 : 8) * kMiB;
}

/// A coded call does not pay where more is left of its bytes, as measured on two H200 with bf16.
constexpr double kMostLeft = 15.0 / 16;
/// After a call that did not shrink so many like it are not coded, then twice as many and so on.
constexpr uint8_t kLeastPause = 7, kMostPause = 127;
/// Calls are alike if they have the kind, the type, and the bytes rounded down to a power of two.
constexpr size_t kSizes = 48, kFloats = UZIP_FP8_E5M2 - UZIP_FP16 + 1, kColls = 3;

/// Calls at work at a time; the plugin can count 256, from the oldest one on.
constexpr size_t kMostAtWork = 128;
/// Beyond so many messages go in rounds.
constexpr size_t kMostMessages = 64;
/// Shorter messages go in rounds: their senders need not wait for a receiver.
constexpr size_t kLeastMessageBytes = 8192;
/// So many turns what has been accepted waits for what this rank has offered to be accepted: putting a call on streams takes
/// the host a while, in which what is sent could be on its way, and what is received has not come anyway.
constexpr int kTurnsForSends = 60;

/// How long the end of a communicator waits for calls that it gave up.
constexpr std::chrono::seconds kGiveUpLimit{5};

std::optional<gpu::PeerColl> coll_here(CallKind kind) {
  switch (kind) {
    case CallKind::kAllreduce: return gpu::PeerColl::kAllreduce;
    case CallKind::kReduceScatter: return gpu::PeerColl::kReduceScatter;
    case CallKind::kAllgather: return gpu::PeerColl::kAllgather;
    case CallKind::kReduce: return gpu::PeerColl::kReduce;
    case CallKind::kSend: return gpu::PeerColl::kSend;
    case CallKind::kRecv: return gpu::PeerColl::kRecv;
    default: return std::nullopt;
  }
}

/// Whether the peers' results have the bits of the plan's: they reduce in rank order, and round once.
bool has_same_bits(const Plan& plan) {
  return plan.algorithm && (plan.algorithm->order == Order::kRanks || plan.algorithm->order == Order::kMoves);
}

}  // namespace

GpuPeers::GpuPeers(GpuDevices& gpus, const Config& config, int rank, int size)
    : gpus_(gpus), config_(config), rank_(rank), size_(size) {}

GpuPeers::~GpuPeers() {
  if (!api_) return;
  given_up_ = given_up_ || busy();
  const auto limit = std::chrono::steady_clock::now() + kGiveUpLimit;
  while (busy() && std::chrono::steady_clock::now() < limit) end_calls();
  // What a stream may still write to stays for good.
  if (!busy()) {
    if (group_) api_->peers()->destroy(group_);
    if (stream_) (void)api_->destroy_stream(stream_);
  }
  gpus_.remove(this);
}

// ---- Agreement -------------------------------------------------------------------------------------------

Ballot GpuPeers::vote(const CollArgs& args, const Plan& plan) {
  const bool suits = moves_only(args.kind) ? args.kind != CallKind::kAlltoall || !args.in_place
                                           : !is_point_to_point(args.kind) && coll_here(args.kind);
  if (is_refused() || args.user_op || !suits || !has_same_bits(plan) || !has_memory_for(args)) return Ballot::kNo;
  if (state_ != State::kReady) return Ballot::kOffer;
  const auto coll = coll_here(args.kind);
  const uint16_t which = coll ? habit_of(*coll, args.type, args.count) : kNoHabit;
  if (which != kNoHabit && habits_[which].plain > 0 && way_of(plan).codec) {
    --habits_[which].plain;
    return Ballot::kPlain;
  }
  return Ballot::kReady;
}

/// Takes memory on the GPU of the first such call.
bool GpuPeers::has_memory_for(const CollArgs& args) {
  if (args.device < 0 || args.count == 0) return false;
  if (state_ == State::kUnused) {
    if (const Status created = create(args.device); !created.ok()) {
      refuse(created.message().c_str());
      return false;
    }
    state_ = State::kOffered;
  }
  return args.device == device_;
}

/// Of the collectives that the plugin codes as one.
uint16_t GpuPeers::habit_of(gpu::PeerColl coll, DataType type, size_t count) {
  if (!is_float(type) || coll > gpu::PeerColl::kAllgather) return kNoHabit;
  const size_t size = std::min<size_t>(std::bit_width(count * datatype_size(type)), kSizes - 1);
  return static_cast<uint16_t>((static_cast<size_t>(coll) * kFloats + static_cast<size_t>(type - UZIP_FP16)) * kSizes + size);
}

/// From a coded call that has ended well.
void GpuPeers::learn(const Call& call) {
  uint64_t elements = 0, coded = 0;
  api_->peers()->shrunk(group_, call.ticket, &elements, &coded);
  if (elements == 0) return;
  Habit& habit = habits_[call.habit];
  const bool shrank = static_cast<double>(coded) < kMostLeft * static_cast<double>(elements);
  habit.pause = shrank ? uint8_t{0} : static_cast<uint8_t>(std::clamp(2 * habit.pause + 1, int{kLeastPause}, int{kMostPause}));
  habit.plain = habit.pause;
}

Status GpuPeers::create(int device) {
  api_ = gpus_.plugin();
  if (!api_) return error(UZIP_ERR_UNSUPPORTED, "there is no plugin for GPU %d", device);
  gpus_.add(this);
  device_ = device;
  int before = device;
  UZIP_RETURN_IF_ERROR(check(api_->current_device(&before)));
  UZIP_RETURN_IF_ERROR(check(api_->set_device(device)));
  const Status created = create_here();
  UZIP_RETURN_IF_ERROR(check(api_->set_device(before)));
  return created;
}

/// On the current device.
Status GpuPeers::create_here() {
  UZIP_RETURN_IF_ERROR(check(api_->create_stream(&stream_)));
  gpu::PeerOptions options{};
  options.rank = rank_;
  options.ranks = size_;
  options.most_bytes = config_.gpu_peer_memory ? config_.gpu_peer_memory : kDefaultMemory;
  options.deadline_ns = static_cast<uint64_t>(kKernelSeconds * 1e9);
  options.blocks = static_cast<unsigned>(config_.gpu_blocks);
  return check(api_->peers()->create(&options, &group_, &handle_));
}

bool GpuPeers::open(std::span<const gpu::PeerHandle> handles) {
  if (state_ == State::kOffered) {
    const Status opened = check(api_->peers()->connect(group_, handles.data()));
    if (opened.ok()) state_ = State::kOpened;
    else refuse(opened.message().c_str());
  }
  return state_ != State::kRefused;
}

void GpuPeers::all_have_opened() {
  if (state_ != State::kOpened) return;
  state_ = State::kReady;
  habits_.resize(kColls * kFloats * kSizes);
  log(LogLevel::kInfo, "the GPUs of %d ranks have opened memory to one another", size_);
}

void GpuPeers::refuse(const char* why) {
  if (state_ == State::kRefused) return;
  state_ = State::kRefused;
  log(LogLevel::kWarn, "calls between the GPUs of this host go through its memory: %s", why);
}

// ---- Messages --------------------------------------------------------------------------------------------

bool GpuPeers::offers(const CollArgs& args) {
  if (args.kind != CallKind::kSend || args.peer == rank_ || args.count * datatype_size(args.type) < kLeastMessageBytes)
    return false;
  return takes(args) && has_room();
}

bool GpuPeers::open_pair(int rank, const gpu::PeerHandle& handle) {
  paired_.resize(static_cast<size_t>(size_));
  const Status opened = check(api_->peers()->connect_pair(group_, rank, &handle));
  if (!opened.ok()) refuse(opened.message().c_str());
  return opened.ok();
}

void GpuPeers::leave(GpuOffer& offer) {
  std::erase(offers_, &offer);
  std::erase(accepted_, &offer);
  if (opening_ == &offer) opening_ = nullptr;
}

/// Whether one more message can be counted, with those that this rank has offered.
bool GpuPeers::has_room() const {
  uint64_t oldest = last_ticket_ + 1;
  for (const Call& call : calls_) oldest = std::min(oldest, call.ticket);
  return last_ticket_ + 1 - oldest + offered_ < kMostMessages;
}

bool GpuPeers::has_collectives() const {
  return !turns_.empty() ||
         std::ranges::any_of(calls_, [](const Call& call) { return call.is_part || call.coll < gpu::PeerColl::kSend; });
}

bool GpuPeers::receives() const {
  return opening_ || !accepted_.empty() || std::ranges::any_of(calls_, [](const Call& call) {
           return call.coll == gpu::PeerColl::kRecv && !call.is_part;
         });
}

bool GpuPeers::receives_from_others_than(int rank) const {
  const bool waits = std::ranges::any_of(accepted_, [&](const GpuOffer* offer) { return offer->source() != rank; });
  return opening_ || waits || std::ranges::any_of(calls_, [&](const Call& call) {
           return call.coll == gpu::PeerColl::kRecv && !call.is_part && call.peer != rank;
         });
}

/// Those of other communicators have the same GPUs.
template <class Question>
bool GpuPeers::any_group(Question question) const {
  return std::ranges::any_of(gpus_.peers(), [&](const GpuPeers* peers) { return (peers->*question)(); });
}

bool GpuPeers::answer_offers() {
  bool moved = false;
  while (!offers_.empty()) {
    GpuOffer& next = *offers_.front();
    const bool accepts = !is_refused() && has_room() && !any_group(&GpuPeers::has_collectives);
    const bool others_receive =
        std::ranges::any_of(gpus_.peers(), [&](const GpuPeers* peers) { return peers != this && peers->receives(); });
    if (accepts && (others_receive || receives_from_others_than(next.source()))) break;
    offers_.pop_front();
    moved = true;
    if (accepts) {
      opening_ = &next;
      next.accept();
    } else {
      next.decline();
    }
  }
  return moved;
}

bool GpuPeers::start_to_receive() {
  if (offered_ > 0 && ++turns_of_accepted_ < kTurnsForSends) return true;  // it is no time to sleep
  turns_of_accepted_ = 0;
  while (!accepted_.empty()) {
    GpuOffer& next = *accepted_.front();
    next.start_to_receive();
    std::erase(accepted_, &next);
  }
  return true;
}

bool GpuPeers::start_votes() {
  bool moved = false;
  for (;;) {
    const auto next = std::ranges::find_if(turns_, [](const Turn& turn) { return !turn.voted; });
    if (next == turns_.end() || any_group(&GpuPeers::receives)) return moved;
    next->voted = moved = true;
    next->request->start_vote();
  }
}

// ---- Order -----------------------------------------------------------------------------------------------

bool GpuPeers::wait_for_turn(Request& request) {
  const bool votes = !any_group(&GpuPeers::receives);
  turns_.push_back({&request, votes, false});
  return votes;
}

void GpuPeers::take_turn(Request& request) {
  for (Turn& turn : turns_)
    if (turn.request == &request) turn.agreed = true;
  advance();
}

void GpuPeers::leave_turn(Request& request) {
  std::erase_if(turns_, [&](const Turn& turn) { return turn.request == &request; });
  advance();
}

void GpuPeers::advance() {
  while (!turns_.empty() && turns_.front().agreed && calls_.size() < kMostAtWork) {
    Request& next = *turns_.front().request;
    turns_.pop_front();
    next.start_at_peers();  // may fail, and come here again
  }
}

// ---- Calls -----------------------------------------------------------------------------------------------

GpuPeers::Way GpuPeers::way_of(const Plan& plan) const {
  const CallShape& shape = plan.shape;
  if (shape.options.codec.codec) return {plan.codec, plan.level};
  const size_t ranks = static_cast<size_t>(size_);
  const size_t piece = shape.count / (shape.kind == CallKind::kAllreduce ? ranks : 1) * datatype_size(shape.type);
  if (!is_float(shape.type) || piece < least_coded_bytes(shape.kind, shape.type, size_)) return {};
  return {find_codec("lev"), CodecLevel::kFastest};
}

Result<GpuPeers::Sent> GpuPeers::start(const CollArgs& args, const Way& way, const CallStamp& stamp, void* stream, void* after,
                                       Completion* completion) {
  const bool message = is_point_to_point(args.kind);
  if (given_up_ || !(message ? paired(args.peer) : state_ == State::kOpened || state_ == State::kReady))
    return error(UZIP_ERR_INTERNAL, "a call between the GPUs of this host has failed before, which this one was to follow");
  gpu::PeerCall call{};
  call.type = static_cast<uint8_t>(args.type);
  call.op = static_cast<uint8_t>(args.op);
  call.compress = way.codec != nullptr;
  call.levels = gpu::levels_on_gpu(way.level);
  call.peer = args.kind == CallKind::kReduce ? args.root : args.peer;
  call.count = args.count;
  call.average_over = args.op == UZIP_AVG ? static_cast<uint64_t>(size_) : 0;
  call.src = args.src;
  call.dst = args.dst;
  call.stamp = stamp;
  Sent sent{};
  if (moves_only(args.kind)) {
    UZIP_RETURN_IF_ERROR(put_moves(args, call, after, completion, &sent));
    return sent;
  }
  call.coll = *coll_here(args.kind);
  if (after) UZIP_RETURN_IF_ERROR(check(api_->stream_waits_for_event(stream, after)));
  UZIP_RETURN_IF_ERROR(put(call, stream, false, completion, &sent));
  return sent;
}

Status GpuPeers::put(const gpu::PeerCall& call, void* stream, bool is_part, Completion* completion, Sent* sent) {
  gpu::PeerTicket ticket{};
  UZIP_RETURN_IF_ERROR(check(api_->peers()->start(group_, &call, stream, &ticket)));
  last_ticket_ = ticket.number;
  const bool learns = call.compress && !is_part && !habits_.empty();
  const uint16_t habit = learns ? habit_of(call.coll, static_cast<DataType>(call.type), call.count) : kNoHabit;
  calls_.push_back({ticket.number, call.coll, call.peer, is_part, completion, habit});
  sent->payload += ticket.payload_bytes;
  sent->wire += ticket.wire_bytes;
  return Status();
}

/// All at once, on the two streams of messages.
Status GpuPeers::put_moves(const CollArgs& args, gpu::PeerCall call, void* after, Completion* completion, Sent* sent) {
  void* const out = own_stream(CallKind::kSend);
  void* const in = own_stream(CallKind::kRecv);
  const size_t before = calls_.size();
  const auto start = [&]() -> Status {
    for (void* const stream : {in, out})
      if (after) UZIP_RETURN_IF_ERROR(check(api_->stream_waits_for_event(stream, after)));
    // Before what this rank waits for in any case: of such a call it sends in each step, or receives.
    if (const GpuMove own = own_move(args, rank_); own.src) {
      const size_t bytes = args.count * datatype_size(args.type);
      UZIP_RETURN_IF_ERROR(check(api_->copy(own.dst, own.src, bytes, move_at(args, rank_, size_, 1).to >= 0 ? out : in)));
    }
    for (int step = 1; step < size_; ++step) {
      const GpuMove move = move_at(args, rank_, size_, step);
      call.src = move.src;
      call.dst = move.dst;
      call.coll = gpu::PeerColl::kSend;
      call.peer = move.to;
      if (move.to >= 0) UZIP_RETURN_IF_ERROR(put(call, out, true, completion, sent));
      call.coll = gpu::PeerColl::kRecv;
      call.peer = move.from;
      if (move.from >= 0) UZIP_RETURN_IF_ERROR(put(call, in, true, completion, sent));
    }
    return Status();
  };
  const Status started = start();
  for (size_t i = before; !started.ok() && i < calls_.size(); ++i) calls_[i].completion = nullptr;
  return started;
}

bool GpuPeers::may_be_on_callers_stream(const CollArgs& args) {
  return args.blocking && !is_point_to_point(args.kind) && !moves_only(args.kind);
}

void* GpuPeers::own_stream(CallKind kind) const {
  return is_point_to_point(kind) ? api_->peers()->stream_of(group_, *coll_here(kind)) : stream_;
}

void GpuPeers::give_up() {
  given_up_ = true;
  if (group_) static_cast<void>(api_->peers()->give_up(group_));  // the others may wait although nothing is at work here
  refuse("one has failed, and after it no other could be started");
}

bool GpuPeers::progress() {
  bool moved = end_calls();
  if (!offers_.empty()) moved |= answer_offers();
  if (!accepted_.empty()) moved |= start_to_receive();
  if (!turns_.empty()) moved |= start_votes();
  return moved;
}

bool GpuPeers::end_calls() {
  if (calls_.empty()) return false;
  if (given_up_) static_cast<void>(api_->peers()->give_up(group_));
  bool moved = false;
  for (size_t i = 0; i < calls_.size();) {
    bool done = false;
    const Status status = check(api_->peers()->query(group_, calls_[i].ticket, &done));
    if (!done) {
      ++i;
      continue;
    }
    Completion* const completion = calls_[i].completion;
    if (status.ok() && calls_[i].habit != kNoHabit) learn(calls_[i]);
    calls_.erase(calls_.begin() + static_cast<ptrdiff_t>(i));
    const bool goes_on = std::ranges::any_of(calls_, [&](const Call& call) { return call.completion == completion; });
    if (completion && !goes_on) completion->done(completion, status);
    moved = true;
  }
  if (moved) advance();
  return moved;
}

Status GpuPeers::check(int failed) const {
  switch (failed) {
    case 0: return Status();
    case gpu::kPeerUnsupported: return error(UZIP_ERR_UNSUPPORTED, "%s", api_->last_error());
    case gpu::kPeerTimedOut: return error(UZIP_ERR_TIMEOUT, "%s", api_->last_error());
    case gpu::kPeerCorrupt: return error(UZIP_ERR_CORRUPT, "%s", api_->last_error());
    default: return error(UZIP_ERR_INTERNAL, "%s", api_->last_error());
  }
}

}  // namespace uzip
