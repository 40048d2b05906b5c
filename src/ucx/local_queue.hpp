// Queues in shared memory for short messages between processes of one host: a message is written
// once and read once, which takes half the time of UCX's way. Used by UcxTransport, which falls
// back to UCX where a queue is full or could not be opened.
//
// Each process owns one file in memory, its inbox, with one queue for each other process of the
// host. Who opens it is the only writer of its own queue. What is read from it is not trusted.
#pragma once

#include "ucx/local_stage.hpp"
#include "ucx/peer_memory.hpp"
#include "ucx/wire_format.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace uzip {

/// Largest body that a queue carries. Longer ones are cheaper read from the sender's memory.
inline constexpr size_t kQueueBodyBytes = 16 * 1024;
/// Inboxes are looked through at each turn, so there are none where a host has more processes.
inline constexpr int kMostQueues = 32;

/// What another process needs to find an inbox: a descriptor of its owner, by /proc.
struct InboxAddress {
  int32_t descriptor = -1;  ///< -1: there is no inbox
  uint32_t queues = 0;
};

namespace local_queue {

inline constexpr size_t kSlots = 16;
/// Bodies up to here stand beside the stamp, others in the slot, long ones in the queue's room.
inline constexpr size_t kShortBodyBytes = 40;
inline constexpr size_t kSlotBodyBytes = 1024;
inline constexpr size_t kRoomBytes = 64 * 1024;

enum OwnerState : uint32_t {
  kAwake = 0,
  kAsleep = 1,  ///< must be woken when there is a message
  kGone = 2,    ///< takes no messages any more
};

/// One message. `stamp` says which, and is written last. Who expects just this message knows it by its digest, and of a
/// short one reads nothing but the first line; the header's lines then stay with the sender's core.
struct alignas(64) Slot {
  uint64_t stamp;
  uint16_t kind;
  uint16_t header_bytes;
  uint16_t body_bytes;
  uint16_t reserved;
  uint64_t digest;  ///< of the header
  std::byte short_body[kShortBodyBytes];
  alignas(64) std::byte header[kMaxWireHeader];
  alignas(64) std::byte body[kSlotBodyBytes];
};
static_assert(offsetof(Slot, header) == 64);

struct alignas(64) Queue {
  uint64_t consumed;  ///< messages that the receiver has taken
  uint32_t opened;    ///< 1: the sender has opened the inbox, and sees its stage
  Slot slots[kSlots];
  alignas(64) std::byte room[kRoomBytes];  ///< long bodies, see Room
};

/// Where long bodies stand in a queue's room: one behind the other, none across its end. Both ends come to the same
/// places from the lengths, so that none has to be told, or checked.
class Room {
 public:
  /// The next body's place; what is behind it counts as used.
  size_t add(size_t bytes) {
    if (used_ % kRoomBytes + bytes > kRoomBytes) used_ += kRoomBytes - used_ % kRoomBytes;
    const size_t place = used_ % kRoomBytes;
    used_ += (bytes + 63) / 64 * 64;
    return place;
  }
  /// Bytes that were ever used.
  uint64_t used() const { return used_; }

 private:
  uint64_t used_ = 0;
};
static_assert(kQueueBodyBytes <= kRoomBytes && kRoomBytes % 64 == 0);

struct alignas(4096) Inbox {
  MemoryToken token;           ///< of the owner
  uint32_t uses_barriers;      ///< 1: before it sleeps, the owner makes all its senders' stores seen (membarrier(2))
  alignas(64) uint32_t state;  ///< what the owner does: an OwnerState

  /// The queues follow, then the owner's stage.
  Queue& queue(uint32_t index) { return reinterpret_cast<Queue*>(this + 1)[index]; }
  std::byte* stage(uint32_t queues) { return reinterpret_cast<std::byte*>(&queue(queues)); }
};

inline size_t inbox_bytes(uint32_t queues) { return sizeof(Inbox) + queues * sizeof(Queue) + kStageBytes; }

/// Memory that is mapped as long as the object lives.
class Mapping {
 public:
  Mapping() = default;
  Mapping(int descriptor, size_t bytes);
  ~Mapping();
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;

