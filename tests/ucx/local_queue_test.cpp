// Queues in shared memory: both ends in one process, and what a hostile or ended other end may do.
#include "ucx/local_queue.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace uzip {
namespace {

using local_queue::kSlots;
using Taken = LocalInbox::Taken;

std::vector<std::byte> some_bytes(size_t count, size_t seed) {
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 37 + seed * 101 + 1);
  return bytes;
}

std::vector<std::byte> first_bytes(const std::byte* begin, size_t count) { return {begin, begin + count}; }

class LocalQueueTest : public ::testing::Test {
 protected:
  void SetUp() override {
    inbox.create(3, owner.token);
    ASSERT_GE(inbox.address().descriptor, 0);
    ASSERT_TRUE(queue.open(owner, inbox.address(), 1));
  }

  bool push(size_t head_bytes, size_t body_bytes, size_t seed = 0) {
    return queue.push(WireKind::kMessage, some_bytes(8, seed), some_bytes(head_bytes, seed + 1),
                      some_bytes(body_bytes, seed + 2));
  }

  /// What another process with the same mapping may write.
  static local_queue::Mapping map_again(const LocalInbox& mapped) {
    return local_queue::Mapping(mapped.address().descriptor,
                                local_queue::inbox_bytes(3));
  }

  PeerMemory owner{getpid(), 0, make_memory_token()};
  LocalInbox inbox;
  LocalQueue queue;
  QueuedMessage message;
};

TEST_F(LocalQueueTest, MessagesComeInOrderAndUnchanged) {
  size_t sent = 0;
  size_t taken = 0;
  for (int lap = 0; lap < 20; ++lap) {
    for (size_t i = 0; i < 1 + static_cast<size_t>(lap) % kSlots; ++i, ++sent) {
      ASSERT_TRUE(push(sent % (kMaxHeadBytes + 1), sent * 131 % (3 * local_queue::kSlotBodyBytes), sent));
    }
    EXPECT_FALSE(queue.drained());
    for (; taken < sent; ++taken) {
      ASSERT_EQ(inbox.take(1, &message), Taken::kMessage);
      std::vector<std::byte> expected = some_bytes(8, taken);
      for (std::byte b : some_bytes(taken % (kMaxHeadBytes + 1), taken + 1)) expected.push_back(b);
      ASSERT_EQ(message.header_bytes, expected.size());
      ASSERT_EQ(std::memcmp(message.header_memory, expected.data(), expected.size()), 0);
      const auto body = some_bytes(taken * 131 % (3 * local_queue::kSlotBodyBytes), taken + 2);
      ASSERT_EQ(message.body_bytes, body.size());
      ASSERT_EQ(first_bytes(message.body, body.size()), body);
      inbox.release(1);
    }
    EXPECT_EQ(inbox.take(1, &message), Taken::kNothing);
    EXPECT_TRUE(queue.drained());
  }
  EXPECT_EQ(inbox.take(0, &message), Taken::kNothing);
  EXPECT_EQ(inbox.take(2, &message), Taken::kNothing);
}

TEST_F(LocalQueueTest, RefusesWhatDoesNotFit) {
  EXPECT_FALSE(push(0, kQueueBodyBytes + 1));
  EXPECT_FALSE(queue.push(WireKind::kMessage, {}, some_bytes(kMaxWireHeader + 1, 0), {}));
  EXPECT_TRUE(push(kMaxHeadBytes, kQueueBodyBytes));
  for (size_t i = 1; i < kSlots; ++i) EXPECT_TRUE(push(1, 1));
  EXPECT_FALSE(push(1, 1));
  ASSERT_EQ(inbox.take(1, &message), Taken::kMessage);
  EXPECT_FALSE(push(1, 1)) << "its body is still looked at";
  inbox.release(1);
  EXPECT_TRUE(push(1, 1));
  EXPECT_FALSE(push(1, 1));
}

