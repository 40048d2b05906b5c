// UcxTransport when a process dies: those that have to do with it get an error soon, once, and can
// go on with others.
#include "ucx/child.hpp"

#include <gtest/gtest.h>

#include <unistd.h>
#include <csignal>

namespace uzip {
namespace {

constexpr auto kSoon = std::chrono::milliseconds(3000);

enum class Death { kKilled, kExits };

/// How the survivors can notice.
enum class Notice {
  kPidfd,  ///< as it is
  kUcx,    ///< as if the dead process had lived in another pid namespace: UCX must find out
};

struct Case {
  size_t way;
  Death death;
  Notice notice;
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (size_t way = 0; way < std::size(kWays); ++way) {
    for (Death death : {Death::kKilled, Death::kExits}) {
      for (Notice notice : {Notice::kPidfd, Notice::kUcx}) cases.push_back({way, death, notice});
    }
  }
  return cases;
}

class PeerFailure : public ::testing::TestWithParam<Case> {
 protected:
  const Way& way() const { return kWays[GetParam().way]; }

  OutOfBandAllgather disguised(const OutOfBandAllgather& allgather) const {
    if (GetParam().notice == Notice::kPidfd) return allgather;
    return [&allgather](std::span<const std::byte> mine, auto* all) {
      auto record = unpack_wireup(mine, 0);
      if (!record.ok()) return allgather(mine, all);  // the second exchange
      record->memory.token[3] ^= std::byte{1};
      return allgather(pack_wireup(*record), all);
    };
  }

  [[noreturn]] void die() const {
    if (GetParam().death == Death::kKilled) raise(SIGKILL);
    _exit(0);
  }

  /// The last rank is the one that dies. It is collected at once, as launchers do.
  static void collect(ProcessGroup& group, int size) {
    group.wait_for(size - 1);
    EXPECT_EQ(group.wait_for_all(), "");
  }

  /// The survivor's side: the failure is reported once, and names the process.
  static int expect_failure(Child& child, int rank, int victim) {
    CHILD_CHECK(child.until([&] { return child.inbox->failures[victim] > 0; }, kSoon));
    CHILD_CHECK(child.inbox->reasons[victim].code() == UZIP_ERR_PEER);
    const std::string name = "process " + std::to_string(victim);
    CHILD_CHECK(child.inbox->reasons[victim].message().find(name) != std::string::npos);
    Pending late = start_send(*child.transport, victim, as_head("x"), {});
    CHILD_CHECK(!late.answer.ok() && late.status().code() == UZIP_ERR_PEER);
    child.until([] { return false; }, std::chrono::milliseconds(50));
    CHILD_CHECK(child.inbox->failures[victim] == 1);
    return 0;
  }

