// What a process sends to itself through UcxTransport: in a collective on one rank, or a send to the own rank.
#include "ucx/child.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<size_t> allocations{0};

void* allocate(size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes > 0 ? bytes : 1)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(size_t bytes) { return allocate(bytes); }
void* operator new[](size_t bytes) { return allocate(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }

namespace uzip {
namespace {

/// Takes every message at once, and allocates nothing for it.
class Taker : public TransportSink {
 public:
  explicit Taker(Transport& transport) : transport_(transport) { transport.set_sink(this); }
  bool on_message(Incoming& incoming) override {
    EXPECT_LE(incoming.body_bytes, sizeof body);
    bytes = incoming.body_bytes;
    EXPECT_TRUE(transport_.receive(incoming, body, &ticket).ok());
    ++taken;
    return true;
  }
  void on_peer_failed(int, const Status&) override { ADD_FAILURE(); }

  std::byte body[64 << 10];
  size_t bytes = 0;
  int taken = 0;
  Ticket ticket;

 private:
  Transport& transport_;
};

TEST(SelfMessages, DontAllocate) {
  ProcessGroup group(1);
  group.start([](int rank, const auto& allgather) {
    Child child({"queues", "shm", true, true}, rank, 1, allgather);
    CHILD_CHECK(child.ok());
    const auto taker = std::make_unique<Taker>(*child.transport);
    Ticket sent;
    for (size_t bytes : {size_t{8192}, size_t{0}, size_t{5}, size_t{64 << 10}}) {
      const std::vector<std::byte> body = pattern(bytes, bytes);
      size_t before = 0;
      for (int turn = 0; turn < 100; ++turn) {
        if (turn == 10) before = allocations;
        const auto answer = child.transport->send(0, as_head("x"), body, &sent, {});
        CHILD_CHECK(answer.ok());
        CHILD_CHECK((*answer == Progress::kDone) == (bytes <= 8192));
        const int taken = taker->taken, calls = sent.calls;
        while (taker->taken == taken || (*answer == Progress::kPending && sent.calls == calls))
          child.transport->progress();
        CHILD_CHECK(taker->bytes == bytes && std::equal(body.begin(), body.end(), taker->body));
      }
      CHILD_CHECK(allocations == before);
    }
    return 0;
  });
  EXPECT_EQ(group.wait_for_all(), "");
}

}  // namespace
}  // namespace uzip
