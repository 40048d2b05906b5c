// The parts of src/ucx that need no UCX endpoint: environment, connection data, reading memory,
// pools, order.
#include "ucx/arrival_order.hpp"
#include "ucx/operation.hpp"
#include "ucx/peer_memory.hpp"
#include "ucx/peer_watch.hpp"
#include "ucx/ucx_environment.hpp"
#include "ucx/ucx_handles.hpp"
#include "ucx/wireup.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace uzip {
namespace {

// ---- UcxEnvironment ----

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "(none)" : value;
}

TEST(UcxEnvironment, LeavesEverythingAsItWas) {
  setenv("UCX_A_TEST", "user", 1);
  unsetenv("UCX_B_TEST");
  setenv("UZIP_UCX_C_TEST", "ours", 1);
  setenv("UCX_C_TEST", "theirs", 1);
  setenv("UCX_D_TEST", "", 1);
  {
    UcxEnvironment environment;
    environment.adopt("C_TEST");
    environment.set_default("A_TEST", "default");
    environment.set_default("B_TEST", "default");
    environment.set_default("C_TEST", "default");
    environment.set_default("D_TEST", "default");
    EXPECT_EQ(variable("UCX_A_TEST"), "user");
    EXPECT_EQ(variable("UCX_B_TEST"), "default");
    EXPECT_EQ(variable("UCX_C_TEST"), "ours");
    EXPECT_EQ(variable("UCX_D_TEST"), "");
    EXPECT_EQ(environment.value("B_TEST").value_or("(none)"), "default");
    EXPECT_EQ(environment.value("NO_SUCH_TEST"), std::nullopt);
    const auto& names = environment.names();
    EXPECT_NE(std::find(names.begin(), names.end(), "C_TEST"), names.end());
    environment.adopt("NO_SUCH_TEST");
    EXPECT_EQ(variable("UCX_NO_SUCH_TEST"), "(none)");
  }
  EXPECT_EQ(variable("UCX_A_TEST"), "user");
  EXPECT_EQ(variable("UCX_B_TEST"), "(none)");
  EXPECT_EQ(variable("UCX_C_TEST"), "theirs");
  EXPECT_EQ(variable("UCX_D_TEST"), "");
  for (const char* name : {"UCX_A_TEST", "UZIP_UCX_C_TEST", "UCX_C_TEST", "UCX_D_TEST"}) {
    unsetenv(name);
  }
}

TEST(UcxEnvironment, KnowsWhichTransportsAreAllowed) {
  struct {
    const char* tls;
    bool posix, tcp;
  } const cases[] = {
      {"", true, true},          {"all", true, true},
      {"tcp,self", false, true}, {"shm", true, false},
      {"sm,self", true, false},  {"posix", true, false},
      {"^posix", false, true},   {"^shm,tcp", false, false},
      {"^tcp", true, false},     {"\\posix,tcp", true, true},
      {"sysv", false, false},    {",", false, false},
      {"^", true, true},         {"mm,rc,tcp", true, true},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(tls_allows(c.tls, "posix"), c.posix) << c.tls;
    EXPECT_EQ(tls_allows(c.tls, "tcp"), c.tcp) << c.tls;
  }
}

// ---- Wire-up ----

WireupRecord sample_record() {
  WireupRecord record;
  record.host = host_identity();
  record.memory = {getpid(), 0x123456789abc, make_memory_token()};
  record.inbox = {5, 17};
  record.peer_read = true;
  record.shared_memory = false;
  record.address = std::vector<std::byte>(200, std::byte{7});
  return record;
}

TEST(Wireup, ComesBackAsItWas) {
  const WireupRecord record = sample_record();
  const auto back = unpack_wireup(pack_wireup(record), 0);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->host, record.host);
  EXPECT_EQ(back->memory.pid, record.memory.pid);
  EXPECT_EQ(back->memory.token_address, record.memory.token_address);
  EXPECT_EQ(back->memory.token, record.memory.token);
  EXPECT_EQ(back->inbox.descriptor, 5);
  EXPECT_EQ(back->inbox.queues, 17u);
  EXPECT_EQ(back->peer_read, true);
  EXPECT_EQ(back->shared_memory, false);
  EXPECT_EQ(back->address, record.address);
}