  /// Closing takes a bounded time.
  static int expect_quick_end(Child& child, int rank) {
    const auto start = std::chrono::steady_clock::now();
    child.transport.reset();
    CHILD_CHECK(std::chrono::steady_clock::now() - start < std::chrono::milliseconds(2500));
    return 0;
  }
};

TEST_P(PeerFailure, WhileNothingIsUnderWay) {
  ProcessGroup group(2);
  group.start([&](int rank, const auto& allgather) {
    Child child(way(), rank, 2, disguised(allgather));
    CHILD_CHECK(child.ok() && child.leave(2));
    if (rank == 1) die();
    CHILD_CHECK(expect_failure(child, rank, 1) == 0);
    return expect_quick_end(child, rank);
  });
  collect(group, 2);
}

TEST_P(PeerFailure, FailsSendsThatNobodyTakes) {
  ProcessGroup group(2);
  group.start([&](int rank, const auto& allgather) {
    Child child(way(), rank, 2, disguised(allgather));
    CHILD_CHECK(child.ok());
    child.inbox->policy = Inbox::Policy::kKeep;
    CHILD_CHECK(child.leave(2));
    if (rank == 1) {
      child.until([&] { return child.count("x") >= 3; });
      die();
    }
    const auto body = pattern(4 << 20, 1);
    Pending sends[3];
    for (Pending& send : sends) send = start_send(*child.transport, 1, as_head("x"), body);
    CHILD_CHECK(expect_failure(child, rank, 1) == 0);
    for (Pending& send : sends) {
      CHILD_CHECK(child.until([&] { return send.finished(); }, kSoon));
      CHILD_CHECK(send.ticket->calls == 1 && send.status().code() == UZIP_ERR_PEER);
    }
    return expect_quick_end(child, rank);
  });
  collect(group, 2);
}

// The announcement came, the sender is dead when the body is asked for.
TEST_P(PeerFailure, FailsReceivesOfBodiesThatDied) {
  ProcessGroup group(2);
  group.start([&](int rank, const auto& allgather) {
    Child child(way(), rank, 2, disguised(allgather));
    CHILD_CHECK(child.ok());
    child.inbox->policy = Inbox::Policy::kKeep;
    CHILD_CHECK(child.leave(2));
    const auto body = pattern(4 << 20, 1);
    if (rank == 1) {
      Pending send = start_send(*child.transport, 0, as_head("x"), body);
      child.until([&] { return child.count("taken") == 1; });
      die();
    }
    CHILD_CHECK(child.until([&] { return child.count("x") == 1; }));
    Inbox::Message& message = child.inbox->messages.back();
    CHILD_CHECK(message.head == "x");
    Pending taken = start_send(*child.transport, 1, as_head("taken"), {});
    CHILD_CHECK(expect_failure(child, rank, 1) == 0);
    child.inbox->take(message);
    CHILD_CHECK(message.receive.finished() && message.receive.status().code() == UZIP_ERR_PEER);
    return expect_quick_end(child, rank);
  });
  collect(group, 2);
}

// Dies in the middle of many large transfers in both directions.
TEST_P(PeerFailure, InTheMiddleOfTransfers) {
  ProcessGroup group(2);
  group.start([&](int rank, const auto& allgather) {
    Child child(way(), rank, 2, disguised(allgather));
    CHILD_CHECK(child.ok() && child.leave(2));
    const auto body = pattern(1 << 20, 1);
    std::deque<Pending> sends;
    child.inbox->on_each = [&](Inbox::Message&) {
      sends.push_back(start_send(*child.transport, 1 - rank, as_head("x"), body));
      if (rank == 1 && child.count("x") == 20) die();
    };
    for (int i = 0; i < 4; ++i) {
      sends.push_back(start_send(*child.transport, 1 - rank, as_head("x"), body));
    }
    CHILD_CHECK(
        child.until([&] { return child.inbox->failures[1] > 0; }, std::chrono::seconds(10)));
    // UCX's rendezvous with a dead peer of shared memory may never end; all else does.
    const bool by_ucx =
        std::string(way().tls) != "tcp" && (!way().peer_read || GetParam().notice == Notice::kUcx);
    CHILD_CHECK(by_ucx || child.until([&] { return all_finished(sends); }, kSoon));
    CHILD_CHECK(by_ucx || child.until([&] { return child.inbox->all_received(); }, kSoon));
    CHILD_CHECK(child.until([&] { return child.transport->flushed(); }, kSoon));
    return expect_quick_end(child, rank);
  });
  collect(group, 2);
}

TEST_P(PeerFailure, SurvivorsGoOn) {
  constexpr int kRanks = 4;
  ProcessGroup group(kRanks);
  group.start([&](int rank, const auto& allgather) {
    Child child(way(), rank, kRanks, disguised(allgather));
    CHILD_CHECK(child.ok() && child.leave(kRanks));
    if (rank == kRanks - 1) die();
    CHILD_CHECK(expect_failure(child, rank, kRanks - 1) == 0);
    const auto body = pattern(200000, 1);
    std::vector<Pending> sends;
    for (int peer = 0; peer < kRanks - 1; ++peer) {
      sends.push_back(start_send(*child.transport, peer, as_head("after"), body));
    }
    CHILD_CHECK(child.until([&] {
      return child.count("after") == kRanks - 1 && child.inbox->all_received() &&
             all_finished(sends);
    }));
    CHILD_CHECK(child.until([&] { return child.transport->flushed(); }));
    child.until([] { return false; }, std::chrono::milliseconds(100));
    return expect_quick_end(child, rank);
  });
  collect(group, kRanks);
}

INSTANTIATE_TEST_SUITE_P(Cases, PeerFailure, ::testing::ValuesIn(all_cases()),
                         [](const auto& info) {
                           return std::string(kWays[info.param.way].name) +
                                  (info.param.death == Death::kKilled ? "_killed" : "_exits") +
                                  (info.param.notice == Notice::kPidfd ? "" : "_elsewhere");
                         });

// A process that was never talked to, and whose exit status nobody has collected.
TEST(PeerFailureOnOneHost, IsNoticedWithoutAnyConnection) {
  ProcessGroup group(3);
  group.start([&](int rank, const auto& allgather) {
    Child child(kWays[0], rank, 3, allgather);
    CHILD_CHECK(child.ok());
    if (rank == 2) _exit(0);
    CHILD_CHECK(
        child.until([&] { return child.inbox->failures[2] > 0; }, std::chrono::milliseconds(1000)));
    return 0;
  });
  EXPECT_EQ(group.wait_for_all(), "");
}

// What a process sent before it ended is delivered before its end is reported.
TEST(PeerFailureOnOneHost, LastMessagesCount) {
  constexpr size_t kMessages = 40;
  ProcessGroup group(2);
  group.start([&](int rank, const auto& allgather) {
    Child child(kWays[0], rank, 2, allgather);
    CHILD_CHECK(child.ok() && child.leave(2));
    if (rank == 1) {
      std::vector<Pending> sends;
      for (size_t i = 0; i < kMessages; ++i) {
        sends.push_back(start_send(*child.transport, 0, as_head("last"), pattern(100, i)));
      }
      CHILD_CHECK(child.until([&] { return child.transport->flushed(); }));
      _exit(0);
    }
    usleep(100000);
    size_t seen_at_failure = 0;
    CHILD_CHECK(child.until([&] {
      if (child.inbox->failures[1] == 0) seen_at_failure = child.count("last");
      return child.inbox->failures[1] > 0;
    }));
    CHILD_CHECK(child.count("last") == kMessages);
    return 0;
  });
  EXPECT_EQ(group.wait_for_all(), "");
}

}  // namespace
}  // namespace uzip
