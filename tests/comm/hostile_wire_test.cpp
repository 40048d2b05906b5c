// A wire that damages, cuts, lengthens and repeats messages, and ranks that send nonsense: never a
// crash or a wrong result, and never a wait for what has been lost.
#include "comm/coll_case.hpp"
#include "comm/communicator_inspector.hpp"
#include "comm/loopback_job.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace uzip {
namespace {

using Bytes = std::vector<std::byte>;

MessageHead read_head(const Bytes& bytes) {
  MessageHead head;
  std::memcpy(&head, bytes.data(), sizeof head);
  return head;
}

void write_head(const MessageHead& head, Bytes& bytes) {
  std::memcpy(bytes.data(), &head, sizeof head);
}

bool is_control(const Bytes& head) {
  return MessageIndex::unpack(read_head(head).envelope.index).kind == MessageKind::kControl;
}

/// Changes the k-th message of a call, without counting what is sent because of it.
class Saboteur {
 public:
  using Change = std::function<void(Bytes& head, Bytes& body)>;

  void arm(int message, Change change) {
    left_ = message;
    change_ = std::move(change);
    hit_ = false;
  }
  void disarm() { left_ = -1; }
  bool hit() const { return hit_; }

  LoopbackOptions wire(uint64_t seed) {
    LoopbackOptions wire;
    wire.seed = seed;
    wire.longest_delay = 4;
    wire.reorder_senders = true;
    wire.random_modes = true;
    wire.tamper = [this](int, int, Bytes& head, Bytes& body) {
      if (is_control(head) || left_-- != 0) return;
      hit_ = true;
      change_(head, body);
    };
    return wire;
  }