TEST(Wireup, RefusesWhatIsDamaged) {
  const std::vector<std::byte> bytes = pack_wireup(sample_record());
  for (size_t length = 0; length < bytes.size(); ++length) {
    const auto back = unpack_wireup(std::span(bytes).first(length), 5);
    ASSERT_FALSE(back.ok()) << length;
    EXPECT_NE(back.status().message().find("process 5"), std::string::npos);
  }
  std::vector<std::byte> longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(unpack_wireup(longer, 0).ok());
  for (size_t i = 0; i < 8; ++i) {  // magic and version
    std::vector<std::byte> damaged = bytes;
    damaged[i] ^= std::byte{0x10};
    EXPECT_FALSE(unpack_wireup(damaged, 0).ok()) << i;
  }
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {  // whatever it is, no harm
    std::vector<std::byte> damaged = bytes;
    damaged[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
    const auto back = unpack_wireup(damaged, 0);
    EXPECT_TRUE(!back.ok() || back->address.size() == 200u);
  }
}

TEST(Wireup, HostIdentityIsStable) { EXPECT_EQ(host_identity(), host_identity()); }

// ---- PeerMemory and PeerWatch ----

PeerMemory describe(const MemoryToken& token, pid_t pid) {
  return {pid, reinterpret_cast<uint64_t>(token.data()), token};
}

TEST(PeerMemory, ReadsWhatIsThere) {
  const MemoryToken token = make_memory_token();
  const PeerMemory self = describe(token, getpid());
  const std::string text = "some bytes of this process";
  std::string copy(text.size(), ' ');
  const auto address = reinterpret_cast<uint64_t>(text.data());
  EXPECT_EQ(read_peer_memory(self, address, std::as_writable_bytes(std::span(copy))),
            ReadOutcome::kDone);
  EXPECT_EQ(copy, text);
  EXPECT_EQ(read_peer_memory(self, address, {}), ReadOutcome::kDone);
  EXPECT_NE(make_memory_token(), make_memory_token());
}

TEST(PeerMemory, FindsOutThatItIsSomebodyElse) {
  const MemoryToken token = make_memory_token();
  std::byte copy[8];
  const auto address = reinterpret_cast<uint64_t>(token.data());
  PeerMemory other = describe(token, getpid());
  other.token[5] ^= std::byte{1};
  EXPECT_EQ(read_peer_memory(other, address, copy), ReadOutcome::kGone);
  other = describe(token, -1);
  EXPECT_EQ(read_peer_memory(other, address, copy), ReadOutcome::kForbidden);
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(read_peer_memory(describe(token, child), address, copy), ReadOutcome::kGone);
}

TEST(PeerMemory, ReportsRangesThatCannotBeRead) {
  const MemoryToken token = make_memory_token();
  const PeerMemory self = describe(token, getpid());
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* memory =
      mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  mprotect(static_cast<std::byte*>(memory) + page, page, PROT_NONE);
  std::vector<std::byte> copy(2 * page);
  const auto address = reinterpret_cast<uint64_t>(memory);
  EXPECT_EQ(read_peer_memory(self, address, std::span(copy).first(page)), ReadOutcome::kDone);
  EXPECT_EQ(read_peer_memory(self, address, copy), ReadOutcome::kUnreadable);
  EXPECT_EQ(read_peer_memory(self, 16, copy), ReadOutcome::kUnreadable);
  EXPECT_EQ(read_peer_memory(self, UINT64_MAX - 10, copy), ReadOutcome::kUnreadable);
  munmap(memory, 2 * page);
}

TEST(PeerReader, ReadsAsOftenAsWanted) {
  const MemoryToken token = make_memory_token();
  const PeerMemory self = describe(token, getpid());
  PeerReader reader;
  std::vector<int> values(5000), copy(5000);
  const auto address = reinterpret_cast<uint64_t>(values.data());
  for (int turn = 0; turn < 100; ++turn) {
    std::fill(values.begin(), values.end(), turn);
    ASSERT_EQ(reader.read(self, address, std::as_writable_bytes(std::span(copy))), ReadOutcome::kDone);
    ASSERT_EQ(copy, values);
    // Right after a read that worked, too.
    ASSERT_EQ(reader.read(self, 16, std::as_writable_bytes(std::span(copy))), ReadOutcome::kUnreadable);
    ASSERT_EQ(reader.read(self, address, {}), ReadOutcome::kDone);
  }
}

TEST(PeerReader, LooksAgainWhoItIs) {
  MemoryToken token = make_memory_token();
  const PeerMemory self = describe(token, getpid());
  PeerReader reader;
  std::byte copy[8];
  const auto address = reinterpret_cast<uint64_t>(token.data());
  ASSERT_EQ(reader.read(self, address, copy), ReadOutcome::kDone);
  token[5] ^= std::byte{1};
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(reader.read(self, address, copy), ReadOutcome::kGone);
  EXPECT_EQ(reader.read(self, address, copy), ReadOutcome::kGone);
  token[5] ^= std::byte{1};
  EXPECT_EQ(reader.read(self, address, copy), ReadOutcome::kDone);
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(PeerReader().read(describe(token, child), address, copy), ReadOutcome::kGone);
  EXPECT_EQ(reader.read(describe(token, child), address, copy), ReadOutcome::kGone);
}

TEST(PeerWatch, TellsOfAnEndOnce) {
  const MemoryToken token = make_memory_token();
  PeerWatch watch;
  EXPECT_TRUE(watch.ended().empty());
  const pid_t child = fork();  // has a copy of the token at the same address
  if (child == 0) {
    alarm(60);
    for (;;) pause();
  }
  ASSERT_EQ(watch.add(7, describe(token, child)), ReadOutcome::kDone);
  EXPECT_TRUE(watch.ended().empty());
  const pid_t heir = fork();  // keeps copies of the descriptors open
  if (heir == 0) {
    alarm(60);
    for (;;) pause();
  }
  kill(child, SIGKILL);
  pollfd ready = {watch.descriptor(), POLLIN, 0};
  EXPECT_EQ(poll(&ready, 1, 5000), 1);
  EXPECT_EQ(watch.ended(), std::vector<int>{7});  // not collected yet, and dead all the same
  EXPECT_TRUE(watch.ended().empty());
  kill(heir, SIGKILL);
  waitpid(child, nullptr, 0);
  waitpid(heir, nullptr, 0);
}

TEST(PeerWatch, WatchesOnlyWhoItIs) {
  const MemoryToken token = make_memory_token();
  PeerMemory stranger = describe(token, getpid());
  stranger.token[0] ^= std::byte{1};
  PeerWatch watch;
  EXPECT_EQ(watch.add(1, stranger), ReadOutcome::kGone);
  EXPECT_TRUE(watch.ended().empty());
}

// ---- Pools and order ----

TEST(OperationPool, FindsOnlyWhatIsMeant) {
  OperationPool pool;
  Operation* first = pool.take(Operation::Kind::kOffer, 3, nullptr);
  Operation* second = pool.take(Operation::Kind::kSend, 4, nullptr);
  const OperationId id = first->id;
  EXPECT_EQ(pool.find(id), first);
  EXPECT_EQ(pool.find(second->id), second);
  EXPECT_EQ(pool.find({id.slot, id.generation + 1}), nullptr);
  EXPECT_EQ(pool.find({12345, 0}), nullptr);
  pool.give(first);
  EXPECT_EQ(pool.find(id), nullptr);
  Operation* again = pool.take(Operation::Kind::kOffer, 3, nullptr);
  EXPECT_EQ(again, first);
  EXPECT_EQ(pool.find(id), nullptr);
  EXPECT_EQ(pool.find(again->id), again);
}

TEST(ArrivalOrder, PutsMessagesInOrder) {
  using Place = ArrivalOrder::Place;
  const uint32_t start = UINT32_MAX - 1;  // numbers wrap
  ArrivalOrder order(start);
  Arrival arrivals[4];
  for (uint32_t i = 0; i < 4; ++i) arrivals[i].sequence = start + i;
  EXPECT_EQ(order.place_of(start + 3), Place::kEarly);
  order.keep(&arrivals[3]);
  EXPECT_EQ(order.place_of(start + 1), Place::kEarly);
  order.keep(&arrivals[1]);
  EXPECT_EQ(order.take_next(), nullptr);
  EXPECT_EQ(order.place_of(start), Place::kNext);
  EXPECT_EQ(order.take_next(), &arrivals[1]);
  EXPECT_EQ(order.take_next(), nullptr);
  EXPECT_EQ(order.place_of(start + 1), Place::kPast);
  EXPECT_EQ(order.place_of(start + 2), Place::kNext);
  EXPECT_EQ(order.take_next(), &arrivals[3]);
  EXPECT_FALSE(order.anything_early());
  EXPECT_EQ(order.place_of(start + 4), Place::kNext);
}

// ---- Statuses ----

TEST(UcxStatus, SaysWhatFailedAndWhatToDo) {
  const Status status = ucx_error(UCS_ERR_NO_MEMORY, "connecting");
  EXPECT_EQ(status.code(), UZIP_ERR_NO_MEMORY);
  EXPECT_NE(status.message().find("connecting failed: "), std::string::npos);
  EXPECT_NE(status.message().find(ucs_status_string(UCS_ERR_NO_MEMORY)), std::string::npos);
  EXPECT_EQ(status_code_of(UCS_ERR_CONNECTION_RESET), UZIP_ERR_PEER);
  EXPECT_EQ(status_code_of(UCS_ERR_ENDPOINT_TIMEOUT), UZIP_ERR_PEER);
  EXPECT_EQ(status_code_of(UCS_ERR_NO_DEVICE), UZIP_ERR_UNSUPPORTED);
  EXPECT_EQ(status_code_of(UCS_ERR_IO_ERROR), UZIP_ERR_TRANSPORT);
}

}  // namespace
}  // namespace uzip
