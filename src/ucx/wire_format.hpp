// What the transport puts in front of each message, and its own small messages. Used by
// UcxTransport only. Little-endian, no padding; the active message's id says which of them it is.
#pragma once

#include "base/transport.hpp"

#include <cstdint>
#include <span>
#include <type_traits>

namespace uzip {

/// Names an operation in the process that made it. Comes back from other processes, so it is a
/// number that is looked up and compared, never a pointer.
struct OperationId {
  uint32_t slot = 0;
  uint32_t generation = 0;

  bool operator==(const OperationId&) const = default;
};

/// Ids of UCX active messages, and kinds of messages in local queues.
enum class WireKind : uint16_t {
  kMessage = 0,  ///< MessagePrefix, the caller's head; the body is the active message's data
  kOffer = 1,   ///< OfferPrefix, the caller's head; the body is to be read from the sender's memory
  kAnswer = 2,  ///< Answer to an offer
  kReply = 3,   ///< ReplyPrefix; the body of an offer that could not be read is the data
  kNudge = 4,   ///< nothing: look into the queues in shared memory
  kStaged = 5,  ///< OfferPrefix, the caller's head; the body is in the sender's stage
};
inline constexpr unsigned kWireKinds = 6;

struct MessagePrefix {
  uint32_t source = 0;  ///< process that sends
  uint32_t sequence =
      0;  ///< number of this message from it to the receiver; UCX may let messages overtake
};

struct OfferPrefix {
  MessagePrefix message;
  uint64_t address = 0;  ///< of the body in the sender's memory, or where it begins in its stage
  uint64_t bytes = 0;
  OperationId offer;  ///< the send that waits for the answer
};

enum class Verdict : uint32_t {
  kTaken = 0,       ///< the body is no longer needed
  kSendThis = 1,    ///< this body can't be read: send it as a reply
  kSendAlways = 2,  ///< the same, and don't offer again: no memory can be read
};

struct Answer {
  uint32_t source = 0;
  Verdict verdict = Verdict::kTaken;
  OperationId offer;
  OperationId receive;  ///< unless kTaken, the receive that waits for the reply
};

struct ReplyPrefix {
  uint32_t source = 0;
  uint32_t reserved = 0;
  OperationId receive;
};

template <class Prefix>
std::span<const std::byte> bytes_of(const Prefix& prefix) {
  return std::as_bytes(std::span(&prefix, 1));
}

static_assert(sizeof(MessagePrefix) == 8 && sizeof(OfferPrefix) == 32);
static_assert(sizeof(Answer) == 24 && sizeof(ReplyPrefix) == 16);
static_assert(std::is_trivially_copyable_v<OfferPrefix> && std::is_trivially_copyable_v<Answer>);

/// Room for the largest header of an active message.
inline constexpr size_t kMaxWireHeader = sizeof(OfferPrefix) + kMaxHeadBytes;

}  // namespace uzip
