// UcxTransport's way for large bodies within one host that the stage has no place for: the sender offers an address, the
// receiver reads from it and answers. If it can't read it asks for the bytes, and they come through UCX.
#include "ucx/ucx_transport.hpp"

#include "base/copy.hpp"
#include "base/log.hpp"

#include <cstring>

namespace uzip {

Result<Progress> UcxTransport::send_offer(Peer& peer, std::span<const std::byte> head,
                                          std::span<const std::byte> body, Completion* completion) {
  Operation* offer = operations_.take(Operation::Kind::kOffer, peer.index, completion);
  offer->source = body.data();
  offer->bytes = body.size();
  const OfferPrefix prefix = {{static_cast<uint32_t>(rank_), peer.next_send},
                              reinterpret_cast<uint64_t>(body.data()),
                              body.size(),
                              offer->id};
  if (const auto result = send_message(peer, WireKind::kOffer, bytes_of(prefix), head, {}, nullptr);
      !result.ok()) {
    operations_.give(offer);
    return result;
  }
  ++peer.next_send;
  offer->awaited = true;
  ++pending_sends_;
  return Progress::kPending;
}

Result<Progress> UcxTransport::take_offer(Arrival* arrival, std::span<std::byte> dst,
                                          Completion* completion) {
  Peer& peer = peers_[static_cast<size_t>(arrival->peer)];
  if (peer.failed) return peer.failure;
  const ReadOutcome outcome = peer.readable
                                  ? peer.reader.read(peer.record.memory, arrival->address, dst)
                                  : ReadOutcome::kForbidden;
  switch (outcome) {
    case ReadOutcome::kDone:
      peer.verified = true;
      answer_taken(*arrival);
      return Progress::kDone;
    case ReadOutcome::kUnreadable:  // memory of a device, for example
      return ask_for_reply(arrival, dst, completion, Verdict::kSendThis);
    case ReadOutcome::kGone:
      if (peer.verified) {
        mark_failed(peer, error(UZIP_ERR_PEER, "process %d has ended", peer.index));
        return peer.failure;
      }
      break;  // its process id means somebody else here
    case ReadOutcome::kForbidden:
      break;
  }
  peer.readable = false;
  return ask_for_reply(arrival, dst, completion, Verdict::kSendAlways);
}

Result<Progress> UcxTransport::ask_for_reply(Arrival* arrival, std::span<std::byte> dst,
                                             Completion* completion, Verdict verdict) {
  Operation* receive = operations_.take(Operation::Kind::kAwaitReply, arrival->peer, completion);
  receive->destination = dst.data();
  receive->bytes = dst.size();
  send_answer(arrival->peer, {static_cast<uint32_t>(rank_), verdict, arrival->offer, receive->id});
  return Progress::kPending;
}

// The sender may use the body's memory again.
void UcxTransport::answer_taken(const Arrival& arrival) {
  send_answer(arrival.peer, {static_cast<uint32_t>(rank_), Verdict::kTaken, arrival.offer, {}});
}

void UcxTransport::send_answer(int peer, const Answer& answer) {
  if (peers_[static_cast<size_t>(peer)].failed) return;
  const auto result = send_message(peers_[static_cast<size_t>(peer)], WireKind::kAnswer, bytes_of(answer), {}, {}, nullptr);
  if (!result.ok()) mark_failed(peers_[static_cast<size_t>(peer)], result.status());
}

void UcxTransport::on_answer(std::span<const std::byte> header) {
  Answer answer;
  if (header.size() != sizeof answer) {
    log(LogLevel::kError, "an answer of %zu bytes was dropped", header.size());
    return;
  }
  std::memcpy(&answer, header.data(), sizeof answer);
  if (answer.source < peers_.size() && peers_[answer.source].failed) return;
  Operation* offer = operations_.find(answer.offer);
  const bool was_staged = offer != nullptr && offer->kind == Operation::Kind::kStaged;
  if (offer == nullptr || (!was_staged && offer->kind != Operation::Kind::kOffer) ||
      (was_staged && answer.verdict != Verdict::kTaken) || static_cast<uint32_t>(offer->peer) != answer.source) {
    log(LogLevel::kError, "an answer from process %u to nothing that was offered was dropped",
        answer.source);
    return;
  }
  if (answer.verdict == Verdict::kTaken) {
    if (was_staged) {
      stage_.give(offer->staged_at, offer->bytes);
      --peers_[answer.source].staged;
    }
    finish(offer, Status());
    return;
  }

  if (answer.verdict == Verdict::kSendAlways) peers_[answer.source].offers = false;
  const ReplyPrefix prefix = {static_cast<uint32_t>(rank_), 0, answer.receive};
  const auto result =
      send_message(peers_[answer.source], WireKind::kReply, bytes_of(prefix), {},
                   {offer->source, offer->bytes}, offer->completion);
  if (result.ok() && *result == Progress::kPending) offer->completion = nullptr;
  finish(offer, result.status());
}

ucs_status_t UcxTransport::on_reply(std::span<const std::byte> header, void* data, size_t bytes,
                                    uint64_t attributes) {
  ReplyPrefix prefix;
  if (header.size() == sizeof prefix) std::memcpy(&prefix, header.data(), sizeof prefix);
  Operation* receive = header.size() == sizeof prefix ? operations_.find(prefix.receive) : nullptr;
  if (receive == nullptr || receive->kind != Operation::Kind::kAwaitReply ||
      static_cast<uint32_t>(receive->peer) != prefix.source) {
    log(LogLevel::kError, "a reply to nothing that was asked for was dropped");
    return UCS_OK;
  }
  if (receive->bytes != bytes) {
    finish(receive, error(UZIP_ERR_CORRUPT, "process %u sent %zu bytes where %zu were announced",
                          prefix.source, bytes, receive->bytes));
    return UCS_OK;
  }
  if (!(attributes & UCP_AM_RECV_ATTR_FLAG_RNDV)) {
    copy_bytes(receive->destination, data, bytes);
    finish(receive, Status());
    return UCS_OK;
  }

  // The operation goes on under another name: the old one is used up.
  Completion* completion = receive->completion;
  const std::span<std::byte> dst(receive->destination, bytes);
  operations_.give(receive);
  receive =
      operations_.take(Operation::Kind::kReceive, static_cast<int>(prefix.source), completion);
  (void)endpoint_of(peers_[prefix.source]);  // see fetch()
  const Result<Progress> result = start_fetch(receive, data, dst);
  if ((!result.ok() || *result == Progress::kDone) && completion != nullptr) {
    completion->done(completion, result.status());
  }
  return UCS_INPROGRESS;
}

void UcxTransport::take_from_self(Arrival* arrival, std::span<std::byte> dst) {
  Operation* send = operations_.find(arrival->offer);
  copy_bytes(dst.data(), send->source, dst.size());
  finish(send, Status());
}

}  // namespace uzip
