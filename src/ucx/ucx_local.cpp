// UcxTransport's ways through memory that the processes of one host share: queues for short messages, and a stage for long
// bodies.
#include "ucx/ucx_transport.hpp"

#include "base/log.hpp"

#include <algorithm>
#include <cstring>

namespace uzip {

void UcxTransport::make_inbox() {
  if (size() > 1) inbox_.create(static_cast<uint32_t>(std::min(size(), kMostQueues)), token_);
}

// Each process of this host has the same number in the inboxes of all others. Those that have no inbox, since they are
// not to use queues, are sent to by UCX, and send by UCX.
void UcxTransport::open_queues() {
  std::vector<Peer*> here;
  for (Peer& peer : peers_) {
    if (peer.same_host) here.push_back(&peer);
  }
  if (here.size() < 2 || here.size() > static_cast<size_t>(kMostQueues)) return;
  const auto mine = static_cast<uint32_t>(
      std::find_if(here.begin(), here.end(), [&](Peer* peer) { return peer->index == rank_; }) -
      here.begin());
  if (peers_[static_cast<size_t>(rank_)].record.inbox.descriptor >= 0) queued_peers_ = here;
  for (size_t i = 0; i < queued_peers_.size(); ++i) queued_peers_[i]->inbox_queue = static_cast<int>(i);
  for (Peer* peer : here) {
    if (peer->index != rank_) peer->queue.open(peer->record.memory, peer->record.inbox, mine);
  }
}

void UcxTransport::learn_who_sees_stage() {
  stage_.use(inbox_.stage());
  for (size_t i = 0; i < queued_peers_.size(); ++i)
    queued_peers_[i]->sees_stage = inbox_.opened_by(static_cast<uint32_t>(i)) && queued_peers_[i]->queue.is_open();
}

// Nothing if the stage has no place for the body. A body that was sent before shares its place with what is still there of it.
std::optional<Result<Progress>> UcxTransport::send_staged(Peer& peer, std::span<const std::byte> head,
                                                          std::span<const std::byte> body, const SendHints& hints) {
  std::optional<size_t> begin = hints.receivers == 0 ? stage_.share(body) : std::nullopt;
  if (!begin) begin = stage_.put(body, hints.second);
  if (!begin) return std::nullopt;
  Operation* staged = operations_.take(Operation::Kind::kStaged, peer.index, nullptr);
  staged->staged_at = *begin;
  staged->bytes = body.size();
  const OfferPrefix prefix = {{static_cast<uint32_t>(rank_), peer.next_send}, *begin, body.size(), staged->id};
  const Result<Progress> sent = send_message(peer, WireKind::kStaged, bytes_of(prefix), head, {}, nullptr);
  if (!sent.ok()) {
    stage_.give(staged->staged_at, staged->bytes);
    operations_.give(staged);
    return sent;
  }
  ++peer.next_send;
  staged->awaited = true;
  ++peer.staged;
  ++pending_sends_;
  return Progress::kDone;
}

// True if the message went into the peer's queue.
bool UcxTransport::push(Peer& peer, WireKind kind, std::span<const std::byte> prefix,
                        std::span<const std::byte> head, std::span<const std::byte> body) {
  if (!peer.queue.is_open() || !peer.queue.push(kind, prefix, head, body)) return false;
  sent_since_flush_ = true;
  if (peer.queue.receiver_sleeps()) {
    Operation* nudge = operations_.take(Operation::Kind::kControl, peer.index, nullptr);
    nudge->header_bytes = 0;
    (void)post(nudge, WireKind::kNudge, {});  // a failure is the peer's end, which its endpoint reports as well
  }
  return true;
}

// Not the first from a peer, after which more is to be done, and not past those that wait for their turn.
bool UcxTransport::take_expected(int index, std::span<const std::byte> head, std::span<std::byte> body) {
  Peer& peer = peers_[static_cast<size_t>(index)];
  if (peer.inbox_queue < 0 || peer.failed || peer.order.at_start() || peer.order.anything_early()) return false;
  const MessagePrefix prefix = {static_cast<uint32_t>(index), peer.order.next()};
  if (!inbox_.take_expected(static_cast<uint32_t>(peer.inbox_queue), bytes_of(prefix), head, body)) return false;
  (void)peer.order.place_of(prefix.sequence);  // the next one is expected from now on
  return true;
}

// One message of each queue: what comes behind it may be for a call that is not made yet, and is better left where it is
// than kept.
bool UcxTransport::take_from_queues() {
  bool moved = false;
  QueuedMessage message;
  for (uint32_t index = 0; index < queued_peers_.size(); ++index) {
    const LocalInbox::Taken taken = inbox_.take(index, &message);
    if (taken == LocalInbox::Taken::kNothing) continue;
    moved = true;
    take_queued(*queued_peers_[index], taken, message);
    if (taken == LocalInbox::Taken::kMessage) inbox_.release(index);
  }
  return moved;
}

void UcxTransport::take_queued(Peer& peer, LocalInbox::Taken taken, QueuedMessage& message) {
  if (peer.failed || closing_) return;
  uint32_t source = UINT32_MAX;  // each header begins with it
  if (message.header_bytes >= sizeof source) std::memcpy(&source, message.header_memory, sizeof source);
  if (taken == LocalInbox::Taken::kDamaged || source != static_cast<uint32_t>(peer.index)) {
    mark_failed(peer, error(UZIP_ERR_CORRUPT, "process %d wrote nonsense into its queue in shared memory", peer.index));
    return;
  }
  (void)dispatch(message.kind, message.header(), message.body, message.body_bytes, 0);
}

}  // namespace uzip