 private:
  int left_ = -1;
  bool hit_ = false;
  Change change_;
};

constexpr int kRanks = 3;

uzip_options_t coded(int split) {
  uzip_options_t options = UZIP_OPTIONS_INIT;
  options.codec = "lev";
  options.split_send = split;
  options.algorithm = "ring";
  return options;
}

CollCase small_case() {
  return CollCase({UZIP_ALLREDUCE, UZIP_INT32, UZIP_SUM, std::vector<size_t>(kRanks, 30),
                   Placement::kApart, Values::kExact, 1});
}

CollCase coded_case() {
  return CollCase({UZIP_ALLGATHER, UZIP_BF16, UZIP_SUM, std::vector<size_t>(kRanks, 5000),
                   Placement::kApart, Values::kSmooth, 1});
}

/// "" if whoever succeeded has the right result, and the others one of `codes`.
std::string expect_failure(const std::vector<Status>& statuses, const CollCase& test,
                           const std::vector<StatusCode>& codes) {
  for (size_t rank = 0; rank < statuses.size(); ++rank) {
    const Status& status = statuses[rank];
    const bool allowed = std::find(codes.begin(), codes.end(), status.code()) != codes.end();
    if (!status.ok() && !allowed) return std::to_string(rank) + ": " + status.message();
    if (status.ok() && !test.check(static_cast<int>(rank)).empty()) {
      return test.check(static_cast<int>(rank));
    }
  }
  return "";
}

size_t failures(const std::vector<Status>& statuses) {
  return static_cast<size_t>(
      std::count_if(statuses.begin(), statuses.end(), [](const Status& s) { return !s.ok(); }));
}

// ---- Damage on the way ----

// With a damaged head nobody can tell what is lost, so all that involves its sender ends.
TEST(HostileWire, EveryFlippedBitOfAHeadIsFound) {
  const QuietLog quiet;
  for (size_t bit = 0; bit < sizeof(MessageHead) * 8; ++bit) {
    const int message = static_cast<int>(bit % 5);
    Saboteur saboteur;
    LoopbackJob job(kRanks, saboteur.wire(bit));
    saboteur.arm(message, [&](Bytes& head, Bytes&) { head[bit / 8] ^= std::byte{1} << bit % 8; });
    CollCase test = small_case();
    const auto statuses = job.run([&](int rank) { return test.args(rank); });
    ASSERT_TRUE(saboteur.hit());
    ASSERT_EQ(expect_failure(statuses, test, {UZIP_ERR_CORRUPT}), "") << bit;
    job.settle();
    size_t unusable = 0;
    for (int rank = 0; rank < kRanks; ++rank) unusable += !job.comm(rank).health().ok();
    ASSERT_EQ(unusable, static_cast<size_t>(kRanks)) << bit;
    const auto next = job.run([&](int rank) { return test.args(rank); });
    ASSERT_EQ(expect_all(next, UZIP_ERR_CORRUPT, "free the communicator"), "");
    ASSERT_EQ(job.fabric().unfinished(), 0u);
  }
}

TEST(HostileWire, CutAndLengthenedHeadsAreFound) {
  const QuietLog quiet;
  for (size_t bytes = 0; bytes <= kMaxHeadBytes; bytes += 4) {
    if (bytes == sizeof(MessageHead)) continue;
    Saboteur saboteur;
    LoopbackJob job(kRanks, saboteur.wire(bytes));
    saboteur.arm(1, [&](Bytes& head, Bytes&) { head.resize(bytes); });
    CollCase test = small_case();
    const auto statuses = job.run([&](int rank) { return test.args(rank); });
    ASSERT_EQ(expect_failure(statuses, test, {UZIP_ERR_CORRUPT}), "") << bytes;
    ASSERT_GT(failures(statuses), 0u);
    job.settle();
    ASSERT_EQ(job.fabric().unfinished(), 0u);
  }
}

// The first message of a communicator that a rank has not made yet.
TEST(HostileWire, DamagedHeadsOfEarlyMessagesAreFound) {
  const QuietLog quiet;
  for (size_t bit = 0; bit < sizeof(MessageHead) * 8; bit += 5) {
    Saboteur saboteur;
    LoopbackJob job(kRanks, saboteur.wire(bit));
    std::vector<CommunicatorHandle> comm = job.make_communicator();
    saboteur.arm(0, [&](Bytes& head, Bytes&) { head[bit / 8] ^= std::byte{1} << bit % 8; });
    CollCase test = small_case();
    std::vector<Started> started;
    for (int rank = 0; rank < kRanks; ++rank) {
      job.join(comm, rank);
      Result<Request*> request =
          job.start(rank, test.args(rank), comm[static_cast<size_t>(rank)].comm.get());
      if (request.ok()) started.push_back({rank, *request});
      job.settle();
    }
    const auto statuses = job.finish(started);
    ASSERT_TRUE(saboteur.hit());
    ASSERT_EQ(expect_all(statuses, UZIP_ERR_CORRUPT), "") << bit;
    job.leave(comm);
  }
}

TEST(HostileWire, CutAndLengthenedBodiesFailTheCall) {
  const QuietLog quiet;
  Saboteur saboteur;
  LoopbackJob job(kRanks, saboteur.wire(3));
  const uzip_options_t options[] = {UZIP_OPTIONS_INIT, coded(0), coded(1)};
  const std::function<size_t(size_t)> lengths[] = {
      [](size_t) { return size_t{0}; },      [](size_t n) { return n - 1; },
      [](size_t n) { return n / 2; },        [](size_t n) { return n + 1; },
      [](size_t n) { return 2 * n + 4096; }, [](size_t n) { return n + (size_t{1} << 20); }};
  for (size_t form = 0; form < std::size(options); ++form) {
    for (const auto& length : lengths) {
      for (int message = 0; message < 7; ++message) {
        bool changed = false;
        saboteur.arm(message, [&](Bytes&, Bytes& body) {
          changed = !body.empty();
          if (changed) body.resize(length(body.size()));
        });
        CollCase test = form == 0 ? small_case() : coded_case();
        const auto statuses = job.run([&](int rank) { return test.args(rank, &options[form]); });
        saboteur.disarm();
        ASSERT_EQ(expect_failure(statuses, test, {UZIP_ERR_CORRUPT}), "") << form << message;
        ASSERT_EQ(failures(statuses) > 0, changed);
        ASSERT_EQ(job.works(), "");
      }
    }
  }
  job.settle();
  EXPECT_EQ(job.fabric().unfinished(), 0u);
}

// Without a checksum, damage to coded bytes may be found or not, but it does no harm.
TEST(HostileWire, DamagedCodedBodiesDoNoHarm) {
  const QuietLog quiet;
  Saboteur saboteur;
  LoopbackJob job(kRanks, saboteur.wire(5));
  for (int split : {0, 1}) {
    const uzip_options_t options = coded(split);
    for (int message = 0; message < 6; ++message) {
      for (size_t turn = 0; turn < 150; ++turn) {
        saboteur.arm(message, [&](Bytes&, Bytes& body) {
          for (size_t i = 0; i < 1 + turn % 3 && !body.empty(); ++i) {
            const uint64_t where = job.random()();
            // Mostly in front, where the lengths are.
            const size_t range = where % 2 == 0 ? std::min<size_t>(body.size(), 64) : body.size();
            body[where / 2 % range] = static_cast<std::byte>(job.random()());
          }
        });
        CollCase test = coded_case();
        const auto statuses = job.run([&](int rank) { return test.args(rank, &options); });
        for (const Status& status : statuses) {
          ASSERT_TRUE(status.ok() || status.code() == UZIP_ERR_CORRUPT) << status.message();
        }
      }
    }
  }
  saboteur.disarm();
  EXPECT_EQ(job.works(), "");
  job.settle();
  EXPECT_EQ(job.fabric().unfinished(), 0u);
}

// ---- Senders of nonsense: the head's check is right ----

struct Field {
  const char* name;
  std::function<void(MessageHead& head, uint64_t value)> set;
};

const Field kFields[] = {
    {"comm", [](auto& head, uint64_t v) { head.envelope.comm = static_cast<uint32_t>(v); }},
    {"source", [](auto& head, uint64_t v) { head.envelope.source = static_cast<uint32_t>(v); }},
    {"index", [](auto& head, uint64_t v) { head.envelope.index = static_cast<uint32_t>(v); }},
    {"kind",
     [](auto& head, uint64_t v) {
       head.envelope.index = (head.envelope.index & 0x3fffffff) | static_cast<uint32_t>(v << 30);
     }},
    {"round",
     [](auto& head, uint64_t v) {
       head.envelope.index =
           (head.envelope.index & 0xc0000fff) | (static_cast<uint32_t>(v << 12) & 0x3ffff000);
     }},
    {"message",
     [](auto& head, uint64_t v) {
       head.envelope.index = (head.envelope.index & ~0xfffu) | (v & 0xfff);
     }},
    {"tag", [](auto& head, uint64_t v) { head.envelope.tag = static_cast<uint32_t>(v); }},
    {"magic", [](auto& head, uint64_t v) { head.frame.magic = static_cast<uint32_t>(v); }},
    {"version", [](auto& head, uint64_t v) { head.frame.version = static_cast<uint8_t>(v); }},
    {"codec", [](auto& head, uint64_t v) { head.frame.codec = static_cast<uint8_t>(v); }},
    {"type", [](auto& head, uint64_t v) { head.frame.type = static_cast<uint8_t>(v); }},
    {"flags", [](auto& head, uint64_t v) { head.frame.flags = static_cast<uint8_t>(v); }},
    {"count", [](auto& head, uint64_t v) { head.frame.count = v; }},
    {"coll", [](auto& head, uint64_t v) { head.frame.call.coll = static_cast<uint8_t>(v); }},
    {"op", [](auto& head, uint64_t v) { head.frame.call.op = static_cast<uint8_t>(v); }},
    {"plan", [](auto& head, uint64_t v) { head.frame.call.plan = static_cast<uint16_t>(v); }},
    {"sequence",
     [](auto& head, uint64_t v) { head.frame.call.sequence = static_cast<uint32_t>(v); }},
    {"call count", [](auto& head, uint64_t v) { head.frame.call.count = v; }},
    {"plain_bytes", [](auto& head, uint64_t v) { head.frame.plain_bytes = v; }},
    {"coded_bytes", [](auto& head, uint64_t v) { head.frame.coded_bytes = v; }},
    {"checksum", [](auto& head, uint64_t v) { head.frame.checksum = static_cast<uint32_t>(v); }},
    {"reserved", [](auto& head, uint64_t v) { head.frame.reserved[1] = static_cast<uint32_t>(v); }},
};

constexpr uint64_t kExtremes[] = {0,          1,          2,          3,          29,
                                  31,         0x7f,       0xff,       0x7fff,     0xffff,
                                  0x3ffff,    0x7fffffff, 0x80000000, 0xffffffff, 1ull << 32,
                                  1ull << 61, 1ull << 62, 1ull << 63, ~0ull,      ~0ull - 29};

// What names no call of this communicator any more can make a rank wait: the test ends those calls
// as a deadline would.
TEST(HostileWire, NonsenseInAnyFieldDoesNoHarm) {
  const QuietLog quiet;
  constexpr int kShortLimit = 3000;
  for (int form = 0; form < 3; ++form) {
    const uzip_options_t options = form == 0 ? uzip_options_t UZIP_OPTIONS_INIT : coded(form - 1);
    Saboteur saboteur;
    auto job = std::make_unique<LoopbackJob>(kRanks, saboteur.wire(11));
    for (const Field& field : kFields) {
      for (uint64_t value : kExtremes) {
        const int message = static_cast<int>(value % 5);
        saboteur.arm(message, [&](Bytes& bytes, Bytes&) {
          MessageHead head = read_head(bytes);
          field.set(head, value);
          seal(head);
          write_head(head, bytes);
        });
        CollCase test = form == 0 ? small_case() : coded_case();
        const auto statuses =
            job->run([&](int rank) { return test.args(rank, &options); }, kShortLimit);
        saboteur.disarm();
        ASSERT_EQ(
            expect_failure(statuses, test,
                           {UZIP_ERR_CORRUPT, UZIP_ERR_MISMATCH, UZIP_ERR_TIMEOUT, UZIP_ERR_PEER}),
            "")
            << field.name << " " << value;
        job->settle();
        // A forged report of a death is believed, since real ones look the same.
        bool usable = true;
        for (int rank = 0; rank < kRanks; ++rank) usable = usable && job->comm(rank).health().ok();
        if (usable) {
          ASSERT_EQ(job->works(), "") << field.name << " " << value;
        } else {
          job = std::make_unique<LoopbackJob>(kRanks, saboteur.wire(11));
        }
      }
    }
  }
}

// What is found at once must also be told to all, and leave the next call unharmed.
TEST(HostileWire, BadFrameHeadersFailTheirCall) {
  const QuietLog quiet;
  for (const char* name : {"magic", "version", "codec", "type", "flags", "count", "plain_bytes",
                           "coded_bytes", "reserved", "op", "plan", "call count", "coll"}) {
    const auto field = std::find_if(std::begin(kFields), std::end(kFields),
                                    [&](const Field& f) { return std::strcmp(f.name, name) == 0; });
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      Saboteur saboteur;
      LoopbackJob job(kRanks, saboteur.wire(seed));
      saboteur.arm(static_cast<int>(seed), [&](Bytes& bytes, Bytes&) {
        MessageHead head = read_head(bytes);
        field->set(head, 0xee);
        seal(head);
        write_head(head, bytes);
      });
      CollCase test = small_case();
      const auto statuses = job.run([&](int rank) { return test.args(rank); });
      ASSERT_EQ(expect_failure(statuses, test, {UZIP_ERR_CORRUPT, UZIP_ERR_MISMATCH}), "") << name;
      ASSERT_GT(failures(statuses), 0u) << name;
      ASSERT_EQ(job.works(), "");
      job.settle();
      ASSERT_EQ(job.fabric().unfinished(), 0u);
      for (int rank = 0; rank < kRanks; ++rank) {
        ASSERT_EQ(CommunicatorInspector(job.comm(rank)).remembered(), 0u);
      }
    }
  }
}

