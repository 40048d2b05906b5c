#include "ucx/local_queue.hpp"

#include "base/copy.hpp"
#include "base/numa_memory.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace uzip {
namespace {

using local_queue::Inbox;
using local_queue::inbox_bytes;
using local_queue::kRoomBytes;
using local_queue::kShortBodyBytes;
using local_queue::kSlotBodyBytes;
using local_queue::kSlots;
using local_queue::Queue;
using local_queue::Slot;

static_assert(std::atomic_ref<uint64_t>::is_always_lock_free);
static_assert(std::atomic_ref<uint32_t>::is_always_lock_free);

Slot& slot_of(Queue& queue, uint64_t number) { return queue.slots[number % kSlots]; }

/// Whether message `number` is there. Its stamp is number + 1: new memory, which is zero, has none.
bool has_stamp(Slot& slot, uint64_t number) {
  return std::atomic_ref(slot.stamp).load(std::memory_order_acquire) == number + 1;
}

/// Whether this process takes part in the others' barriers, and can make some.
bool has_barriers() {
  static const bool registered = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
  return registered;
}

/// All that processes with barriers have stored before is seen by this one, and the other way round.
void make_barrier() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  (void)syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
}

/// Where the body of message `number` stands; both ends ask once for each.
std::byte* body_place(Queue& queue, uint64_t number, local_queue::Room& room, size_t body_bytes) {
  Slot& slot = slot_of(queue, number);
  if (body_bytes <= kShortBodyBytes) return slot.short_body;
  return body_bytes <= kSlotBodyBytes ? slot.body : queue.room + room.add(body_bytes);
}

/// The sum of a header's words, each times an odd number of its own. Two headers have the same with a chance of 2^-64.
uint64_t digest_of(std::span<const std::byte> prefix, std::span<const std::byte> head) {
  uint64_t sum = 0, weight = 0x9e3779b97f4a7c15ull;
  const auto add = [&](const std::byte* from, size_t bytes) {
    uint64_t word = 0;
    std::memcpy(&word, from, bytes);
    sum += word * weight;
    weight += 0x9e3779b97f4a7c14ull;  // even: stays odd
  };
  for (const std::span<const std::byte> part : {prefix, head}) {
    const size_t tail = part.size() % sizeof(uint64_t), whole = part.size() - tail;
    for (size_t i = 0; i < whole; i += sizeof(uint64_t)) add(part.data() + i, sizeof(uint64_t));
    if (tail > 0) add(part.data() + whole, tail);
  }
  return sum;
}

void append(std::byte*& end, std::span<const std::byte> bytes) {
  if (!bytes.empty()) std::memcpy(end, bytes.data(), bytes.size());
  end += bytes.size();
}

}  // namespace

// ---- Mapping ----

