// Communicator's point to point messages: which receive a message belongs to. Called by communicator.cpp.
//
// Each message between two ranks has a number, given by the sender. Its first piece (round 0, number 0) is
// matched by tag, in the order of the numbers whatever the order of arrival; from then on the receive is bound
// to the number, and the other pieces are found by it.
#include "comm/communicator.hpp"
#include "comm/engine.hpp"

#include <algorithm>

namespace uzip {
namespace {

/// The piece of a point to point message that is matched by its tag; or what offers the message.
bool is_first_piece(const MessageHead& head) {
  const MessageIndex index = MessageIndex::unpack(head.envelope.index);
  return (index.kind == MessageKind::kPointToPoint && index.round == 0 && index.message == 0) || offer_in(head).offers();
}

}  // namespace

Request* Communicator::find_receive(uint32_t source, uint32_t sequence) {
  for (Request* receive : receives_)
    if (receive->bound() && receive->args().peer == static_cast<int>(source) &&
        receive->stamp().sequence == sequence)
      return receive;
  return nullptr;
}

/// Its turn has come, but no receive with its tag: its first piece is held.
bool Communicator::waits_for_receive(uint32_t source, uint32_t sequence) const {
  return std::any_of(held_.begin(), held_.end(), [&](const HeldMessage& message) {
    return is_first_piece(message.head) && message.head.envelope.source == source &&
           message.head.frame.call.sequence == sequence;
  });
}

bool Communicator::on_point_to_point(Incoming& incoming, const MessageHead& head) {
  const uint32_t source = head.envelope.source, sequence = head.frame.call.sequence;
  if (MessageIndex::unpack(head.envelope.index).round == MessageIndex::kInquiryRound) {
    if (!peers_) return false;  // nobody offers anything
    if (offer_in(head).answers()) return on_answer(incoming, head);
    if (!offer_in(head).offers() && !find_receive(source, sequence)) return false;
  }
  if (Request* receive = find_receive(source, sequence)) return deliver(*receive, incoming, head);
  if (is_lost(source, sequence)) return false;
  const bool first = is_first_piece(head);
  uint32_t& next = next_arrival_[source];
  if (first && sequence == next) {
    ++next;
    const bool taken = match_first(incoming, head);
    release_early(source);
    return taken;
  }
  // A piece of a message whose turn has been belongs to a receive that failed, unless none has come for it yet.
  if (before(sequence, next) && (first || !waits_for_receive(source, sequence))) return false;
  hold(incoming, head);
  return true;
}

/// The oldest receive that waits for a message with this tag.
Request* Communicator::find_unbound(uint32_t source, uint32_t tag) {
  for (Request* receive : receives_)
    if (!receive->bound() && receive->args().peer == static_cast<int>(source) && receive->args().tag == tag)
      return receive;
  return nullptr;
}

/// The first piece of the next message from its source.
bool Communicator::match_first(Incoming& incoming, const MessageHead& head) {
  if (Request* receive = find_unbound(head.envelope.source, head.envelope.tag)) {
    receive->bind_sender(head.frame.call.sequence, offer_in(head).offers());
    return deliver(*receive, incoming, head);
  }
  hold(incoming, head);
  return true;
}

bool Communicator::take_next(Request& receive, MessageHead& head, std::span<std::byte> body) {
  const auto source = static_cast<uint32_t>(receive.args().peer);
  if (find_unbound(source, receive.args().tag) != &receive) return false;
  const uint32_t next = next_arrival_[source];
  if (head.frame.call.sequence != next) {
    head.frame.call.sequence = next;
    seal(head);
  }
  if (!take_expected(receive.args().peer, head, body)) return false;
  ++next_arrival_[source];
  receive.set_sender(next);
  release_early(source);
  return true;
}

/// Messages that came too early may be in order now.
void Communicator::release_early(uint32_t source) {
  while (release_lost(source) || release_held(source)) {
  }
}

bool Communicator::release_held(uint32_t source) {
  const auto next = std::find_if(held_.begin(), held_.end(), [&](const HeldMessage& message) {
    return is_first_piece(message.head) && message.head.envelope.source == source &&
           message.head.frame.call.sequence == next_arrival_[source];
  });
  if (next == held_.end()) return false;
  ++next_arrival_[source];
  HeldMessage message = *next;
  held_.erase(next);
  if (!match_first(message.incoming, message.head)) engine_.discard(message.incoming);
  return true;
}

/// A new receive: the oldest message with its tag whose turn has been, if there is one.
void Communicator::bind_held(Request& receive) {
  const auto source = static_cast<uint32_t>(receive.args().peer);
  const auto fits = [&](uint32_t from, uint32_t tag, uint32_t sequence) {
    return from == source && tag == receive.args().tag && before(sequence, next_arrival_[source]);
  };
  const MessageHead* held = nullptr;
  for (const auto& [incoming, head] : held_)
    if (is_first_piece(head) && fits(head.envelope.source, head.envelope.tag, head.frame.call.sequence) &&
        !find_receive(head.envelope.source, head.frame.call.sequence) &&  // which has it, but waits for its stream
        (!held || before(head.frame.call.sequence, held->frame.call.sequence)))
      held = &head;
  auto lost = lost_.end();
  for (auto other = lost_.begin(); other != lost_.end(); ++other)
    if (fits(other->source, other->tag, other->sequence) &&
        (lost == lost_.end() || before(other->sequence, lost->sequence)))
      lost = other;
  if (lost != lost_.end() && (!held || before(lost->sequence, held->frame.call.sequence))) {
    const Status why = lost->why;
    lost_.erase(lost);
    receive.fail(why, false);
  } else if (held) {
    const bool offered = offer_in(*held).offers();
    receive.bind_sender(held->frame.call.sequence, offered);
    if (offered) offer_held(receive, MessageIndex::kInquiryRound);
  }
}

// A message that its sender gave up keeps its turn: the receive that it would have gone to fails, and those behind
// it are not held up.

bool Communicator::is_lost(uint32_t source, uint32_t sequence) const {
  return std::any_of(lost_.begin(), lost_.end(), [&](const LostMessage& lost) {
    return lost.source == source && lost.sequence == sequence;
  });
}

void Communicator::on_message_lost(uint32_t source, uint32_t sequence, uint32_t tag, const Status& why) {
  if (Request* receive = find_receive(source, sequence)) return receive->fail(why, false);
  if (before(sequence, next_arrival_[source]) && !waits_for_receive(source, sequence)) return;  // its receive failed
  std::erase_if(held_, [&](HeldMessage& message) {
    const MessageHead& head = message.head;
    const bool part = MessageIndex::unpack(head.envelope.index).kind == MessageKind::kPointToPoint &&
                      head.envelope.source == source && head.frame.call.sequence == sequence;
    if (part) engine_.discard(message.incoming);
    return part;
  });
  lost_.push_back({source, sequence, tag, why});
  release_early(source);
}

/// The next message of `source` was given up: its turn passes.
bool Communicator::release_lost(uint32_t source) {
  const auto next = std::find_if(lost_.begin(), lost_.end(), [&](const LostMessage& lost) {
    return lost.source == source && lost.sequence == next_arrival_[source];
  });
  if (next == lost_.end()) return false;
  ++next_arrival_[source];
  if (Request* receive = find_unbound(source, next->tag)) {
    const Status why = next->why;
    lost_.erase(next);
    receive->fail(why, false);
  }
  return true;
}

}  // namespace uzip