TEST(HostileWire, BadFrameHeadersFailTheirReceive) {
  const QuietLog quiet;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    Saboteur saboteur;
    LoopbackJob job(2, saboteur.wire(seed));
    std::vector<int32_t> in = {1, 2, 3}, out(3);
    saboteur.arm(static_cast<int>(seed % 3), [&](Bytes& bytes, Bytes&) {
      MessageHead head = read_head(bytes);
      head.frame.version = 99;
      seal(head);
      write_head(head, bytes);
    });
    std::vector<Started> started;
    const bool receiver_late = seed % 2 == 0;
    for (size_t i = 0; i < 3; ++i)
      started.push_back({0, *job.start_send(0, &in[i], 1, UZIP_INT32, 1, static_cast<int>(i))});
    if (receiver_late) job.settle();
    for (size_t i = 0; i < 3; ++i)
      started.push_back({1, *job.start_recv(1, &out[i], 1, UZIP_INT32, 0, static_cast<int>(i))});
    const auto statuses = job.finish(started);
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_TRUE(statuses[i].ok());
      EXPECT_EQ(statuses[3 + i].code(), i == seed % 3 ? UZIP_ERR_CORRUPT : UZIP_OK);
      EXPECT_TRUE(i == seed % 3 || out[i] == in[i]);
    }
    EXPECT_EQ(job.works(), "");
  }
}

