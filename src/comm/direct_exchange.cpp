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
/// Between two ranks: as long as a message that is read in one piece (Selector), which a schedule would take at one go, too.
constexpr size_t kMostGatheredOfTwoBytes = 8 * 1024 * 1024;
/// A rank's own elements of this size are copied while the others' are on their way; fewer take no time.
constexpr size_t kCopiedMeanwhile = 4 * 1024;
/// Of an all-gather between two ranks what is longer is taken first if it comes within some turns. Both begin at about the same
/// time, and who reads the other's elements first ends with its own, which the next call on them finds in the caches.
constexpr size_t kMostCopiedFirst = 64 * 1024;
constexpr int kTurnsBeforeCopy = 40;
constexpr int kMostRanks = 16;

bool has_one_hop(const Plan& plan) {
  if (plan.shape.kind == CallKind::kBarrier) return plan.shape.size == 2;
  const bool alike = plan.shape.counts.empty() && !is_pairwise(plan.shape.kind) && !plan.with_neighbors();
  const bool scratch = plan.shape.kind == CallKind::kAlltoall && plan.shape.in_place;
  return plan.algorithm && plan.algorithm->one_hop && alike && !scratch && !plan.point_to_point();
}

size_t most_bytes(const CallShape& shape) {
  if (is_reduction(shape.kind)) return kMostReducedBytes;
  return shape.kind == CallKind::kAllgather && shape.size == 2 ? kMostGatheredOfTwoBytes : kMostGatheredBytes;
}

size_t message_bytes(const Plan& plan) { return plan.shape.count * datatype_size(plan.shape.type); }

}  // namespace

bool DirectExchange::suits(const Plan& plan) {
  return has_one_hop(plan) && plan.rounds == 1 && !plan.codec && plan.shape.size > 1 && plan.shape.size <= kMostRanks &&
         message_bytes(plan) <= most_bytes(plan.shape);
}

DirectExchange::Way DirectExchange::way_of(CallKind kind) {
  switch (kind) {
    case CallKind::kReduceScatter: return {.reduces = true, .scatters = true};
    case CallKind::kAllgather: return {.gathers = true};
    case CallKind::kAlltoall: return {.scatters = true, .gathers = true};
    case CallKind::kBcast: return {.from_root = true};
    case CallKind::kScatter: return {.scatters = true, .from_root = true};
    case CallKind::kGather: return {.gathers = true, .to_root = true};
    case CallKind::kBarrier: return {};
    default: return {.reduces = true};
  }
}

