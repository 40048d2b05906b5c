// What a communicator's ranks say about calls and messages, besides what belongs to them: inquiries, ballots (GpuVote), offers
// and their answers (GpuOffer). docs/MESSAGES.md. Called by communicator.cpp, and by those two.
#include "comm/communicator.hpp"
#include "comm/engine.hpp"

#include <algorithm>

namespace uzip {

void Communicator::send_ballot(int peer, const CallStamp& stamp, Ballot ballot) {
  std::string body;
  if (ballot == Ballot::kOffer) {
    const gpu::PeerHandle& handle = peers_->handle();
    body.assign(reinterpret_cast<const char*>(handle.bytes), sizeof handle.bytes);
  }
  send_aside(peer, stamp, static_cast<uint32_t>(ballot), body);
}

void Communicator::send_aside(int peer, const CallStamp& stamp, uint32_t number, const std::string& body) {
  MessageHead head;
  head.envelope.index = MessageIndex{MessageKind::kCollective, MessageIndex::kInquiryRound, number}.pack();
  head.frame.call = stamp;
  send_aside(peer, head, body);
}

void Communicator::say_of_message(int peer, const CallStamp& stamp, uint32_t tag, OfferNumber number,
                                  const std::string& body) {
  MessageHead head;
  head.envelope.index = MessageIndex{MessageKind::kPointToPoint, MessageIndex::kInquiryRound, number.pack()}.pack();
  head.envelope.tag = tag;
  head.frame.call = stamp;
  send_aside(peer, head, body);
}

void Communicator::send_aside(int peer, MessageHead& head, const std::string& body) {
  seal(head);
  readdress(head, numbers_[static_cast<size_t>(peer)], static_cast<uint32_t>(rank_));
  engine_.send_control(process(peer), head, body);
}

/// An answer to an offer of this rank's.
bool Communicator::on_answer(Incoming& incoming, const MessageHead& head) {
  const auto sent = std::ranges::find_if(sends_, [&](const Request* send) {
    return send->args().peer == static_cast<int>(head.envelope.source) &&
           send->stamp().sequence == head.frame.call.sequence;
  });
  return sent != sends_.end() && deliver(**sent, incoming, head);
}

/// The sender of an offer that nobody takes waits for an answer; of other messages nothing.
void Communicator::decline_offer(const MessageHead& head) {
  if (const OfferNumber number = offer_in(head); number.offers())
    say_of_message(static_cast<int>(head.envelope.source), head.frame.call, head.envelope.tag, {OfferWord::kNo, 0, number.type});
}

/// A ballot of a call that has ended here, in rounds, before its sender came to it.
void Communicator::decline_vote(const MessageHead& head) {
  const MessageIndex index = MessageIndex::unpack(head.envelope.index);
  const auto ballot = static_cast<Ballot>(index.message);
  if (index.round == MessageIndex::kInquiryRound && (ballot == Ballot::kReady || ballot == Ballot::kOffer))
    send_ballot(static_cast<int>(head.envelope.source), head.frame.call, Ballot::kNo);
}

void Communicator::discard(HeldMessage& message) {
  decline_offer(message.head);
  engine_.discard(message.incoming);
}

}  // namespace uzip
