// The head of every message between ranks: an envelope that says whom it is for, and the header of the frame
// that is its body. docs/MESSAGES.md.
#pragma once

#include "base/transport.hpp"
#include "codec/frame.hpp"

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace uzip {

enum class MessageKind : uint32_t { kCollective = 0, kPointToPoint = 1, kControl = 2 };

/// Little-endian, no padding. `index` packs kind, round and message number (see MessageIndex).
struct Envelope {
  uint32_t comm = 0;    ///< the receiver's own number of the communicator
  uint32_t source = 0;  ///< rank of the sender in it
  uint32_t index = 0;
  uint32_t tag = 0;     ///< point to point: the user's tag; control: a ControlKind
};

struct MessageHead {
  Envelope envelope;
  FrameHeader frame;
};
static_assert(sizeof(MessageHead) == 80 && sizeof(MessageHead) <= kMaxHeadBytes);
static_assert(std::is_trivially_copyable_v<MessageHead>);

/// Which of the messages of one call: 2 bits kind, 18 bits round, 12 bits number within the round.
struct MessageIndex {
  static constexpr uint32_t kMaxRounds = 1u << 18;
  static constexpr uint32_t kMaxMessages = 1u << 12;
  /// Not a round: an empty message that only shows what its sender called. Plans have fewer rounds.
  static constexpr uint32_t kInquiryRound = kMaxRounds - 1;

  MessageKind kind;
  uint32_t round;
  uint32_t message;

  uint32_t pack() const { return static_cast<uint32_t>(kind) << 30 | round << 12 | message; }
  static MessageIndex unpack(uint32_t index) {
    return {static_cast<MessageKind>(index >> 30), index >> 12 & (kMaxRounds - 1),
            index & (kMaxMessages - 1)};
  }

  /// Of a control message: has neither round nor number, so kMessageLost has its tag there.
  static MessageIndex control(uint32_t lost_tag) {
    return {MessageKind::kControl, lost_tag >> 12, lost_tag & (kMaxMessages - 1)};
  }
  uint32_t tag_of_lost() const { return round << 12 | message; }
};

/// Messages of the library to itself, about calls. The frame's call.sequence says which call, its count carries
/// the status code, its body is a sentence.
enum class ControlKind : uint32_t {
  kCallFailed = 1,  ///< the sender gave up the call, so the receiver must as well
  kPeerFailed = 2,  ///< a process died: no call on this communicator can finish
  kMessageLost = 3, ///< the sender gave up a point to point message; its tag stands in the index
};

/// A message that came before the communicator, the call or the round that it belongs to.
struct HeldMessage {
  Incoming incoming;
  MessageHead head;
};

inline std::span<const std::byte> bytes_of(const MessageHead& head) {
  return std::as_bytes(std::span(&head, 1));
}

}  // namespace uzip