// Long bodies share the queue's room, and keep it until they are released.
TEST_F(LocalQueueTest, LongBodiesHaveRoomForAFew) {
  size_t fit = 0;
  while (push(8, kQueueBodyBytes, fit)) ++fit;
  EXPECT_EQ(fit, local_queue::kRoomBytes / kQueueBodyBytes);
  EXPECT_TRUE(push(8, local_queue::kSlotBodyBytes, fit)) << "in its slot";
  for (size_t i = 0; i < fit; ++i) {
    ASSERT_EQ(inbox.take(1, &message), Taken::kMessage);
    EXPECT_FALSE(push(8, kQueueBodyBytes));
    const auto body = some_bytes(kQueueBodyBytes, i + 2);
    ASSERT_EQ(message.body_bytes, body.size());
    ASSERT_EQ(first_bytes(message.body, body.size()), body);
    inbox.release(1);
    EXPECT_TRUE(push(8, kQueueBodyBytes, fit + 1 + i));
  }
}

TEST_F(LocalQueueTest, TakesWhatIsExpectedAndNothingElse) {
  const auto prefix = some_bytes(8, 5), head = some_bytes(88, 6), sent = some_bytes(40, 7);
  std::vector<std::byte> body(40);
  const auto take = [&](const auto& p, const auto& h, std::span<std::byte> b) { return inbox.take_expected(1, p, h, b); };
  EXPECT_FALSE(take(prefix, head, body)) << "nothing is there";
  ASSERT_TRUE(queue.push(WireKind::kMessage, prefix, head, sent));
  EXPECT_FALSE(take(some_bytes(8, 6), head, body));
  EXPECT_FALSE(take(prefix, some_bytes(88, 7), body));
  EXPECT_FALSE(take(prefix, some_bytes(80, 6), body));
  EXPECT_FALSE(take(prefix, head, std::span(body).first(39)));
  EXPECT_EQ(body, std::vector<std::byte>(40)) << "nothing was written";
  EXPECT_TRUE(take(prefix, head, body));
  EXPECT_EQ(body, sent);
  EXPECT_FALSE(take(prefix, head, body)) << "once";
  ASSERT_TRUE(queue.push(WireKind::kOffer, prefix, head, sent));
  EXPECT_FALSE(take(prefix, head, body)) << "another kind";
  EXPECT_EQ(inbox.take(1, &message), Taken::kMessage);
  EXPECT_TRUE(queue.push(WireKind::kMessage, prefix, head, some_bytes(kQueueBodyBytes, 8)));
  inbox.release(1);
  body.resize(kQueueBodyBytes);
  EXPECT_TRUE(take(prefix, head, body));
  EXPECT_EQ(body, some_bytes(kQueueBodyBytes, 8));
  EXPECT_TRUE(queue.drained());
}

TEST_F(LocalQueueTest, FallsAsleepOnlyWhenThereIsNothing) {
  EXPECT_FALSE(queue.receiver_sleeps());
  EXPECT_TRUE(inbox.fall_asleep());
  EXPECT_TRUE(queue.receiver_sleeps());
  inbox.wake_up();
  EXPECT_FALSE(queue.receiver_sleeps());
  ASSERT_TRUE(push(1, 1));
  EXPECT_FALSE(inbox.fall_asleep());
  EXPECT_FALSE(queue.receiver_sleeps());
}

TEST_F(LocalQueueTest, NothingIsSentToOneWhoIsGone) {
  auto other = std::make_unique<LocalInbox>();
  other->create(2, owner.token);
  LocalQueue sender;
  ASSERT_TRUE(sender.open(owner, other->address(), 0));
  ASSERT_TRUE(sender.push(WireKind::kMessage, {}, {}, {}));
  EXPECT_FALSE(sender.drained());
  other.reset();
  EXPECT_TRUE(sender.drained());
  EXPECT_FALSE(sender.push(WireKind::kMessage, {}, {}, {}));
}

TEST_F(LocalQueueTest, OpensNothingThatIsNotTheInbox) {
  LocalQueue other;
  EXPECT_FALSE(other.open(owner, {}, 0));
  EXPECT_FALSE(other.open(owner, inbox.address(), 3));
  InboxAddress wrong = inbox.address();
  wrong.queues = 2;
  EXPECT_FALSE(other.open(owner, wrong, 0)) << "another length";
  wrong.queues = UINT32_MAX;
  EXPECT_FALSE(other.open(owner, wrong, 0));
  PeerMemory stranger = owner;
  stranger.token = make_memory_token();
  EXPECT_FALSE(other.open(stranger, inbox.address(), 0)) << "another owner";
  const int file = open("/dev/zero", O_RDWR);
  EXPECT_FALSE(other.open(owner, {file, 3}, 0));
  close(file);
  const int unsealed = memfd_create("test", MFD_ALLOW_SEALING);
  const size_t bytes = local_queue::inbox_bytes(3);
  ASSERT_EQ(ftruncate(unsealed, static_cast<off_t>(bytes)), 0);
  EXPECT_FALSE(other.open(owner, {unsealed, 3}, 0)) << "could be made shorter";
  close(unsealed);
  EXPECT_EQ(ftruncate(inbox.address().descriptor, 0), -1);
  inbox.close_file();
  EXPECT_FALSE(other.open(owner, inbox.address(), 0));
  EXPECT_TRUE(push(1, 1)) << "what is open stays open";
}

