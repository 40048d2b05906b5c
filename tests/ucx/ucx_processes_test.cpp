// UcxTransport between real processes: sizes, many ranks on few cores, sleeping, fall-backs,
// leftovers.
#include "base/cpu.hpp"
#include "ucx/child.hpp"
#include "ucx/local_stage.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <set>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace uzip {
namespace {

class UcxProcesses : public ::testing::TestWithParam<size_t> {
 protected:
  const Way& way() const { return kWays[GetParam()]; }
};

TEST_P(UcxProcesses, ExchangesAllSizes) {
  constexpr size_t kSizes[] = {0, 1, 8, 1024, 8192, 65536, 1 << 20, (size_t{64} << 20) + 1};
  ProcessGroup group(2);
  group.start([&](int rank, const auto& allgather) {
    Child child(way(), rank, 2, allgather);
    CHILD_CHECK(child.ok());
    CHILD_CHECK(child.transport->info().all_same_host == (std::string(way().tls) != "tcp"));
    CHILD_CHECK(child.transport->info().peer_reads == way().peer_read);
    std::vector<std::vector<std::byte>> mine, theirs;
    for (size_t bytes : kSizes) {
      mine.push_back(pattern(bytes, static_cast<uint64_t>(rank)));
      theirs.push_back(pattern(bytes, static_cast<uint64_t>(1 - rank)));
    }
    std::vector<Pending> sends;
    for (const auto& body : mine) {
      sends.push_back(start_send(*child.transport, 1 - rank, as_head("x"), body));
    }
    CHILD_CHECK(child.until([&] {
      return child.inbox->messages.size() == mine.size() && child.inbox->all_received() &&
             all_finished(sends);
    }));
    for (size_t i = 0; i < mine.size(); ++i) {
      CHILD_CHECK(sends[i].status().ok());
      CHILD_CHECK(child.inbox->messages[i].body == theirs[i]);
    }
    CHILD_CHECK(child.leave(2));
    return 0;
  });
  EXPECT_EQ(group.wait_for_all(), "");
}

// A body that was copied to the stage is sent at once; one that the receiver reads is not before it was read.
TEST(UcxProcessesOfOneHost, ReadWhatIsMovedWhereTheyMay) {
  struct Case {
    size_t bytes;
    SendHints hints;
    bool peer_read, staged;
  };
  const size_t one = most_staged_moves(false), several = most_staged_moves(true);
  const Case cases[] = {{one + 1, {BodyUse::kAny}, true, true},       {one, {BodyUse::kMoved}, true, true},
                        {one + 1, {BodyUse::kMoved}, true, false},    {one + 1, {BodyUse::kMoved}, false, true},
                        {several, {BodyUse::kMoved, 2}, true, true},  {several, {BodyUse::kMoved, 0}, true, true},
                        {several + 1, {BodyUse::kMoved, 2}, true, false}};
  for (const Case& how : cases) {
    ProcessGroup group(2);
    group.start([&how](int rank, const auto& allgather) {
      Child child({"", "shm", how.peer_read, true}, rank, 2, allgather);
      CHILD_CHECK(child.ok());
      const auto body = pattern(how.bytes, static_cast<uint64_t>(rank));
      Pending sent = start_send(*child.transport, 1 - rank, as_head("x"), body, how.hints);
      CHILD_CHECK(sent.finished() == how.staged);
      CHILD_CHECK(child.until([&] { return child.count("x") == 1 && child.inbox->all_received() && sent.finished(); }));
      CHILD_CHECK(child.inbox->messages[0].body == pattern(how.bytes, static_cast<uint64_t>(1 - rank)));
      CHILD_CHECK(child.leave(2));
      return 0;
    });
    EXPECT_EQ(group.wait_for_all(), "") << how.bytes << (how.peer_read ? " with" : " without") << " peer reads";
  }
}

// Whatever the way of a body, the place for a second copy has all of it or nothing, as the transport says.
TEST_P(UcxProcesses, MakeSecondCopiesAsTheySay) {
  ProcessGroup group(2);
  group.start([&](int rank, const auto& allgather) {
    Child child(way(), rank, 2, allgather);
    CHILD_CHECK(child.ok());
    size_t sent = 0;
    for (size_t bytes : {size_t{0}, size_t{40}, size_t{8192}, size_t{16384}, size_t{16385}, size_t{100000}, size_t{512} << 10,
                         (size_t{512} << 10) + 1, size_t{3} << 20})
      for (const BodyUse use : {BodyUse::kAny, BodyUse::kMoved})
        for (const bool streams : {false, true})
          for (const int peer : {1 - rank, rank}) {
            const auto body = pattern(bytes, 3 * bytes + streams);
            const std::vector<std::byte> untouched(bytes + 1, std::byte{0xee});
            auto other = untouched;
            SecondCopy second{other.data(), streams};
            std::vector<Pending> sends;
            sends.push_back(start_send(*child.transport, peer, as_head("x"), body, {use, 1, &second}));
            CHILD_CHECK(!second.made || sends[0].finished());
            auto expected = untouched;
            if (second.made) std::copy(body.begin(), body.end(), expected.begin());
            CHILD_CHECK(other == expected);
            const bool staged = way().local_queues && peer != rank && bytes > 16384 && bytes <= size_t{512} << 10 &&
                                (use == BodyUse::kAny || bytes <= most_staged_moves(false));
            CHILD_CHECK(second.made == (staged && cpu_vendor() != CpuVendor::kAmd));
            ++sent;
            CHILD_CHECK(child.until([&] { return child.count("x") >= sent && child.inbox->all_received() && all_finished(sends); }));
            CHILD_CHECK(other == expected);
          }
    for (const Inbox::Message& message : child.inbox->messages) {
      const size_t bytes = message.body.size();
      CHILD_CHECK(message.head != "x" || message.body == pattern(bytes, 3 * bytes) || message.body == pattern(bytes, 3 * bytes + 1));
    }
    CHILD_CHECK(child.leave(2));
    return 0;
  });
  EXPECT_EQ(group.wait_for_all(), "");
}

// One copy for all receivers of a body; when they have given it back, or the body has changed, another one. The sender may be
// the first of them.
TEST_P(UcxProcesses, SeveralReceiversOfABodyGetWhatItWas) {
  constexpr int kRanks = 4;
  constexpr size_t kRounds = 12;
  ProcessGroup group(kRanks);
  group.start([&](int rank, const auto& allgather) {
    Child child(way(), rank, kRanks, allgather);
    CHILD_CHECK(child.ok());
    const auto body_of = [](size_t round) { return pattern(50000 + 9000 * (round / 4), round); };
    std::vector<std::byte> body(100000);  // always in the same place
    std::vector<Pending> sends;
    for (size_t round = 0; rank == 0 && round < kRounds; ++round) {
      CHILD_CHECK(child.until([&] { return all_finished(sends); }));
      const auto now = body_of(round);
      std::copy(now.begin(), now.end(), body.begin());
      const int first = round % 2 ? 0 : 1;
      for (int peer = first; peer < kRanks; ++peer)
        sends.push_back(start_send(*child.transport, peer, as_head("x"), std::span(body).first(now.size()),
                                   {BodyUse::kAny, peer == first ? static_cast<uint32_t>(kRanks - first) : 0}));
    }
    const size_t expected = rank == 0 ? kRounds / 2 : kRounds;
    CHILD_CHECK(child.until([&] { return child.count("x") == expected && child.inbox->all_received() && all_finished(sends); }));
    size_t round = rank == 0 ? 1 : 0;
    for (const Inbox::Message& message : child.inbox->messages) {
      if (message.head != "x") continue;  // others may be leaving already
      CHILD_CHECK(message.body == body_of(round));
      round += rank == 0 ? 2 : 1;
    }
    CHILD_CHECK(child.leave(kRanks));
    return 0;
  });
  EXPECT_EQ(group.wait_for_all(), "");
}

TEST_P(UcxProcesses, EightProcessesOnFewCores) {
  constexpr int kRanks = 8;
  constexpr int kRounds = 20;
  ProcessGroup group(kRanks);
  group.start(
      [&](int rank, const auto& allgather) {
        Child child(way(), rank, kRanks, allgather);
        CHILD_CHECK(child.ok());
        const std::vector<std::byte> body = pattern(100000, static_cast<uint64_t>(rank));
        for (int round = 0; round < kRounds; ++round) {
          std::vector<Pending> sends;
          for (int step = 1; step < kRanks; ++step) {
            for (size_t bytes : {size_t{8}, size_t{2000}, size_t{100000}}) {
              sends.push_back(start_send(*child.transport, (rank + step) % kRanks, as_head("x"),
                                         std::span(body).first(bytes)));
            }
          }
          const size_t expected = static_cast<size_t>(round + 1) * (kRanks - 1) * 3;
          CHILD_CHECK(child.until([&] {
            return child.inbox->messages.size() >= expected && child.inbox->all_received() &&
                   all_finished(sends);
          }));
        }
        for (const Inbox::Message& message : child.inbox->messages) {
          const auto right = pattern(100000, static_cast<uint64_t>(message.peer));
          if (message.head != "x") continue;
          CHILD_CHECK(std::equal(message.body.begin(), message.body.end(), right.begin()));
        }
        CHILD_CHECK(child.leave(kRanks));
        return 0;
      },
      std::chrono::seconds(60));
  EXPECT_EQ(group.wait_for_all(), "");
}

double cpu_seconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

TEST_P(UcxProcesses, WaitSleepsUntilSomethingComes) {
  ProcessGroup group(2);
  group.start([&](int rank, const auto& allgather) {
    Child child(way(), rank, 2, allgather);
    CHILD_CHECK(child.ok());
    CHILD_CHECK(child.leave(2));  // connected, and nothing under way
    if (rank == 0) {
      const double before = cpu_seconds();
      const auto start = std::chrono::steady_clock::now();
      const size_t seen = child.inbox->messages.size();
      int turns = 0;
      while (child.inbox->messages.size() == seen) {
        if (!child.transport->progress()) child.transport->wait(std::chrono::milliseconds(100));
        ++turns;
      }
      const std::chrono::duration<double> slept = std::chrono::steady_clock::now() - start;
      CHILD_CHECK(slept.count() > 0.5);
      CHILD_CHECK(cpu_seconds() - before < 0.1);
      CHILD_CHECK(turns < 500);
      const auto sent_at = std::chrono::steady_clock::time_point(
          std::chrono::steady_clock::duration(group.shared(0)));
      CHILD_CHECK(std::chrono::steady_clock::now() - sent_at < std::chrono::milliseconds(90));
    } else {
      usleep(800000);
      group.shared(0) =
          static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
      Pending sent = start_send(*child.transport, 0, as_head("x"), {});
      CHILD_CHECK(child.until([&] { return sent.finished(); }));
    }
    CHILD_CHECK(child.leave(2));
    return 0;
  });
  EXPECT_EQ(group.wait_for_all(), "");
}

// The other process's id and token as they are when it lives in another pid namespace, or where the
// kernel forbids to read it.
OutOfBandAllgather with_wrong_token(const OutOfBandAllgather& allgather) {
  return [&allgather](std::span<const std::byte> mine, auto* all) {
    auto record = unpack_wireup(mine, 0);
    if (!record.ok()) return allgather(mine, all);  // the second exchange
    record->memory.token[3] ^= std::byte{1};
    return allgather(pack_wireup(*record), all);
  };
}

TEST_P(UcxProcesses, SendsThroughUcxWhatCannotBeRead) {
  ProcessGroup group(2);
  group.start([&](int rank, const auto& allgather) {
    Child child(way(), rank, 2, with_wrong_token(allgather));
    CHILD_CHECK(child.ok());
    for (int round = 0; round < 3; ++round) {
      const auto mine = pattern(300000, static_cast<uint64_t>(rank + round));
      const auto theirs = pattern(300000, static_cast<uint64_t>(1 - rank + round));
      const std::string head = "round " + std::to_string(round);
      Pending sent = start_send(*child.transport, 1 - rank, as_head(head), mine);
      CHILD_CHECK(child.until([&] {
        return sent.finished() && child.count(head) == 1 && child.inbox->all_received();
      }));
      CHILD_CHECK(sent.status().ok());
      for (const Inbox::Message& message : child.inbox->messages) {
        if (message.head != head) continue;
        CHILD_CHECK(message.receive.status().ok());
        CHILD_CHECK(message.body == theirs);
      }
      CHILD_CHECK(child.leave(2));
    }
    return 0;
  });
  EXPECT_EQ(group.wait_for_all(), "");
}

// From now on the kernel answers process_vm_readv(2) of this process with EPERM, as in a container.
bool forbid_reading_others() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter = {static_cast<unsigned short>(std::size(program)), program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

// Reading is forbidden to rank 1 from the start, and to rank 0 in the middle.
TEST_P(UcxProcesses, GoesOnWhenReadingIsForbidden) {
  ProcessGroup group(2);
  group.start([&](int rank, const auto& allgather) {
    if (rank == 1) CHILD_CHECK(forbid_reading_others());
    Child child(way(), rank, 2, allgather);
    CHILD_CHECK(child.ok());
    CHILD_CHECK(!child.transport->info().peer_reads);  // on both
    for (int round = 0; round < 4; ++round) {
      if (rank == 0 && round == 2) CHILD_CHECK(forbid_reading_others());
      const std::string head = "round " + std::to_string(round);
      const auto mine = pattern(300000, static_cast<uint64_t>(rank + round));
      const auto theirs = pattern(300000, static_cast<uint64_t>(1 - rank + round));
      Pending sent = start_send(*child.transport, 1 - rank, as_head(head), mine);
      CHILD_CHECK(child.until([&] {
        return sent.finished() && child.count(head) == 1 && child.inbox->all_received();
      }));
      for (const Inbox::Message& message : child.inbox->messages) {
        CHILD_CHECK(message.head != head || message.body == theirs);
      }
    }
    CHILD_CHECK(child.leave(2));
    return 0;
  });
  EXPECT_EQ(group.wait_for_all(), "");
}

TEST_P(UcxProcesses, OneThatCannotStartFailsAll) {
  ProcessGroup group(3);
  group.start([&](int rank, const auto& allgather) {
    Way mine = way();
    if (rank == 1) mine.tls = "no_such_transport";
    Config config;
    config.ucx_tls = mine.tls;
    const auto made = UcxTransport::create(config, rank, 3, allgather);
    CHILD_CHECK(!made.ok());
    CHILD_CHECK(rank == 1 || made.status().message().find("process 1") != std::string::npos);
    return 0;
  });
  EXPECT_EQ(group.wait_for_all(), "");
}

// The setting holds for what a process sends as well as for what it gets; the others keep their queues.
TEST(LocalQueues, OneProcessMayDoWithoutThem) {
  constexpr int kRanks = 3;
  ProcessGroup group(kRanks);
  group.start([](int rank, const auto& allgather) {
    Child child({"mixed", "shm", false, rank != 1}, rank, kRanks, allgather);
    CHILD_CHECK(child.ok());
    const bool queues = child.transport->info().description.find("local queues") != std::string::npos;
    CHILD_CHECK(queues == (rank != 1));
    constexpr size_t kMessages = 200;
    std::vector<std::vector<std::byte>> bodies;
    for (size_t i = 0; i < kMessages; ++i) bodies.push_back(pattern(i * 7 % 1100, i));
    std::deque<Pending> sends;
    for (const auto& body : bodies) {
      for (int step = 1; step < kRanks; ++step)
        sends.push_back(start_send(*child.transport, (rank + step) % kRanks, as_head("x"), body));
    }
    CHILD_CHECK(child.until([&] {
      return child.count("x") == kMessages * (kRanks - 1) && child.inbox->all_received() && all_finished(sends);
    }));
    size_t next[kRanks] = {};
    for (const Inbox::Message& message : child.inbox->messages) {
      if (message.head == "x") CHILD_CHECK(message.body == bodies[next[message.peer]++]);
    }
    CHILD_CHECK(child.leave(kRanks));
    return 0;
  });
  EXPECT_EQ(group.wait_for_all(), "");
}

std::set<std::string> posix_segments() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    names.insert(entry.path());
  }
  return names;
}

