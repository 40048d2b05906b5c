#include "comm/direct_message.hpp"

#include "comm/communicator.hpp"
#include "comm/engine.hpp"
#include "comm/request.hpp"

namespace uzip {
namespace {

/// Copying longer messages is a long step, which leaves time for others.
constexpr size_t kMostBytes = 256 * 1024;
constexpr MessageIndex kOnlyPiece{MessageKind::kPointToPoint, 0, 0};

size_t message_bytes(const CollArgs& args) { return args.count * datatype_size(args.type); }

}  // namespace

DirectMessage::DirectMessage(Request& request) : request_(request) {
  end_.done = &DirectMessage::on_completion;
  end_.message = this;
}

bool DirectMessage::suits(const Plan& plan) {
  return plan.point_to_point() && plan.rounds == 1 && !plan.codec &&
         plan.shape.count * datatype_size(plan.shape.type) <= kMostBytes;
}

void DirectMessage::start() {
  const CollArgs& args = request_.args();
  const FrameHeader frame = raw_frame_header(args.type, args.count);
  if (args.kind == CallKind::kRecv) {
    state_ = State::kReceives;
    polls_ = message_bytes(args) <= kMostPolledBytes;
    if (polls_) expected_ = request_.sealed_head(kOnlyPiece, frame);
    return;
  }
  state_ = State::kSends;
  settle(request_.send(kPeerInSchedule, kOnlyPiece, frame, args.count, {args.src, message_bytes(args)}, &end_, 1, nullptr));
}

bool DirectMessage::poll() {
  const CollArgs& args = request_.args();
  if (!request_.comm()->take_next(request_, expected_, {args.dst, message_bytes(args)})) return false;
  finish();
  return true;
}

bool DirectMessage::on_message(Incoming& incoming, const FrameHeader& frame) {
  if (state_ != State::kReceives) return false;
  const CollArgs& args = request_.args();
  const size_t bytes = message_bytes(args);
  if (frame.count != args.count || frame.codec != kCodecRaw || incoming.body_bytes != bytes) {
    request_.fail(error(UZIP_ERR_CORRUPT, "rank %d sent a frame of codec %u with %llu elements in %zu bytes, not %zu raw",
                        args.peer, frame.codec, static_cast<unsigned long long>(frame.count), incoming.body_bytes,
                        args.count));
    return false;
  }
  state_ = State::kTakes;
  settle(request_.engine().take(incoming, {args.dst, bytes}, &end_));
  return true;
}

void DirectMessage::settle(const Result<Progress>& result) {
  if (!result.ok()) return request_.fail(result.status());
  *result == Progress::kPending ? static_cast<void>(++pending_) : finish();
}

void DirectMessage::on_completion(Completion* self, const Status& status) {
  DirectMessage& message = *static_cast<End*>(self)->message;
  --message.pending_;
  if (!status.ok()) message.request_.fail(status);
  else if (message.state_ != State::kIdle) message.finish();
}

void DirectMessage::finish() {
  state_ = State::kIdle;
  request_.on_exchanged();
}

}  // namespace uzip
