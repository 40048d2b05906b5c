// UZIP_CHECKSUM: every frame with elements carries the CRC32C of them, forwarded ones keep theirs,
// and no damage to a body goes unnoticed.
#include "base/crc32c.hpp"
#include "comm/coll_case.hpp"
#include "comm/loopback_job.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace uzip {
namespace {

Config with_checksum() {
  Config config;
  config.checksum = true;
  return config;
}

struct Coding {
  const char* codec;
  int split_send;
};
constexpr Coding kCodings[] = {{"raw", 0}, {"lev", 0}, {"lev", 1}};

uzip_options_t options_of(const Coding& coding, const char* algorithm = nullptr) {
  uzip_options_t options = UZIP_OPTIONS_INIT;
  options.codec = coding.codec;
  options.split_send = coding.split_send;
  options.algorithm = algorithm;
  options.chunk_bytes = 32768;
  return options;
}

MessageHead read_head(const std::vector<std::byte>& bytes) {
  MessageHead head;
  std::memcpy(&head, bytes.data(), sizeof head);
  return head;
}

bool is_control(const MessageHead& head) {
  return MessageIndex::unpack(head.envelope.index).kind == MessageKind::kControl;
}

constexpr uzip_coll_t kColls[] = {UZIP_ALLREDUCE, UZIP_REDUCE_SCATTER, UZIP_ALLGATHER};

TEST(Checksum, IsInEveryFrameIfWanted) {
  for (bool wanted : {false, true}) {
    LoopbackOptions wire;
    wire.longest_delay = 5;
    wire.random_modes = true;
    size_t frames = 0, with = 0;
    wire.tamper = [&](int, int, std::vector<std::byte>& head, std::vector<std::byte>& body) {
      const FrameHeader frame = read_head(head).frame;
      const bool has = (frame.flags & kFrameHasChecksum) != 0;
      frames += frame.count > 0;
      with += has;
      if (has && frame.codec == kCodecRaw && !body.empty()) {
        EXPECT_EQ(frame.checksum, crc32c(body));
      }
    };
    LoopbackJob job(4, wire, wanted ? with_checksum() : Config());
    for (const Coding& coding : kCodings) {
      for (uzip_coll_t coll : kColls) {
        for (size_t count : {20001, 20}) {  // a few elements go without a schedule, if they may
          const std::vector<size_t> counts(4, count);
          CollCase test({coll, UZIP_BF16, UZIP_SUM, counts, Placement::kApart, Values::kExact, 1});
          const uzip_options_t options = options_of(coding);
          const auto statuses = job.run([&](int rank) { return test.args(rank, &options); });
          ASSERT_EQ(expect_all(statuses, UZIP_OK), "");
          ASSERT_EQ(test.check(), "");
        }
      }
    }
    EXPECT_GT(frames, 100u);
    EXPECT_EQ(with, wanted ? frames : 0u);
  }
}

// In a ring all-gather a block goes around as it was encoded: one checksum for each block.
TEST(Checksum, ForwardedFramesKeepTheirs) {
  constexpr size_t kRanks = 5;
  std::multiset<uint32_t> seen;
  LoopbackOptions wire;
  wire.tamper = [&](int, int, std::vector<std::byte>& head, std::vector<std::byte>&) {
    seen.insert(read_head(head).frame.checksum);
  };
  LoopbackJob job(kRanks, wire, with_checksum());
  const std::vector<size_t> counts(kRanks, 8000);
  CollCase test(
      {UZIP_ALLGATHER, UZIP_BF16, UZIP_SUM, counts, Placement::kApart, Values::kSmooth, 1});
  const uzip_options_t options = options_of({"lev", 0}, "ring");
  ASSERT_EQ(expect_all(job.run([&](int r) { return test.args(r, &options); }), UZIP_OK), "");
  EXPECT_EQ(test.check(), "");
  EXPECT_EQ(std::set<uint32_t>(seen.begin(), seen.end()).size(), kRanks);
  for (uint32_t checksum : seen) EXPECT_EQ(seen.count(checksum), kRanks - 1);
}

// Who was done before may not know; the others do, and nobody has a wrong result. Coded frames have
// padding, where damage is none.
std::string expect_corrupt(const std::vector<Status>& statuses, const CollCase& test, bool coded) {
  size_t failed = 0;
  for (size_t rank = 0; rank < statuses.size(); ++rank) {
    if (statuses[rank].ok()) {
      if (std::string wrong = test.check(static_cast<int>(rank)); !wrong.empty()) return wrong;
      continue;
    }
    ++failed;
    if (statuses[rank].code() != UZIP_ERR_CORRUPT ||
        statuses[rank].message().find("rank ") == std::string::npos)
      return statuses[rank].message();
  }
  return failed > 0 || coded ? "" : "nobody noticed";
}

// One bit of one body is flipped, for each message and places all over it.
class DamagedBody : public testing::TestWithParam<int> {
 protected:
  static constexpr size_t kPlaces = 23;

