// How the two ranks of a message agree whether their GPUs carry it (GpuPeers), instead of in rounds. The sender offers it, in
// place of its first piece; the receiver answers when a receive has been matched with it. docs/MESSAGES.md. Used by Request
// and Communicator.
#pragma once

#include "base/transport.hpp"
#include "comm/gpu_peers.hpp"
#include "comm/message_head.hpp"
#include "gpu/peer_plugin.hpp"

#include <cstdint>
#include <span>

namespace uzip {

class Request;

/// What is said of a message.
enum class OfferWord : uint8_t {
  kNone = 0,
  kOffer = 1,         ///< by the sender: may go between the GPUs, which have opened memory to one another
  kOfferHandle = 2,   ///< or have not, as far as is known there; the body is the handle of the sender's own
  kNo = 3,            ///< by the receiver: goes in rounds
  kAccept = 4,        ///< goes between the GPUs
  kAcceptHandle = 5,  ///< the same if the sender can open the receiver's memory; the body is its handle
  kOpened = 6,        ///< by the sender, then: it can
  kFailed = 7,        ///< it can't, and the message goes in rounds
};

/// The number of what says it, 12 bits. Offers say how the sender codes: 0 levels is not at all.
struct OfferNumber {
  OfferWord word = OfferWord::kNone;
  uint8_t levels = 0;
  uint8_t type = 0;

  uint32_t pack() const { return static_cast<uint32_t>(word) | uint32_t{levels} << 4 | uint32_t{type} << 8; }
  static OfferNumber unpack(uint32_t number) {
    const uint32_t word = number & 15;
    return {word <= static_cast<uint32_t>(OfferWord::kFailed) ? static_cast<OfferWord>(word) : OfferWord::kNone,
            static_cast<uint8_t>(number >> 4 & 15), static_cast<uint8_t>(number >> 8 & 15)};
  }
  /// Of the sender, in place of the first piece.
  bool offers() const { return word == OfferWord::kOffer || word == OfferWord::kOfferHandle; }
  /// Of the receiver.
  bool answers() const { return word >= OfferWord::kNo && word <= OfferWord::kAcceptHandle; }
};

/// What a message says of another one; kNone if it is no such.
inline OfferNumber offer_in(const MessageHead& head) {
  const MessageIndex index = MessageIndex::unpack(head.envelope.index);
  const bool says = index.kind == MessageKind::kPointToPoint && index.round == MessageIndex::kInquiryRound;
  return says ? OfferNumber::unpack(index.message) : OfferNumber();
}

class GpuOffer {
 public:
  explicit GpuOffer(Request& request);
  GpuOffer(const GpuOffer&) = delete;
  GpuOffer& operator=(const GpuOffer&) = delete;

  /// Begins anew, with whether this rank offers the next message.
  void prepare(bool offers);
  bool offers() const { return offers_; }
  /// Of the sender: tells the receiver. Request::on_answered() is called when it has answered.
  void start();
  /// A receive has been matched with an offer, which comes next.
  void expect();
  /// What the other rank says, which has been compared with the call already. True if its body was taken.
  bool on_message(Incoming& incoming, uint32_t number);
  void abandon();
  /// The message is nobody's yet: neither the GPUs' nor the rounds'.
  bool active() const { return state_ != State::kIdle; }
  uint32_t pending() const { return pending_; }
  /// How the sender codes.
  GpuPeers::Way way() const;

  // For GpuPeers, which has been asked by wait_to_receive().
  int source() const;
  void accept();
  void start_to_receive() { decide(true); }
  void decline();

 private:
  enum class State : uint8_t {
    kIdle,
    kOffered,   ///< of the sender
    kExpected,  ///< of the receiver: the offer, or its handle, is on its way
    kWaiting,   ///< for GpuPeers
    kOpening,   ///< for the sender
    kAccepted,  ///< starts soon
  };
  struct Handle : Completion {
    GpuOffer* offer = nullptr;
    gpu::PeerHandle value{};
  };
  static void on_handle(Completion* self, const Status& status);
  bool take_handle(Incoming& incoming);
  void say(OfferWord word);
  void consider();
  void wait_to_start();
  void open_receiver();
  void decide(bool at_peers);

  Request& request_;
  State state_ = State::kIdle;
  bool offers_ = false;
  bool counted_ = false;  ///< by GpuPeers, as an offer of this rank's
  bool has_handle_ = false;
  uint8_t levels_ = 0;
  uint32_t pending_ = 0;
  Handle handle_;
};

}  // namespace uzip