namespace local_queue {

Mapping::Mapping(int descriptor, size_t bytes) {
  void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (address == MAP_FAILED) return;
  madvise(address, bytes, MADV_DONTFORK);  // a child is another process
  address_ = address;
  bytes_ = bytes;
}

Mapping::~Mapping() {
  if (address_ != nullptr) munmap(address_, bytes_);
}

Mapping::Mapping(Mapping&& other) noexcept
    : address_(std::exchange(other.address_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace local_queue

// ---- Receiving ----

LocalInbox::~LocalInbox() {
  tell(local_queue::kGone);
  close_file();
}

void LocalInbox::create(uint32_t queues, const MemoryToken& token) {
  const int file = memfd_create("uzipcoll", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0) return;
  // Sealed, so that nobody can make it shorter under the others.
  if (ftruncate(file, static_cast<off_t>(inbox_bytes(queues))) == 0 &&
      fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) {
    mapping_ = local_queue::Mapping(file, inbox_bytes(queues));
  }
  if (mapping_.inbox() == nullptr) {
    close(file);
    return;
  }
  // Its pages are touched first by whoever sends, and read by this process again and again.
  prefer_numa_node(mapping_.inbox(), inbox_bytes(queues), numa_node_here());
  mapping_.inbox()->token = token;
  mapping_.inbox()->uses_barriers = has_barriers();
  descriptor_ = file;
  queues_ = queues;
}

void LocalInbox::close_file() {
  if (descriptor_ >= 0) close(descriptor_);
  descriptor_ = -1;
}

bool LocalInbox::opened_by(uint32_t index) const {
  return index < queues_ && std::atomic_ref(mapping_.inbox()->queue(index).opened).load(std::memory_order_relaxed) == 1;
}

LocalInbox::Taken LocalInbox::take(uint32_t index, QueuedMessage* message) {
  if (!has_message(index)) return Taken::kNothing;
  Queue& queue = mapping_.inbox()->queue(index);
  Reader& reader = readers_[index];
  Slot& slot = slot_of(queue, reader.next);
  // Read once: the sender might change them.
  const uint16_t kind = std::atomic_ref(slot.kind).load(std::memory_order_relaxed);
  message->kind = static_cast<WireKind>(kind);
  message->header_bytes = std::atomic_ref(slot.header_bytes).load(std::memory_order_relaxed);
  message->body_bytes = std::atomic_ref(slot.body_bytes).load(std::memory_order_relaxed);
  if (kind >= kWireKinds || message->header_bytes > kMaxWireHeader || message->body_bytes > kQueueBodyBytes) {
    reader.damaged = true;
    return Taken::kDamaged;
  }
  std::memcpy(message->header_memory, slot.header, message->header_bytes);
  message->body = body_place(queue, reader.next, reader.room, message->body_bytes);
  ++reader.next;
  return Taken::kMessage;
}

void LocalInbox::release(uint32_t index) {
  std::atomic_ref(mapping_.inbox()->queue(index).consumed).store(readers_[index].next, std::memory_order_release);
}

bool LocalInbox::take_expected(uint32_t index, std::span<const std::byte> prefix, std::span<const std::byte> head,
                               std::span<std::byte> body) {
  if (!has_message(index)) return false;
  Queue& queue = mapping_.inbox()->queue(index);
  Reader& reader = readers_[index];
  const Slot& slot = slot_of(queue, reader.next);
  if (slot.kind != static_cast<uint16_t>(WireKind::kMessage) || slot.header_bytes != prefix.size() + head.size() ||
      slot.body_bytes != body.size() || slot.digest != digest_of(prefix, head))
    return false;
  if (!body.empty()) copy_bytes(body.data(), body_place(queue, reader.next, reader.room, body.size()), body.size());
  ++reader.next;
  release(index);
  return true;
}

bool LocalInbox::fall_asleep() {
  Inbox* inbox = mapping_.inbox();
  if (inbox == nullptr) return true;
  tell(local_queue::kAsleep);
  // Either we see the message or its sender sees that we sleep.
  make_barrier();
  for (uint32_t i = 0; i < queues_; ++i) {
    if (has_message(i)) {
      wake_up();
      return false;
    }
  }
  return true;
}

bool LocalInbox::has_message(uint32_t index) const {
  const Reader& reader = readers_[index];
  return !reader.damaged && has_stamp(slot_of(mapping_.inbox()->queue(index), reader.next), reader.next);
}

void LocalInbox::wake_up() { tell(local_queue::kAwake); }

void LocalInbox::tell(local_queue::OwnerState state) {
  Inbox* inbox = mapping_.inbox();
  if (inbox != nullptr) std::atomic_ref(inbox->state).store(state, std::memory_order_relaxed);
}

// ---- Sending ----

bool LocalQueue::open(const PeerMemory& owner, const InboxAddress& address, uint32_t queue) {
  if (address.descriptor < 0 || address.queues > kMostQueues || queue >= address.queues) {
    return false;
  }
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", owner.pid, address.descriptor);
  const int file = ::open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return false;
  const size_t bytes = inbox_bytes(address.queues);
  local_queue::Mapping mapping;
  struct stat facts;
  const int seals = fcntl(file, F_GET_SEALS);
  if (seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && fstat(file, &facts) == 0 &&
      static_cast<size_t>(facts.st_size) == bytes) {
    mapping = local_queue::Mapping(file, bytes);
  }
  close(file);
  Inbox* inbox = mapping.inbox();
  if (inbox == nullptr || inbox->token != owner.token) return false;
  mapping_ = std::move(mapping);
  queue_ = &inbox->queue(queue);
  stage_ = inbox->stage(address.queues);
  std::atomic_ref(queue_->opened).store(1, std::memory_order_relaxed);
  fences_ = inbox->uses_barriers != 1 || !has_barriers();
  return true;
}

bool LocalQueue::push(WireKind kind, std::span<const std::byte> prefix,
                      std::span<const std::byte> head, std::span<const std::byte> body) {
  if (prefix.size() + head.size() > kMaxWireHeader || body.size() > kQueueBodyBytes) return false;
  if (receiver_state() == local_queue::kGone || !has_room(body.size())) return false;
  Slot& slot = slot_of(*queue_, produced_);
  // The line of the stamp comes last, and at once: the receiver looks at it all the time, and each look takes it away.
  std::byte* end = slot.header;
  append(end, prefix);
  append(end, head);
  const uint64_t digest = digest_of(prefix, head);
  end = body_place(*queue_, produced_, room_, body.size());
  copy_bytes(end, body.data(), body.size());
  room_used_[produced_ % kSlots] = room_.used();
  slot.kind = static_cast<uint16_t>(kind);
  slot.header_bytes = static_cast<uint16_t>(prefix.size() + head.size());
  slot.body_bytes = static_cast<uint16_t>(body.size());
  slot.digest = digest;
  std::atomic_ref(slot.stamp).store(++produced_, std::memory_order_release);
  return true;
}

/// Whether there is a slot, and room for the body if that doesn't fit into it.
bool LocalQueue::has_room(size_t body_bytes) {
  const auto fits = [&] {
    if (produced_ - consumed_ >= kSlots) return false;  // also if the number can't be
    if (body_bytes <= kSlotBodyBytes) return true;
    local_queue::Room with_body = room_;
    with_body.add(body_bytes);
    return with_body.used() - room_free_ <= kRoomBytes;
  };
  if (fits()) return true;
  look_at_consumed();
  return fits();
}

void LocalQueue::look_at_consumed() {
  const uint64_t consumed = std::atomic_ref(queue_->consumed).load(std::memory_order_acquire);
  if (consumed != consumed_ && produced_ - consumed < kSlots) room_free_ = room_used_[(consumed - 1) % kSlots];
  consumed_ = consumed;
}

bool LocalQueue::receiver_sleeps() const {
  if (fences_) std::atomic_thread_fence(std::memory_order_seq_cst);
  else std::atomic_signal_fence(std::memory_order_seq_cst);
  return receiver_state() == local_queue::kAsleep;
}

bool LocalQueue::drained() const {
  return queue_ == nullptr || receiver_state() == local_queue::kGone ||
         std::atomic_ref(queue_->consumed).load(std::memory_order_acquire) == produced_;
}

const std::byte* LocalQueue::staged(uint64_t begin, uint64_t bytes) const {
  const bool inside = stage_ != nullptr && begin <= kStageBytes && bytes <= kStageBytes - begin;
  return inside ? stage_ + begin : nullptr;
}

uint32_t LocalQueue::receiver_state() const {
  return std::atomic_ref(mapping_.inbox()->state).load(std::memory_order_relaxed);
}

}  // namespace uzip