// Told once; then the receiver can sleep, as if the queue were empty.
TEST_F(LocalQueueTest, DamagedMessagesAreNoticed) {
  const auto damaged_by = [&](auto damage) {
    LocalInbox receiver;
    receiver.create(3, owner.token);
    LocalQueue sender;
    EXPECT_TRUE(sender.open(owner, receiver.address(), 1));
    EXPECT_TRUE(sender.push(WireKind::kMessage, some_bytes(8, 0), some_bytes(8, 1), some_bytes(8, 2)));
    const auto again = map_again(receiver);
    damage(again.inbox()->queue(1).slots[0]);
    const Taken taken = receiver.take(1, &message);
    EXPECT_EQ(receiver.take(1, &message), Taken::kNothing);
    EXPECT_TRUE(receiver.fall_asleep());
    return taken;
  };
  using local_queue::Slot;
  EXPECT_EQ(damaged_by([](Slot& slot) { slot.kind = kWireKinds; }), Taken::kDamaged);
  EXPECT_EQ(damaged_by([](Slot& slot) { slot.header_bytes = kMaxWireHeader + 1; }), Taken::kDamaged);
  EXPECT_EQ(damaged_by([](Slot& slot) { slot.body_bytes = kQueueBodyBytes + 1; }), Taken::kDamaged);
  EXPECT_EQ(damaged_by([](Slot& slot) { slot.header_bytes = slot.body_bytes = UINT16_MAX; }), Taken::kDamaged);
  EXPECT_EQ(damaged_by([](Slot& slot) { slot.stamp = 7; }), Taken::kNothing);
  EXPECT_EQ(damaged_by([](Slot&) {}), Taken::kMessage);
}

TEST_F(LocalQueueTest, NonsenseFromTheReceiverDoesNotOverwrite) {
  const auto again = map_again(inbox);
  for (size_t i = 0; i < kSlots; ++i) ASSERT_TRUE(push(1, 1));
  again.inbox()->queue(1).consumed = 1000;  // more than were sent
  EXPECT_FALSE(push(1, 1));
}

TEST(LocalQueue, TwoProcesses) {
  constexpr size_t kMessages = 200000;
  PeerMemory owner{getpid(), 0, make_memory_token()};
  LocalInbox inbox;
  inbox.create(1, owner.token);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);  // nobody is left to receive if the parent fails
    LocalQueue queue;
    if (!queue.open(owner, inbox.address(), 0)) _exit(1);
    for (size_t i = 0; i < kMessages;) {
      const auto body = some_bytes(i % 97, i);
      if (queue.push(WireKind::kReply, std::as_bytes(std::span(&i, 1)), {}, body)) ++i;
      else std::this_thread::yield();
    }
    while (!queue.drained()) std::this_thread::yield();
    _exit(0);
  }
  QueuedMessage message;
  for (size_t i = 0; i < kMessages;) {
    const Taken taken = inbox.take(0, &message);
    if (taken == Taken::kNothing) {
      std::this_thread::yield();
      int status = 0;
      if (i == 0 && waitpid(child, &status, WNOHANG) == child) FAIL() << "the child could not open the queue";
      continue;
    }
    ASSERT_EQ(taken, Taken::kMessage);
    ASSERT_EQ(message.kind, WireKind::kReply);
    size_t number = 0;
    ASSERT_EQ(message.header_bytes, sizeof number);
    std::memcpy(&number, message.header_memory, sizeof number);
    ASSERT_EQ(number, i);
    const auto body = some_bytes(i % 97, i);
    ASSERT_EQ(message.body_bytes, body.size());
    ASSERT_EQ(first_bytes(message.body, body.size()), body);
    inbox.release(0);
    ++i;
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace uzip
