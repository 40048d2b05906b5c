#include "comm/direct_exchange.hpp"

#include "comm/engine.hpp"
#include "comm/request.hpp"

#include <cstring>

namespace uzip {
namespace {

/// Larger operands are worth a schedule, which takes them where they are.
constexpr size_t kMostBytes = 1024;
constexpr int kMostRanks = 16;

}  // namespace

bool DirectExchange::suits(const Plan& plan) {
  static const Algorithm* const one_shot = find_algorithm(Coll::kAllreduce, "one_shot");
  return plan.shape.kind == CallKind::kAllreduce && plan.algorithm == one_shot && plan.rounds == 1 && !plan.codec &&
         plan.shape.size > 1 && plan.shape.size <= kMostRanks &&
         plan.shape.count * datatype_size(plan.shape.type) <= kMostBytes;
}

void DirectExchange::reserve(size_t size) {
  if (sends_.size() == size) return;
  memory_.resize(kMostBytes * size);
  sends_.resize(size);
  receives_.resize(size);
  sources_.resize(size);
  for (size_t r = 0; r < size; ++r) {
    sends_[r].completion.done = receives_[r].completion.done = &DirectExchange::on_completion;
    sends_[r].exchange = receives_[r].exchange = this;
  }
}

void DirectExchange::start() {
  const auto size = static_cast<size_t>(request_.size()), rank = static_cast<size_t>(request_.rank());
  const size_t count = request_.args().count;
  bytes_ = count * datatype_size(request_.type());
  reserve(size);
  for (Operand& receive : receives_) receive.arrived = false;
  receives_[rank].arrived = true;
  missing_ = static_cast<uint32_t>(2 * (size - 1));
  std::memcpy(operand(rank), request_.args().src, bytes_);  // from here it is sent: in place, dst may change before
  const FrameHeader frame = raw_frame_header(request_.type(), count);
  for (size_t step = 1; step < size; ++step) {
    const size_t peer = (rank + step) % size;
    const Result<Progress> sent =
        request_.send(static_cast<int>(peer), {MessageKind::kCollective, 0, 0}, frame, count,
                      {operand(rank), bytes_}, &sends_[peer].completion);
    if (!sent.ok()) return request_.fail(sent.status());
    if (*sent == Progress::kPending) ++pending_;
    else if (--missing_ == 0) return finish();
  }
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
      request_.engine().take(incoming, {operand(rank), bytes_}, &receives_[rank].completion);
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
  for (size_t r = 0; r < sources_.size(); ++r) sources_[r] = operand(r);
  const CollArgs& args = request_.args();
  const Result<Progress> reduced = request_.reduce(args.dst, sources_, args.count, sources_.size(), nullptr);
  if (!reduced.ok()) return request_.fail(reduced.status());
  request_.on_exchanged();
}

void DirectExchange::waits_for(std::vector<bool>& ranks) const {
  for (size_t r = 0; missing_ > 0 && r < receives_.size(); ++r)
    if (!receives_[r].arrived) ranks[r] = true;
}

}  // namespace uzip