  Inbox* inbox() const { return static_cast<Inbox*>(address_); }

 private:
  void* address_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace local_queue

/// A message with lengths that have been checked. Its header is in this process's own memory; its body is where its
/// sender can still write, so it is to be copied once, before anything is made of it.
struct QueuedMessage {
  WireKind kind = WireKind::kMessage;
  size_t header_bytes = 0;
  size_t body_bytes = 0;
  std::byte* body = nullptr;  ///< valid until LocalInbox::release()
  std::byte header_memory[kMaxWireHeader];

  std::span<const std::byte> header() const { return {header_memory, header_bytes}; }
};

/// The receiving end: the queues from all processes of this host to this one.
class LocalInbox {
 public:
  LocalInbox() = default;
  ~LocalInbox();
  LocalInbox(const LocalInbox&) = delete;
  LocalInbox& operator=(const LocalInbox&) = delete;

  /// Makes the file. Without success, which is no error, no queue can be opened.
  void create(uint32_t queues, const MemoryToken& token);
  InboxAddress address() const { return {descriptor_, queues_}; }
  /// All that may open it have done so.
  void close_file();
  /// This process's stage, null without a file.
  std::byte* stage() const { return mapping_.inbox() ? mapping_.inbox()->stage(queues_) : nullptr; }
  /// Whether the sender of a queue has opened the file.
  bool opened_by(uint32_t queue) const;

  enum class Taken : uint8_t { kNothing, kMessage, kDamaged };
  /// Takes the next message of a queue; release() is to follow. After a damaged one, which is told once, there is
  /// nothing more.
  Taken take(uint32_t queue, QueuedMessage* message);
  /// The message that was taken last is not needed any more.
  void release(uint32_t queue);
  /// Takes the next message if it is this one: its header what `prefix` and `head` hold together, its body as long as
  /// `body`, which it is copied into.
  bool take_expected(uint32_t queue, std::span<const std::byte> prefix, std::span<const std::byte> head,
                     std::span<std::byte> body);

  /// Announces that this process is about to sleep; false if there is something to take.
  bool fall_asleep();
  void wake_up();

 private:
  /// What is known of a queue from one message to the next.
  struct Reader {
    uint64_t next = 0;  ///< number of the next message
    local_queue::Room room;
    bool damaged = false;
  };

  void tell(local_queue::OwnerState state);
  bool has_message(uint32_t queue) const;

  local_queue::Mapping mapping_;
  int descriptor_ = -1;
  uint32_t queues_ = 0;
  Reader readers_[kMostQueues];
};

/// The sending end: one queue in the inbox of another process.
class LocalQueue {
 public:
  /// Opens queue number `queue` of the process that `owner` describes; false if that is not possible.
  bool open(const PeerMemory& owner, const InboxAddress& address, uint32_t queue);
  bool is_open() const { return queue_ != nullptr; }

  /// Writes a message; its header is what `prefix` and `head` hold together. False if the queue is
  /// full, the message too long for it, or the receiver gone.
  bool push(WireKind kind, std::span<const std::byte> prefix, std::span<const std::byte> head,
            std::span<const std::byte> body);
  /// Whether the receiver sleeps. To be asked after each push.
  bool receiver_sleeps() const;
  /// Whether the receiver has taken all, or is gone.
  bool drained() const;
  /// A part of the receiver's stage; null if it is none.
  const std::byte* staged(uint64_t begin, uint64_t bytes) const;

 private:
  uint32_t receiver_state() const;
  bool has_room(size_t body_bytes);
  void look_at_consumed();

  local_queue::Mapping mapping_;
  local_queue::Queue* queue_ = nullptr;
  const std::byte* stage_ = nullptr;  ///< the receiver's
  bool fences_ = true;     ///< has to make its own stores seen before it looks whether the receiver sleeps
  uint64_t produced_ = 0;
  uint64_t consumed_ = 0;  ///< as last seen
  local_queue::Room room_;
  uint64_t room_used_[local_queue::kSlots] = {};  ///< of the room, up to the message in each slot
  uint64_t room_free_ = 0;                        ///< the same, up to the last message that was consumed
};

}  // namespace uzip
