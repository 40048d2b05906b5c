// UcxTransport's way for short messages within one host: queues in shared memory.
#include "ucx/ucx_transport.hpp"

#include "base/log.hpp"

#include <algorithm>
#include <cstring>

namespace uzip {
namespace {

// Messages that are taken from one queue before the next one is looked at.
constexpr int kMostInARow = 4;

}  // namespace

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
  for (Peer* peer : here) {
    if (peer->index != rank_) peer->queue.open(peer->record.memory, peer->record.inbox, mine);
  }
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

bool UcxTransport::take_from_queues() {
  bool moved = false;
  for (uint32_t index = 0; index < queued_peers_.size(); ++index) {
    QueuedMessage message;
    for (int i = 0; i < kMostInARow; ++i) {
      const LocalInbox::Taken taken = inbox_.take(index, &message);
      if (taken == LocalInbox::Taken::kNothing) break;
      moved = true;
      take_queued(*queued_peers_[index], taken, message);
    }
  }
  return moved;
}

void UcxTransport::take_queued(Peer& peer, LocalInbox::Taken taken, QueuedMessage& message) {
  if (peer.failed || closing_) return;
  uint32_t source = UINT32_MAX;  // each header begins with it
  if (message.header_bytes >= sizeof source) std::memcpy(&source, message.bytes, sizeof source);
  if (taken == LocalInbox::Taken::kDamaged || source != static_cast<uint32_t>(peer.index)) {
    mark_failed(peer, error(UZIP_ERR_CORRUPT, "process %d wrote nonsense into its queue in shared memory", peer.index));
    return;
  }
  (void)dispatch(message.kind, message.header(), message.body(), message.body_bytes, 0);
}

}  // namespace uzip
