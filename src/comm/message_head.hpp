// The head of every message between ranks: an envelope that says whom it is for, and the header of the frame
// that is its body. docs/MESSAGES.md.
#pragma once

#include "base/transport.hpp"
#include "codec/frame.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <type_traits>

namespace uzip {

enum class MessageKind : uint32_t { kCollective = 0, kPointToPoint = 1, kControl = 2 };

/// Little-endian, no padding. `index` packs kind, round and message number (see MessageIndex).
struct Envelope {
  uint32_t comm = 0;    ///< the receiver's own number of the communicator
  uint32_t source = 0;  ///< rank of the sender in it
  uint32_t index = 0;
  uint32_t tag = 0;     ///< point to point: the user's tag; control: a ControlKind
  uint64_t check = 0;   ///< over the rest of the head, see check_of()
};

struct MessageHead {
  Envelope envelope;
  FrameHeader frame;
};
static_assert(sizeof(MessageHead) == 88 && sizeof(MessageHead) <= kMaxHeadBytes);
static_assert(std::is_trivially_copyable_v<MessageHead>);

/// What check_of() counts a word of the head, or a change of it, with.
constexpr uint64_t weight_in_check(uint64_t word) { return (word + 1) * 0x9e3779b97f4a7c15ull | 1; }

/// The sum of the head's words, without the check's own, each times an odd number of its own: no change within one
/// word goes unnoticed, others with a chance of 2^-64. A damaged head could otherwise bring right data to a wrong
/// place, where nothing else would show it.
inline uint64_t check_of(const MessageHead& head) {
  uint64_t words[sizeof head / sizeof(uint64_t)];
  std::memcpy(words, &head, sizeof head);
  words[offsetof(MessageHead, envelope.check) / sizeof(uint64_t)] = 0;
  uint64_t sum = 0;
  for (uint64_t i = 0; i < std::size(words); ++i) sum += words[i] * weight_in_check(i);
  return sum;
}
inline void seal(MessageHead& head) { head.envelope.check = check_of(head); }
/// Makes a sealed head one from and to other ranks of the same communicator: its first word, and the check by that.
inline void readdress(MessageHead& head, uint32_t comm, uint32_t source) {
  uint64_t before, after;
  std::memcpy(&before, &head, sizeof before);
  head.envelope.comm = comm;
  head.envelope.source = source;
  std::memcpy(&after, &head, sizeof after);
  head.envelope.check += (after - before) * weight_in_check(0);
}
inline bool is_intact(const MessageHead& head) { return head.envelope.check == check_of(head); }

/// Which of the messages of one call: 2 bits kind, 18 bits round, 12 bits number within the round.
struct MessageIndex {
  static constexpr uint32_t kMaxRounds = 1u << 18;
  static constexpr uint32_t kMaxMessages = 1u << 12;
  /// Not a round: a message that shows what its sender called, and may be a Ballot. Plans have fewer rounds.
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

/// Sequence numbers wrap: `a` comes before `b` if it is less than half the range behind.
inline bool before(uint32_t a, uint32_t b) { return static_cast<int32_t>(a - b) < 0; }

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