// Of those that one of `creators` made.
std::set<std::string> system_v_segments(const std::set<pid_t>& creators) {
  std::set<std::string> ids;
  std::ifstream segments("/proc/sysvipc/shm");
  for (std::string line; std::getline(segments, line);) {
    std::istringstream fields(line);
    std::string key, id, mode, size;
    pid_t creator = 0;
    if (fields >> key >> id >> mode >> size >> creator && creators.count(creator) > 0)
      ids.insert(id);
  }
  return ids;
}

TEST_P(UcxProcesses, KilledProcessesLeaveNothingBehind) {
  const std::set<std::string> before = posix_segments();
  std::set<pid_t> pids;
  for (int round = 0; round < 20; ++round) {
    ProcessGroup group(2);
    group.start([&](int rank, const auto& allgather) {
      Child child(way(), rank, 2, allgather);
      CHILD_CHECK(child.ok());
      const auto body = pattern(50000, 1);
      std::deque<Pending> sends;
      group.shared(static_cast<size_t>(rank)) = 1;
      child.inbox->on_each = [&](Inbox::Message&) {
        sends.push_back(start_send(*child.transport, 1 - rank, as_head("x"), body));
      };
      sends.push_back(start_send(*child.transport, 1 - rank, as_head("x"), body));
      child.until([] { return false; });
      return 1;
    });
    pids.insert({group.pid(0), group.pid(1)});
    while (group.shared(0) == 0 || group.shared(1) == 0) usleep(1000);
    usleep(static_cast<useconds_t>(round) * 700);
  }  // kills them
  EXPECT_EQ(system_v_segments(pids), std::set<std::string>());
  // Other programs use /dev/shm as well, so what is new may only be there for a while.
  std::set<std::string> left;
  for (int attempt = 0; attempt < 50; ++attempt) {
    left = posix_segments();
    for (const std::string& name : before) left.erase(name);
    if (left.empty()) break;
    usleep(100000);
  }
  EXPECT_EQ(left, std::set<std::string>());
}

INSTANTIATE_TEST_SUITE_P(Ways, UcxProcesses, ::testing::Range<size_t>(0, std::size(kWays)),
                         [](const auto& info) { return kWays[info.param].name; });

}  // namespace
}  // namespace uzip
