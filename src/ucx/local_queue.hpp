// Queues in shared memory for short messages between processes of one host: a message is written
// once and read once, which takes half the time of UCX's way. Used by UcxTransport, which falls
// back to UCX where a queue is full or could not be opened.
//
// Each process owns one file in memory, its inbox, with one queue for each other process of the
// host. Who opens it is the only writer of its own queue. What is read from it is not trusted.
#pragma once

#include "ucx/peer_memory.hpp"
#include "ucx/wire_format.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace uzip {

/// Largest body that a queue carries. Above it the copies cost more than the way.
inline constexpr size_t kQueueBodyBytes = 1024;
/// Inboxes are looked through at each turn, so there are none where a host has more processes.
inline constexpr int kMostQueues = 32;

/// What another process needs to find an inbox: a descriptor of its owner, by /proc.
struct InboxAddress {
  int32_t descriptor = -1;  ///< -1: there is no inbox
  uint32_t queues = 0;
};

namespace local_queue {

inline constexpr size_t kSlots = 16;

enum OwnerState : uint32_t {
  kAwake = 0,
  kAsleep = 1,  ///< must be woken when there is a message
  kGone = 2,    ///< takes no messages any more
};

/// One message. `stamp` says which, and is written last.
struct alignas(64) Slot {
  uint64_t stamp;
  uint16_t kind;
  uint16_t header_bytes;
  uint16_t body_bytes;
  uint16_t reserved;
  std::byte bytes[kMaxWireHeader + kQueueBodyBytes];
};

struct alignas(64) Queue {
  uint64_t consumed;  ///< messages that the receiver has taken
  Slot slots[kSlots];
};

struct alignas(4096) Inbox {
  MemoryToken token;           ///< of the owner
  alignas(64) uint32_t state;  ///< what the owner does: an OwnerState

  /// The queues follow.
  Queue& queue(uint32_t index) { return reinterpret_cast<Queue*>(this + 1)[index]; }
};

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

/// A message in this process's own memory, with lengths that have been checked.
struct QueuedMessage {
  WireKind kind = WireKind::kMessage;
  size_t header_bytes = 0;
  size_t body_bytes = 0;
  std::byte bytes[kMaxWireHeader + kQueueBodyBytes];

  std::span<const std::byte> header() const { return {bytes, header_bytes}; }
  std::byte* body() { return bytes + header_bytes; }
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

  enum class Taken : uint8_t { kNothing, kMessage, kDamaged };
  /// Takes the next message of a queue. After a damaged one, which is told once, there is nothing more.
  Taken take(uint32_t queue, QueuedMessage* message);

  /// Announces that this process is about to sleep; false if there is something to take.
  bool fall_asleep();
  void wake_up();

 private:
  void tell(local_queue::OwnerState state);

  local_queue::Mapping mapping_;
  int descriptor_ = -1;
  uint32_t queues_ = 0;
  bool has_message(uint32_t queue) const;

  uint64_t next_[kMostQueues] = {};  ///< number of the next message of each queue
  bool damaged_[kMostQueues] = {};
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

 private:
  uint32_t receiver_state() const;

  local_queue::Mapping mapping_;
  local_queue::Queue* queue_ = nullptr;
  uint64_t produced_ = 0;
  uint64_t consumed_ = 0;  ///< as last seen
};

}  // namespace uzip