void DirectExchange::reserve(const Plan& plan) {
  make_room(static_cast<size_t>(plan.shape.size), way_of(plan.shape.kind).reduces ? message_bytes(plan) : 0);
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

bool DirectExchange::sends_to(size_t rank) const {
  return rank != rank_ && (!way_.from_root || rank_ == root_) && (!way_.to_root || rank == root_);
}

bool DirectExchange::receives_from(size_t rank) const {
  return rank != rank_ && (!way_.from_root || rank == root_) && (!way_.to_root || rank_ == root_);
}

void DirectExchange::start() {
  const CollArgs& args = request_.args();
  ranks_ = static_cast<size_t>(request_.size());
  rank_ = static_cast<size_t>(request_.rank());
  root_ = static_cast<size_t>(args.root);
  bytes_ = args.count * datatype_size(args.type);
  way_ = way_of(args.kind);
  copied_ = way_.reduces || args.in_place || ((way_.from_root || way_.to_root) && rank_ != root_);
  make_room(ranks_, way_.reduces ? bytes_ : 0);
  missing_ = 0;
  for (size_t r = 0; r < ranks_; ++r) {
    sends_[r].over = !sends_to(r);
    receives_[r].over = !receives_from(r);
    missing_ += static_cast<uint32_t>(!sends_[r].over) + static_cast<uint32_t>(!receives_[r].over);
  }
  head_ = request_.sealed_head({MessageKind::kCollective, 0, 0}, raw_frame_header(args.type, args.count));
  if (const Status sent = send_all(); !sent.ok()) return request_.fail(sent);
  if (missing_ == 0) return finish();
  idle_turns_ = 0;
  const bool takes_first = ranks_ == 2 && bytes_ > kMostCopiedFirst && args.kind == CallKind::kAllgather;
  if (bytes_ >= kCopiedMeanwhile && !takes_first) copy_own();
}

/// To the next rank first. Where all get the same the transport may make one copy for them.
Status DirectExchange::send_all() {
  const bool alike = !way_.scatters && !way_.to_root;
  for (size_t step = 1; step < ranks_; ++step) {
    const size_t peer = (rank_ + step) % ranks_;
    if (!sends_to(peer)) continue;
    const auto receivers = static_cast<uint32_t>(!alike ? 1 : step == 1 ? ranks_ - 1 : 0);
    UZIP_ASSIGN_OR_RETURN(const Progress sent, request_.send(static_cast<int>(peer), head_, request_.args().count,
                                                             {sent_to(peer), bytes_}, &sends_[peer].completion, receivers));
    if (sent == Progress::kPending) {
      ++pending_;
    } else {
      sends_[peer].over = true;
      --missing_;
    }
  }
  return Status();
}

bool DirectExchange::work_while_idle() {
  if (copied_ || missing_ == 0 || ++idle_turns_ < kTurnsBeforeCopy || bytes_ < kCopiedMeanwhile) return false;
  copy_own();
  return true;
}

/// This rank's elements to their place in the result, once.
void DirectExchange::copy_own() {
  if (std::exchange(copied_, true)) return;
  copy_bytes(place_of(rank_), sent_to(rank_), bytes_);
}

const std::byte* DirectExchange::sent_to(size_t rank) const {
  return request_.args().src + (way_.scatters ? rank * bytes_ : 0);
}

std::byte* DirectExchange::place_of(size_t rank) {
  if (way_.reduces) return memory_.data() + rank * bytes_;
  return request_.args().dst + (way_.gathers ? rank * bytes_ : 0);
}

bool DirectExchange::poll() {
  bool moved = false;
  for (size_t r = 0; missing_ > 0 && r < ranks_; ++r) {
    if (receives_[r].over || !request_.take_expected(static_cast<int>(r), head_, {place_of(r), bytes_})) continue;
    moved = receives_[r].over = true;
    if (--missing_ == 0) finish();
  }
  return moved;
}

bool DirectExchange::on_message(Incoming& incoming, const FrameHeader& frame, int source) {
  const auto rank = static_cast<size_t>(source);
  if (missing_ == 0 || receives_[rank].over) return false;
  if (frame.count != request_.args().count || frame.codec != kCodecRaw || incoming.body_bytes != bytes_) {
    request_.fail(error(UZIP_ERR_CORRUPT, "rank %d sent a frame of codec %u with %llu elements in %zu bytes, not %zu raw",
                        source, frame.codec, static_cast<unsigned long long>(frame.count), incoming.body_bytes,
                        request_.args().count));
    return false;
  }
  receives_[rank].over = true;
  const Result<Progress> taken =
      request_.engine().take(incoming, {place_of(rank), bytes_}, &receives_[rank].completion);
  if (!taken.ok()) {
    request_.fail(taken.status());
  } else if (*taken == Progress::kPending) {
    ++pending_;
  } else if (--missing_ == 0) {
    finish();
  } else {
    copy_own();  // while the other one reads
  }
  return true;
}

void DirectExchange::on_completion(Completion* self, const Status& status) {
  auto& operand = *reinterpret_cast<Operand*>(self);  // its first member
  DirectExchange& exchange = *operand.exchange;
  operand.over = true;
  --exchange.pending_;
  if (!status.ok()) exchange.request_.fail(status);
  else if (exchange.missing_ > 0 && --exchange.missing_ == 0) exchange.finish();
}

void DirectExchange::finish() {
  if (!way_.reduces) {
    copy_own();
    return request_.on_exchanged();
  }
  const CollArgs& args = request_.args();
  for (size_t r = 0; r < ranks_; ++r) sources_[r] = r == rank_ ? sent_to(r) : place_of(r);
  const Result<Progress> reduced = request_.reduce(args.dst, sources_, args.count, ranks_, nullptr);
  if (!reduced.ok()) return request_.fail(reduced.status());
  request_.on_exchanged();
}

void DirectExchange::waits_for(std::vector<bool>& ranks) const {
  for (size_t r = 0; missing_ > 0 && r < receives_.size(); ++r)
    if (!receives_[r].over || !sends_[r].over) ranks[r] = true;
}

}  // namespace uzip
