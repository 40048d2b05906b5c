#include "comm/direct_exchange.hpp"

#include "base/copy.hpp"
#include "comm/engine.hpp"
#include "comm/request.hpp"

#include <utility>

namespace uzip {
namespace {

/// Larger messages are worth a schedule, whose long steps leave time for others. Where nothing is reduced there are none.
constexpr size_t kMostReducedBytes = kMostPolledBytes;
constexpr size_t kMostGatheredBytes = 1024 * 1024;
/// A rank's own elements of this size are copied while the others' are on their way; fewer take no time.
constexpr size_t kCopiedMeanwhile = 4 * 1024;
constexpr int kMostRanks = 16;

bool has_one_hop(const Plan& plan) {
  switch (plan.shape.kind) {
    case CallKind::kAllreduce:
    case CallKind::kReduceScatter:
    case CallKind::kAllgather: return plan.algorithm && plan.algorithm->one_hop;
    case CallKind::kBarrier: return plan.shape.size == 2;
    default: return false;
  }
}

size_t most_bytes(CallKind kind) { return kind == CallKind::kAllgather ? kMostGatheredBytes : kMostReducedBytes; }

size_t message_bytes(const Plan& plan) { return plan.shape.count * datatype_size(plan.shape.type); }

}  // namespace

bool DirectExchange::suits(const Plan& plan) {
  return has_one_hop(plan) && plan.rounds == 1 && !plan.codec && plan.shape.size > 1 && plan.shape.size <= kMostRanks &&
         message_bytes(plan) <= most_bytes(plan.shape.kind);
}

void DirectExchange::reserve(const Plan& plan) {
  make_room(static_cast<size_t>(plan.shape.size), plan.shape.kind == CallKind::kAllgather ? 0 : message_bytes(plan));
}

void DirectExchange::make_room(size_t ranks, size_t bytes) {
  if (memory_.size() < ranks * bytes) memory_.resize(ranks * bytes);
  if (sends_.size() == ranks) return;
  sends_.resize(ranks);
  receives_.resize(ranks);
  sources_.resize(ranks);
  for (size_t r = 0; r < ranks; ++r) {
    sends_[r].completion.done = receives_[r].completion.done = &DirectExchange::on_completion;
    sends_[r].exchange = receives_[r].exchange = this;
  }
}

void DirectExchange::start() {
  const CollArgs& args = request_.args();
  ranks_ = static_cast<size_t>(request_.size());
  rank_ = static_cast<size_t>(request_.rank());
  bytes_ = args.count * datatype_size(args.type);
  gathers_ = args.kind == CallKind::kAllgather || args.kind == CallKind::kBarrier;
  scatters_ = args.kind == CallKind::kReduceScatter;
  copied_ = !gathers_ || args.in_place;
  make_room(ranks_, gathers_ ? 0 : bytes_);
  for (Operand& receive : receives_) receive.arrived = false;
  receives_[rank_].arrived = true;
  missing_ = static_cast<uint32_t>(2 * (ranks_ - 1));
  head_ = request_.sealed_head({MessageKind::kCollective, 0, 0}, raw_frame_header(args.type, args.count));
  for (size_t step = 1; step < ranks_; ++step) {
    const size_t peer = (rank_ + step) % ranks_;
    const uint32_t receivers = scatters_ ? 1 : step == 1 ? static_cast<uint32_t>(ranks_ - 1) : 0;
    const Result<Progress> sent = request_.send(static_cast<int>(peer), head_, args.count, {sent_to(peer), bytes_},
                                                &sends_[peer].completion, receivers);
    if (!sent.ok()) return request_.fail(sent.status());
    if (*sent == Progress::kPending) ++pending_;
    else if (--missing_ == 0) return finish();
  }
  if (bytes_ >= kCopiedMeanwhile) copy_own();
}

/// This rank's elements to their place in the result, once.
void DirectExchange::copy_own() {
  if (std::exchange(copied_, true)) return;
  copy_bytes(place_of(rank_), request_.args().src, bytes_);
}

const std::byte* DirectExchange::sent_to(size_t rank) const {
  return request_.args().src + (scatters_ ? rank * bytes_ : 0);
}

std::byte* DirectExchange::place_of(size_t rank) {
  return (gathers_ ? request_.args().dst : memory_.data()) + rank * bytes_;
}

bool DirectExchange::poll() {
  bool moved = false;
  for (size_t r = 0; missing_ > 0 && r < ranks_; ++r) {
    if (receives_[r].arrived || !request_.take_expected(static_cast<int>(r), head_, {place_of(r), bytes_})) continue;
    moved = receives_[r].arrived = true;
    if (--missing_ == 0) finish();
  }
  return moved;
}

bool DirectExchange::on_message(Incoming& incoming, const FrameHeader& frame, int source) {
  const auto rank = static_cast<size_t>(source);
  if (missing_ == 0 || receives_[rank].arrived) return false;
  if (frame.count != request_.args().count || frame.codec != kCodecRaw || incoming.body_bytes != bytes_) {
    request_.fail(error(UZIP_ERR_CORRUPT, "rank %d sent a frame of codec %u with %llu elements in %zu bytes, not %zu raw",
                        source, frame.codec, static_cast<unsigned long long>(frame.count), incoming.body_bytes,
                        request_.args().count));
    return false;
  }
  receives_[rank].arrived = true;
  const Result<Progress> taken =
      request_.engine().take(incoming, {place_of(rank), bytes_}, &receives_[rank].completion);
  if (!taken.ok()) {
    request_.fail(taken.status());
  } else if (*taken == Progress::kPending) {
    ++pending_;
  } else if (--missing_ == 0) {
    finish();
  }
  return true;
}

void DirectExchange::on_completion(Completion* self, const Status& status) {
  DirectExchange& exchange = *reinterpret_cast<Operand*>(self)->exchange;  // its first member
  --exchange.pending_;
  if (!status.ok()) exchange.request_.fail(status);
  else if (exchange.missing_ > 0 && --exchange.missing_ == 0) exchange.finish();
}

void DirectExchange::finish() {
  const CollArgs& args = request_.args();
  if (gathers_) {
    copy_own();
    return request_.on_exchanged();
  }
  for (size_t r = 0; r < ranks_; ++r) sources_[r] = r == rank_ ? sent_to(r) : place_of(r);
  const Result<Progress> reduced = request_.reduce(args.dst, sources_, args.count, ranks_, nullptr);
  if (!reduced.ok()) return request_.fail(reduced.status());
  request_.on_exchanged();
}

void DirectExchange::waits_for(std::vector<bool>& ranks) const {
  for (size_t r = 0; missing_ > 0 && r < receives_.size(); ++r)
    if (!receives_[r].arrived) ranks[r] = true;
}

}  // namespace uzip
