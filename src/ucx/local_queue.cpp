#include "ucx/local_queue.hpp"

#include "base/numa_memory.hpp"

#include <atomic>
#include <cstdio>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace uzip {
namespace {

using local_queue::Inbox;
using local_queue::kSlots;
using local_queue::Queue;
using local_queue::Slot;

static_assert(std::atomic_ref<uint64_t>::is_always_lock_free);
static_assert(std::atomic_ref<uint32_t>::is_always_lock_free);

size_t inbox_bytes(uint32_t queues) { return sizeof(Inbox) + queues * sizeof(Queue); }

Slot& slot_of(Queue& queue, uint64_t number) { return queue.slots[number % kSlots]; }

/// Whether message `number` is there. Its stamp is number + 1: new memory, which is zero, has none.
bool has_stamp(Slot& slot, uint64_t number) {
  return std::atomic_ref(slot.stamp).load(std::memory_order_acquire) == number + 1;
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
  descriptor_ = file;
  queues_ = queues;
}

void LocalInbox::close_file() {
  if (descriptor_ >= 0) close(descriptor_);
  descriptor_ = -1;
}

LocalInbox::Taken LocalInbox::take(uint32_t index, QueuedMessage* message) {
  Queue& queue = mapping_.inbox()->queue(index);
  const uint64_t number = next_[index];
  if (!has_message(index)) return Taken::kNothing;
  Slot& slot = slot_of(queue, number);
  // Read once: the sender might change them.
  const uint16_t kind = std::atomic_ref(slot.kind).load(std::memory_order_relaxed);
  message->kind = static_cast<WireKind>(kind);
  message->header_bytes = std::atomic_ref(slot.header_bytes).load(std::memory_order_relaxed);
  message->body_bytes = std::atomic_ref(slot.body_bytes).load(std::memory_order_relaxed);
  if (kind >= kWireKinds || message->header_bytes > kMaxWireHeader ||
      message->body_bytes > kQueueBodyBytes) {
    damaged_[index] = true;
    return Taken::kDamaged;
  }
  std::memcpy(message->bytes, slot.bytes, message->header_bytes + message->body_bytes);
  next_[index] = number + 1;
  std::atomic_ref(queue.consumed).store(number + 1, std::memory_order_release);
  return Taken::kMessage;
}

bool LocalInbox::fall_asleep() {
  Inbox* inbox = mapping_.inbox();
  if (inbox == nullptr) return true;
  tell(local_queue::kAsleep);
  // Either we see the message or its sender sees that we sleep.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (uint32_t i = 0; i < queues_; ++i) {
    if (has_message(i)) {
      wake_up();
      return false;
    }
  }
  return true;
}

bool LocalInbox::has_message(uint32_t index) const {
  return !damaged_[index] && has_stamp(slot_of(mapping_.inbox()->queue(index), next_[index]), next_[index]);
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
  return true;
}

bool LocalQueue::push(WireKind kind, std::span<const std::byte> prefix,
                      std::span<const std::byte> head, std::span<const std::byte> body) {
  if (prefix.size() + head.size() > kMaxWireHeader || body.size() > kQueueBodyBytes) return false;
  if (receiver_state() == local_queue::kGone) return false;
  if (produced_ - consumed_ >= kSlots) {
    consumed_ = std::atomic_ref(queue_->consumed).load(std::memory_order_acquire);
    if (produced_ - consumed_ >= kSlots) return false;  // also if the number can't be
  }
  Slot& slot = slot_of(*queue_, produced_);
  slot.kind = static_cast<uint16_t>(kind);
  slot.header_bytes = static_cast<uint16_t>(prefix.size() + head.size());
  slot.body_bytes = static_cast<uint16_t>(body.size());
  std::byte* end = slot.bytes;
  append(end, prefix);
  append(end, head);
  append(end, body);
  std::atomic_ref(slot.stamp).store(++produced_, std::memory_order_release);
  return true;
}

bool LocalQueue::receiver_sleeps() const {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return receiver_state() == local_queue::kAsleep;
}

bool LocalQueue::drained() const {
  return queue_ == nullptr || receiver_state() == local_queue::kGone ||
         std::atomic_ref(queue_->consumed).load(std::memory_order_acquire) == produced_;
}

uint32_t LocalQueue::receiver_state() const {
  return std::atomic_ref(mapping_.inbox()->state).load(std::memory_order_relaxed);
}

}  // namespace uzip