// ---- Messages that come twice, or from somebody else ----

TEST(HostileWire, RepeatedMessagesChangeNothing) {
  const QuietLog quiet;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    Meddling meddling;
    uint64_t turn = seed;
    meddling.repeat = [&](const Incoming&) { return ++turn % 3 == 0; };
    LoopbackOptions wire;
    wire.seed = seed;
    wire.longest_delay = 5;
    wire.reorder_senders = true;
    LoopbackJob job(kRanks, wire, Config(), meddling);
    for (int form = 0; form < 3; ++form) {
      const uzip_options_t options = form == 0 ? uzip_options_t UZIP_OPTIONS_INIT : coded(form - 1);
      CollCase test = form == 0 ? small_case() : coded_case();
      ASSERT_EQ(expect_all(job.run([&](int r) { return test.args(r, &options); }), UZIP_OK), "");
      ASSERT_EQ(test.check(), "");
    }
    std::vector<int32_t> in(50), out(50);
    std::vector<Started> started;
    for (size_t i = 0; i < in.size(); ++i) {
      in[i] = static_cast<int32_t>(i);
      started.push_back({0, *job.start_send(0, &in[i], 1, UZIP_INT32, 1, 7)});
      if (seed % 2 == 0) job.settle();
      started.push_back({1, *job.start_recv(1, &out[i], 1, UZIP_INT32, 0, 7)});
    }
    ASSERT_EQ(expect_all(job.finish(started), UZIP_OK), "");
    EXPECT_EQ(in, out);
    job.settle();
    EXPECT_EQ(job.fabric().unfinished(), 0u);
    for (int rank = 0; rank < kRanks; ++rank) {
      EXPECT_EQ(CommunicatorInspector(job.comm(rank)).remembered(), 0u);
    }
  }
}

// The transport knows who sent it; what the head says otherwise is dropped.
TEST(HostileWire, MessagesInAnothersNameAreDropped) {
  const QuietLog quiet;
  Saboteur saboteur;
  LoopbackJob job(kRanks, saboteur.wire(2));
  saboteur.arm(0, [&](Bytes& bytes, Bytes&) {
    MessageHead head = read_head(bytes);
    head.envelope.source = (head.envelope.source + 1) % kRanks;
    seal(head);
    write_head(head, bytes);
  });
  CollCase test = small_case();
  const auto statuses = job.run([&](int rank) { return test.args(rank); }, 3000);
  EXPECT_EQ(expect_failure(statuses, test, {UZIP_ERR_TIMEOUT}), "");
  EXPECT_GT(failures(statuses), 0u);
  saboteur.disarm();
  EXPECT_EQ(job.works(), "");
}

}  // namespace
}  // namespace uzip
