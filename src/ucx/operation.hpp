// State of the transport's pending operations and of messages that arrived and were not taken yet.
// Both live in pools: no allocation per short message once the pools have grown. Used by
// UcxTransport only.
#pragma once

#include "base/transport.hpp"
#include "ucx/wire_format.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

namespace uzip {

class UcxTransport;

/// One send, receive or control message that has not finished.
struct Operation {
  enum class Kind : uint8_t {
    kFree,
    kSend,        ///< handed to UCX
    kOffer,       ///< waits for the receiver's answer
    kStaged,      ///< the same, and nobody waits for it: the body is in the stage
    kSelf,        ///< waits for this process to receive it
    kReceive,     ///< UCX moves the body
    kAwaitReply,  ///< receive of an offer that was refused; UCX does not know of it yet
    kControl,     ///< an answer; nobody waits for it
  };

  Kind kind = Kind::kFree;
  int peer = -1;
  bool with_ucx = false;  ///< UCX works on it and will report its end
  bool awaited = false;   ///< counts in the sends that flushed() waits for
  UcxTransport* transport = nullptr;
  Completion* completion = nullptr;
  OperationId id;                     ///< of this use of the slot
  const std::byte* source = nullptr;  ///< kOffer, kSelf: the body
  size_t staged_at = 0;               ///< kStaged: where the body begins in the stage
  std::byte* destination = nullptr;   ///< kAwaitReply: where it goes
  size_t bytes = 0;
  uint32_t header_bytes = 0;
  std::byte header[kMaxWireHeader];  ///< UCX wants it unchanged until the send has finished
};

class OperationPool {
 public:
  Operation* take(Operation::Kind kind, int peer, Completion* completion);
  void give(Operation* operation);

  /// The operation in use that `id` names, or null.
  Operation* find(OperationId id);

  /// Calls visit(Operation*) for each operation in use; visit may give back the one it is called
  /// for.
  template <class Visit>
  void for_each(Visit visit) {
    for (Operation& operation : slots_) {
      if (operation.kind != Operation::Kind::kFree) visit(&operation);
    }
  }

 private:
  std::deque<Operation> slots_;
  std::vector<uint32_t> free_;
};

/// A message between its arrival and its receive() or discard(): what Incoming::handle points to.
struct Arrival {
  /// Where the body is.
  enum class Body : uint8_t {
    kPassing,     ///< in UCX's memory, until the handler returns
    kInline,      ///< in inline_body
    kOwned,       ///< in owned_body
    kUcx,         ///< in UCX's memory, until released
    kRendezvous,  ///< with the sender; UCX will fetch it
    kOffered,     ///< with the sender; to be read from its memory
    kStaged,      ///< in the sender's stage, where it can still write
    kSelf,        ///< in this process, with the send operation `offer`
    kLost,        ///< there was no memory for it
  };

  Body body = Body::kPassing;
  bool in_use = false;
  bool in_handler =
      false;           ///< on_message() is running: who ends the message leaves the object alone
  bool ended = false;  ///< received or discarded during on_message()
  bool held_by_ucx = false;  ///< received during on_message(), and UCX is still at it
  int peer = -1;
  uint32_t sequence = 0;
  uint32_t head_bytes = 0;
  size_t body_bytes = 0;
  void* data = nullptr;  ///< kPassing, kUcx, kStaged: the body; kRendezvous: UCX's descriptor
  uint64_t address = 0;  ///< kOffered: in the sender's memory
  OperationId offer;     ///< kOffered, kStaged: the sender's operation; kSelf: ours
  std::unique_ptr<std::byte[]> owned_body;
  size_t owned_bytes = 0;  ///< room in owned_body; a little is kept for the next message
  std::byte head[kMaxHeadBytes];  ///< filled only if the message has to wait for its turn
  std::byte inline_body[kMaxHeadBytes];

  /// Room in owned_body; false if there is no memory.
  bool make_room(size_t bytes);
};

class ArrivalPool {
 public:
  Arrival* take();
  void give(Arrival* arrival);

  /// Calls visit(Arrival*) for each arrival in use.
  template <class Visit>
  void for_each(Visit visit) {
    for (Arrival& arrival : slots_) {
      if (arrival.in_use) visit(&arrival);
    }
  }

 private:
  std::deque<Arrival> slots_;
  std::vector<Arrival*> free_;
};

}  // namespace uzip