  // Damages the message with this number in a call. False: the call has fewer messages.
  bool damage(LoopbackJob& job, uzip_coll_t coll, int message, size_t place) {
    const std::vector<size_t> counts(static_cast<size_t>(job.size()), 6000);
    CollCase test({coll, UZIP_FP32, UZIP_SUM, counts, Placement::kApart, Values::kExact, place});
    const uzip_options_t options = options_of(kCodings[GetParam()], "ring");
    place_ = place;
    left_ = message;
    hit_ = false;
    const auto statuses = job.run([&](int rank) { return test.args(rank, &options); });
    left_ = -1;
    const std::string wrong = hit_ ? expect_corrupt(statuses, test, GetParam() != 0) : "";
    EXPECT_EQ(wrong, "") << "message " << message << ", place " << place;
    return hit_;
  }

  void tamper(std::vector<std::byte>& head, std::vector<std::byte>& body) {
    if (is_control(read_head(head)) || body.empty() || left_-- != 0) return;
    const size_t bits = body.size() * 8;
    const size_t bit = place_ + 1 == kPlaces ? bits - 1 : bits * place_ / kPlaces + place_ % 8;
    body[bit / 8] ^= std::byte{1} << bit % 8;
    hit_ = true;
  }

 private:
  int left_ = -1;  // messages until the damage
  size_t place_ = 0;
  bool hit_ = false;
};

TEST_P(DamagedBody, IsFoundAndToldToAll) {
  const QuietLog quiet;
  LoopbackOptions wire;
  wire.longest_delay = 3;
  wire.random_modes = true;
  wire.tamper = [this](int, int, auto& head, auto& body) { tamper(head, body); };
  LoopbackJob job(3, wire, with_checksum());
  for (uzip_coll_t coll : kColls) {
    for (int message = 0; damage(job, coll, message, 0); ++message) {
      for (size_t place = 1; place < kPlaces; ++place) damage(job, coll, message, place);
      job.settle();
      ASSERT_EQ(job.works(), "");
      ASSERT_FALSE(HasFailure());
    }
  }
  job.settle();
  EXPECT_EQ(job.fabric().unfinished(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Codings, DamagedBody, testing::Range(0, 3));

TEST(Checksum, PointToPoint) {
  const QuietLog quiet;
  for (const Coding& coding : kCodings) {
    size_t damage = SIZE_MAX;
    LoopbackOptions wire;
    wire.random_modes = true;
    wire.tamper = [&](int, int, std::vector<std::byte>&, std::vector<std::byte>& body) {
      if (damage < body.size()) body[damage] ^= std::byte{16};
    };
    LoopbackJob job(2, wire, with_checksum());
    const std::vector<float> in(5000, 1.5F);
    std::vector<float> out(5000);
    const uzip_options_t options = options_of(coding);
    for (size_t where : {SIZE_MAX, size_t{0}, size_t{33}, SIZE_MAX}) {
      damage = where;
      const std::vector<Started> started = {
          {0, *job.start_send(0, in.data(), in.size(), UZIP_FP32, 1, 0, &options)},
          {1, *job.start_recv(1, out.data(), out.size(), UZIP_FP32, 0, 0, &options)}};
      const auto statuses = job.finish(started);
      EXPECT_TRUE(statuses[0].ok());
      EXPECT_EQ(statuses[1].code(), where == SIZE_MAX ? UZIP_OK : UZIP_ERR_CORRUPT);
      EXPECT_TRUE(where != SIZE_MAX || in == out);
    }
  }
}

}  // namespace
}  // namespace uzip
