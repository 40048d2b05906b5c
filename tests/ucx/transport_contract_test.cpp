// What base/transport.hpp promises, for every transport there is: the loopback of the tests in its
// modes, and UCX over shared memory and tcp. All ranks live in one process (for UCX a child, so
// that the parent never touches it).
#include "support/loopback_transport.hpp"
#include "ucx/inbox.hpp"
#include "ucx/process_group.hpp"
#include "ucx/ucx_transport.hpp"

#include <gtest/gtest.h>

#include <barrier>
#include <thread>

#include <sys/mman.h>

namespace uzip {
namespace {

using Transports = std::vector<std::unique_ptr<Transport>>;

struct Kind {
  const char* name;
  bool ucx;
  std::function<Transports(int size)> make;
};

Transports loopback(int size, const LoopbackOptions& options) {
  LoopbackFabric fabric(size, options);
  Transports transports;
  for (int rank = 0; rank < size; ++rank) transports.push_back(fabric.connect(rank));
  return transports;
}

Transports ucx(int size, const char* tls, bool peer_read, bool local_queues = false) {
  Config config;
  config.ucx_tls = tls;
  config.peer_read = peer_read;
  config.local_queues = local_queues;
  Transports transports(static_cast<size_t>(size));
  std::vector<std::vector<std::byte>> board(static_cast<size_t>(size));
  std::barrier meeting(size);
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < transports.size(); ++rank) {
    threads.emplace_back([&, rank] {
      const auto allgather = [&](std::span<const std::byte> mine, auto* all) {
        board[rank].assign(mine.begin(), mine.end());
        meeting.arrive_and_wait();
        *all = board;
        meeting.arrive_and_wait();
        return Status();
      };
      auto made = UcxTransport::create(config, static_cast<int>(rank), size, allgather);
      EXPECT_TRUE(made.ok()) << made.status().message();
      if (made.ok()) transports[rank] = std::move(*made);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return transports;
}

const Kind kKinds[] = {
    {"loopback", false, [](int n) { return loopback(n, {}); }},
    {"loopback_rendezvous", false, [](int n) { return loopback(n, {.eager_limit = 0}); }},
    {"loopback_slow", false,
     [](int n) {
       return loopback(n, {.longest_delay = 5,
                           .reorder_senders = true,
                           .expose_bodies = false,
                           .slow_receives = true,
                           .slow_sends = true});
     }},
    {"loopback_random", false,
     [](int n) { return loopback(n, {.seed = 7, .longest_delay = 9, .random_modes = true}); }},
    {"ucx_shm", true, [](int n) { return ucx(n, "shm", false); }},
    {"ucx_peer_read", true, [](int n) { return ucx(n, "shm", true); }},
    {"ucx_queues", true, [](int n) { return ucx(n, "shm", false, true); }},
    {"ucx_queues_peer_read", true, [](int n) { return ucx(n, "shm", true, true); }},
    {"ucx_tcp", true, [](int n) { return ucx(n, "tcp", false); }},
};

class TransportContract : public ::testing::TestWithParam<size_t> {
 protected:
  /// Runs `body` with `size` connected transports and their inboxes.
  void with_ranks(int size, const std::function<void()>& body) {
    const Kind& kind = kKinds[GetParam()];
    const auto run = [&] {
      transports = kind.make(size);
      for (const auto& transport : transports) {
        if (!transport) return 1;
        inboxes.push_back(std::make_unique<Inbox>(*transport));
      }
      body();
      EXPECT_TRUE(until([&] {
        return std::all_of(transports.begin(), transports.end(),
                           [](const auto& transport) { return transport->flushed(); });
      }));
      inboxes.clear();
      transports.clear();
      return HasFailure() ? 1 : 0;
    };
    if (!kind.ucx) {
      EXPECT_EQ(run(), 0);
      return;
    }
    ProcessGroup child(1);
    child.start([&](int, const OutOfBandAllgather&) { return run(); });
    EXPECT_EQ(child.wait_for_all(), "");
  }

  /// Progresses all ranks in turn until `condition` holds; false if it takes too long.
  bool until(const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      bool moved = false;
      for (const auto& transport : transports) moved |= transport->progress();
      if (!moved) std::this_thread::yield();
    }
    return true;
  }

  Transport& at(size_t rank) { return *transports[rank]; }
  Inbox& inbox(size_t rank) { return *inboxes[rank]; }

  Transports transports;
  std::vector<std::unique_ptr<Inbox>> inboxes;
};

constexpr size_t kSizes[] = {0,    1,    8,    100,  128,   129,   1000,
                             1024, 8000, 8192, 8193, 65536, 65537, 1 << 20};

TEST_P(TransportContract, NamesItself) {
  with_ranks(3, [&] {
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(at(rank).rank(), rank);
      EXPECT_EQ(at(rank).size(), 3);
      EXPECT_FALSE(at(rank).info().description.empty());
      // Over tcp the processes are to be treated as if they were apart.
      const bool tcp = std::string(kKinds[GetParam()].name) == "ucx_tcp";
      EXPECT_EQ(at(rank).info().all_same_host, !tcp);
      EXPECT_EQ(at(rank).info().processes_here, 3);
    }
  });
}

TEST_P(TransportContract, DeliversHeadsAndBodiesOfAllSizes) {
  with_ranks(2, [&] {
    for (size_t bytes : kSizes) {
      for (size_t head_bytes : {size_t{0}, size_t{1}, size_t{80}, kMaxHeadBytes}) {
        const std::vector<std::byte> body = pattern(bytes, bytes + head_bytes);
        std::string head(head_bytes, static_cast<char>('a' + head_bytes % 26));
        inbox(1).messages.clear();
        Pending sent = start_send(at(0), 1, as_head(head), body);
        const std::string original = head;
        head.assign(head_bytes, '!');  // it was copied
        ASSERT_TRUE(until([&] {
          return sent.finished() && !inbox(1).messages.empty() && inbox(1).all_received();
        })) << bytes;
        const Inbox::Message& message = inbox(1).messages.front();
        EXPECT_TRUE(sent.status().ok()) << sent.status().message();
        EXPECT_TRUE(message.receive.status().ok());
        EXPECT_EQ(message.peer, 0);
        EXPECT_EQ(message.head, original);
        EXPECT_TRUE(message.body == body) << bytes;
        EXPECT_LE(sent.ticket->calls, 1);
      }
    }
  });
}

TEST_P(TransportContract, AnnouncesInTheOrderOfSending) {
  with_ranks(3, [&] {
    constexpr uint64_t kMessages = 400;
    std::vector<std::vector<std::byte>> bodies;
    for (uint64_t i = 0; i < kMessages; ++i) bodies.push_back(pattern(kSizes[i * 7 % 13], i));
    std::vector<Pending> sends;
    for (uint64_t i = 0; i < kMessages; ++i) {
      for (size_t from : {size_t{0}, size_t{1}}) {
        sends.push_back(start_send(at(from), 2, as_head(std::to_string(i)), bodies[i]));
        if (i % 16 == 0) at(from).progress();
      }
    }
    ASSERT_TRUE(until([&] {
      return inbox(2).messages.size() == 2 * kMessages && inbox(2).all_received() &&
             all_finished(sends);
    }));
    uint64_t next[2] = {};
    for (const Inbox::Message& message : inbox(2).messages) {
      const uint64_t i = next[message.peer]++;
      ASSERT_EQ(message.head, std::to_string(i));
      EXPECT_TRUE(message.body == bodies[i]);
    }
  });
}

TEST_P(TransportContract, KeepsWhatNobodyAskedForYet) {
  with_ranks(2, [&] {
    inbox(1).policy = Inbox::Policy::kKeep;
    std::vector<std::vector<std::byte>> bodies;
    std::vector<Pending> sends;
    for (size_t bytes : kSizes) bodies.push_back(pattern(bytes, bytes));
    for (const auto& body : bodies) sends.push_back(start_send(at(0), 1, {}, body));
    ASSERT_TRUE(until([&] { return inbox(1).messages.size() == bodies.size(); }));
    for (size_t i = bodies.size(); i-- > 0;) inbox(1).take(inbox(1).messages[i]);
    ASSERT_TRUE(until([&] { return inbox(1).all_received(); }));
    for (size_t i = 0; i < bodies.size(); ++i) {
      EXPECT_TRUE(inbox(1).messages[i].body == bodies[i]) << bodies[i].size();
    }
    EXPECT_TRUE(until([&] { return all_finished(sends); }));
  });
}

TEST_P(TransportContract, ExposedBodiesStayUntilReceived) {
  with_ranks(2, [&] {
    inbox(1).policy = Inbox::Policy::kKeep;
    std::vector<std::vector<std::byte>> bodies;
    std::vector<Pending> sends;
    for (uint64_t i = 0; i < 300; ++i) bodies.push_back(pattern(kSizes[i % 7], i));
    for (const auto& body : bodies) {
      sends.push_back(start_send(at(0), 1, {}, body));
      at(1).progress();
    }
    ASSERT_TRUE(until([&] { return inbox(1).messages.size() == bodies.size(); }));
    for (size_t i = 0; i < bodies.size(); ++i) {
      Incoming& incoming = inbox(1).messages[i].incoming;
      if (incoming.body != nullptr && incoming.handle != nullptr) {
        EXPECT_TRUE(std::equal(bodies[i].begin(), bodies[i].end(), incoming.body)) << i;
      }
      at(1).discard(incoming);
    }
    EXPECT_TRUE(until([&] { return all_finished(sends); }));
  });
}

TEST_P(TransportContract, DiscardedAndDroppedMessagesEndTheirSends) {
  with_ranks(2, [&] {
    for (Inbox::Policy policy :
         {Inbox::Policy::kDiscard, Inbox::Policy::kDrop, Inbox::Policy::kKeep}) {
      inbox(1).policy = policy;
      inbox(1).messages.clear();
      std::vector<std::vector<std::byte>> bodies;
      std::vector<Pending> sends;
      for (size_t bytes : kSizes) bodies.push_back(pattern(bytes, bytes));
      for (const auto& body : bodies) sends.push_back(start_send(at(0), 1, {}, body));
      ASSERT_TRUE(until([&] { return inbox(1).messages.size() == bodies.size(); }));
      if (policy == Inbox::Policy::kKeep) {
        for (auto& message : inbox(1).messages) at(1).discard(message.incoming);
      }
      EXPECT_TRUE(until([&] { return all_finished(sends); }));
      for (const Pending& send : sends) EXPECT_TRUE(send.status().ok());
    }
  });
}

TEST_P(TransportContract, RefusesTooSmallADestinationAndEndsTheMessage) {
  with_ranks(2, [&] {
    inbox(1).policy = Inbox::Policy::kKeep;
    for (size_t bytes : {size_t{8}, size_t{5000}, size_t{1} << 20}) {
      inbox(1).messages.clear();
      const std::vector<std::byte> body = pattern(bytes, 3);
      Pending sent = start_send(at(0), 1, {}, body);
      ASSERT_TRUE(until([&] { return !inbox(1).messages.empty(); }));
      std::vector<std::byte> room(bytes - 1, std::byte{0x55});
      Ticket ticket;
      EXPECT_FALSE(at(1).receive(inbox(1).messages.front().incoming, room, &ticket).ok());
      EXPECT_EQ(room, std::vector<std::byte>(bytes - 1, std::byte{0x55}));
      EXPECT_TRUE(until([&] { return sent.finished(); }));
      EXPECT_EQ(ticket.calls, 0);
    }
  });
}

TEST_P(TransportContract, SendsToItself) {
  with_ranks(2, [&] {
    for (size_t bytes : kSizes) {
      inbox(0).messages.clear();
      std::vector<std::byte> body = pattern(bytes, 9);
      const std::vector<std::byte> original = body;
      Pending sent = start_send(at(0), 0, as_head("me"), body);
      EXPECT_TRUE(inbox(0).messages.empty()) << "announced outside progress()";
      if (sent.finished()) std::fill(body.begin(), body.end(), std::byte{0});
      ASSERT_TRUE(until([&] {
        return sent.finished() && !inbox(0).messages.empty() && inbox(0).all_received();
      }));
      EXPECT_EQ(inbox(0).messages.front().head, "me");
      EXPECT_EQ(inbox(0).messages.front().peer, 0);
      EXPECT_TRUE(inbox(0).messages.front().body == original) << bytes;
    }
  });
}

// Sends and receives from within on_message().
TEST_P(TransportContract, AnswersFromWithinTheSink) {
  with_ranks(2, [&] {
    constexpr size_t kRounds = 200;
    const std::vector<std::byte> body = pattern(20000, 1);
    std::deque<Pending> sends;
    for (size_t rank : {size_t{0}, size_t{1}}) {
      inbox(rank).on_each = [&, rank](Inbox::Message&) {
        if (inbox(rank).messages.size() > kRounds) return;
        const size_t bytes = kSizes[inbox(rank).messages.size() % std::size(kSizes)];
        sends.push_back(start_send(at(rank), 1 - static_cast<int>(rank), as_head("again"),
                                   std::span(body).first(std::min(bytes, body.size()))));
      };
    }
    sends.push_back(start_send(at(0), 1, as_head("first"), body));
    EXPECT_TRUE(until([&] { return inbox(0).messages.size() >= kRounds && all_finished(sends); }));
  });
}

TEST_P(TransportContract, ManyToOneAndBack) {
  with_ranks(6, [&] {
    const std::vector<std::byte> body = pattern(30000, 1);
    std::vector<Pending> sends;
    for (size_t from = 0; from < 6; ++from) {
      for (int to = 0; to < 6; ++to) {
        for (size_t bytes : {size_t{4}, size_t{3000}, size_t{30000}}) {
          sends.push_back(start_send(at(from), to, as_head(std::to_string(from)),
                                     std::span(body).first(bytes)));
        }
      }
    }
    ASSERT_TRUE(until([&] {
      for (auto& box : inboxes) {
        if (box->messages.size() < 18 || !box->all_received()) return false;
      }
      return true;
    }));
    for (auto& box : inboxes) {
      for (const Inbox::Message& message : box->messages) {
        EXPECT_EQ(message.head, std::to_string(message.peer));
        EXPECT_TRUE(std::equal(message.body.begin(), message.body.end(), body.begin()));
      }
    }
    EXPECT_TRUE(until([&] { return all_finished(sends); }));
  });
}

TEST_P(TransportContract, BecomesFlushed) {
  with_ranks(3, [&] {
    const std::vector<std::byte> body = pattern(100000, 1);
    std::vector<Pending> sends;
    sends.push_back(start_send(at(0), 1, {}, body));
    sends.push_back(start_send(at(1), 2, {}, std::span(body).first(10)));
    EXPECT_TRUE(until([&] { return at(0).flushed() && at(1).flushed() && at(2).flushed(); }));
    ASSERT_TRUE(until([&] { return !inbox(2).messages.empty(); }));
    EXPECT_EQ(inbox(1).messages.size(), 1u);
    EXPECT_TRUE(until([&] { return all_finished(sends) && inbox(1).all_received(); }));
  });
}

TEST_P(TransportContract, WaitReturnsEarlyWhenSomethingComes) {
  with_ranks(2, [&] {
    const auto start = std::chrono::steady_clock::now();
    at(0).wait(std::chrono::milliseconds(0));
    at(0).wait(std::chrono::milliseconds(20));
    at(0).wait(std::chrono::hours(10));
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
    Pending sent = start_send(at(0), 0, {}, {});
    at(0).wait(std::chrono::hours(10));
    EXPECT_TRUE(until([&] { return !inbox(0).messages.empty() && sent.finished(); }));
  });
}

TEST_P(TransportContract, RefusesNonsense) {
  with_ranks(2, [&] {
    const std::string long_head(kMaxHeadBytes + 1, 'x');
    Ticket ticket;
    EXPECT_FALSE(at(0).send(2, {}, {}, &ticket, {}).ok());
    EXPECT_FALSE(at(0).send(-1, {}, {}, &ticket, {}).ok());
    EXPECT_FALSE(at(0).send(1, as_head(long_head), {}, &ticket, {}).ok());
    EXPECT_EQ(ticket.calls, 0);
  });
}

// Memory that process_vm_readv(2) can't read though the sender can, as that of a device.
TEST_P(TransportContract, SendsWhatOnlyTheSenderCanRead) {
  with_ranks(2, [&] {
    constexpr size_t kBytes = 1 << 20;
    void* memory =
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    const auto right = pattern(kBytes, 4);
    std::memcpy(memory, right.data(), kBytes);
    const std::span body(static_cast<const std::byte*>(memory), kBytes);
    inbox(1).policy = Inbox::Policy::kKeep;
    Pending sent = start_send(at(0), 1, as_head("x"), body);
    ASSERT_TRUE(until([&] { return !inbox(1).messages.empty(); }));
    if (std::string(kKinds[GetParam()].name).ends_with("peer_read")) {
      mprotect(memory, kBytes, PROT_NONE);
      inbox(1).take(inbox(1).messages.front());
      mprotect(memory, kBytes, PROT_READ);
      EXPECT_FALSE(inbox(1).messages.front().receive.finished());
    } else {
      inbox(1).take(inbox(1).messages.front());
    }
    ASSERT_TRUE(until([&] { return sent.finished() && inbox(1).all_received(); }));
    EXPECT_TRUE(inbox(1).messages.front().body == right);
    munmap(memory, kBytes);
  });
}

// Where processes share memory long bodies are copied aside while there is room, so that nobody has to receive them for
// their sends to be over, and the room is used again.
TEST_P(TransportContract, BodiesOfSendsThatAreOverAreNotNeeded) {
  with_ranks(2, [&] {
    const bool stages = std::string(kKinds[GetParam()].name).starts_with("ucx_queues");
    std::vector<std::vector<std::byte>> bodies;
    for (uint64_t i = 0; i < 100; ++i) bodies.push_back(pattern(kQueueBodyBytes + 1 + i * 1009, i));
    size_t at_once[3] = {};
    for (size_t& count : at_once) {
      inbox(1).messages.clear();
      inbox(1).policy = Inbox::Policy::kKeep;
      std::vector<Pending> sends;
      for (auto& body : bodies) {
        const auto original = body;
        sends.push_back(start_send(at(0), 1, {}, body));
        if (!sends.back().finished()) continue;
        ++count;
        std::fill(body.begin(), body.end(), std::byte{0});  // it is no longer needed
        ASSERT_TRUE(until([&] { return inbox(1).messages.size() == sends.size(); }));
        EXPECT_EQ(inbox(1).messages.back().incoming.body_bytes, original.size());
        body = original;
      }
      ASSERT_TRUE(until([&] { return inbox(1).messages.size() == bodies.size(); }));
      EXPECT_TRUE(!stages || !at(0).flushed());
      for (size_t i = bodies.size(); i-- > 0;) inbox(1).take(inbox(1).messages[i]);
      ASSERT_TRUE(until([&] { return inbox(1).all_received() && all_finished(sends); }));
      for (size_t i = 0; i < bodies.size(); ++i) EXPECT_TRUE(inbox(1).messages[i].body == bodies[i]) << i;
      ASSERT_TRUE(until([&] { return at(0).flushed() && at(1).flushed(); }));
    }
    if (!stages) return;
    // Then the receiver reads them when it comes to it, if it may; else they wait for a place.
    const bool reads = std::string(kKinds[GetParam()].name).ends_with("peer_read");
    EXPECT_TRUE(reads ? at_once[0] == kMostStagedAhead : at_once[0] > 20u && at_once[0] < bodies.size()) << at_once[0];
    EXPECT_EQ(at_once[0], at_once[1]);
    EXPECT_EQ(at_once[0], at_once[2]);
  });
}

INSTANTIATE_TEST_SUITE_P(Kinds, TransportContract, ::testing::Range<size_t>(0, std::size(kKinds)),
                         [](const auto& info) { return kKinds[info.param].name; });

}  // namespace
}  // namespace uzip
