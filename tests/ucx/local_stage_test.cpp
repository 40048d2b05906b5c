// The stage: places of its own for the bodies that are there at a time, and nothing outside of it.
#include "base/cpu.hpp"
#include "ucx/local_queue.hpp"
#include "ucx/local_stage.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <vector>

#include <unistd.h>

namespace uzip {
namespace {

std::vector<std::byte> some_bytes(size_t count, size_t seed) {
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 41 + seed * 103 + 1);
  return bytes;
}

class LocalStageTest : public ::testing::Test {
 protected:
  LocalStageTest() { stage.use(memory.data()); }

  std::vector<std::byte> memory = std::vector<std::byte>(kStageBytes);
  LocalStage stage;
};

TEST_F(LocalStageTest, BodiesStayAsTheyAreUntilTheirPlaceIsGivenBack) {
  std::mt19937 random(5);
  std::map<size_t, std::vector<std::byte>> bodies;
  size_t refused = 0;
  for (size_t i = 0; i < 3000; ++i) {
    if (bodies.size() > 3 && random() % 2 == 0) {
      const auto ended = std::next(bodies.begin(), random() % bodies.size());
      ASSERT_EQ(std::memcmp(memory.data() + ended->first, ended->second.data(), ended->second.size()), 0) << i;
      stage.give(ended->first, ended->second.size());
      bodies.erase(ended);
    }
    auto body = some_bytes(1 + random() % (random() % 2 ? kMostStagedBytes : 70000), i);
    const auto begin = stage.put(body);
    if (!begin) {
      ++refused;
      continue;
    }
    ASSERT_LE(*begin + body.size(), kStageBytes);
    ASSERT_TRUE(bodies.emplace(*begin, std::move(body)).second);
  }
  EXPECT_GT(refused, 100u);
  for (const auto& [begin, body] : bodies) {
    EXPECT_EQ(std::memcmp(memory.data() + begin, body.data(), body.size()), 0);
    stage.give(begin, body.size());
  }
  for (size_t i = 0; i < kStageBytes / kMostStagedBytes; ++i)
    EXPECT_EQ(stage.put(some_bytes(kMostStagedBytes, i)), i * kMostStagedBytes) << "all of it is free again";
  EXPECT_EQ(stage.put(some_bytes(1, 0)), std::nullopt);
}

TEST_F(LocalStageTest, TakesTheFirstPlaceThatIsLongEnough) {
  const size_t a = stage.put(some_bytes(1, 1)).value(), b = stage.put(some_bytes(100000, 2)).value();
  const size_t c = stage.put(some_bytes(1, 3)).value();
  EXPECT_TRUE(a == 0 && a < b && b + 100000 <= c);
  stage.give(a, 1);
  EXPECT_GT(stage.put(some_bytes(100000, 4)).value(), c) << "not at a, where b would be in the way";
  stage.give(b, 100000);
  EXPECT_EQ(stage.put(some_bytes(100000, 5)).value(), a);
}

TEST_F(LocalStageTest, ReadersShareAPlaceUntilAllHaveGivenItBack) {
  const auto body = some_bytes(100000, 1), other = some_bytes(100000, 2);
  EXPECT_EQ(stage.share(body), std::nullopt) << "nothing was put";
  const size_t begin = stage.put(body).value();
  EXPECT_EQ(stage.share(body), begin);
  EXPECT_EQ(stage.share(body), begin);
  EXPECT_EQ(stage.share(other), std::nullopt);
  EXPECT_EQ(stage.share(std::span(body).first(99999)), std::nullopt);
  stage.give(begin, body.size());
  stage.give(begin, body.size());
  EXPECT_EQ(stage.share(body), begin) << "one has not given it back";
  const size_t second = stage.put(other).value();
  EXPECT_NE(second, begin);
  EXPECT_EQ(stage.share(body), std::nullopt) << "not the last one";
  stage.give(begin, body.size());
  stage.give(begin, body.size());
  EXPECT_EQ(stage.share(other), second) << "still the last one";
  stage.give(second, other.size());
  stage.give(second, other.size());
  EXPECT_EQ(stage.share(other), std::nullopt) << "its place is free";
  EXPECT_EQ(stage.put(body), begin);
  stage.forget();
  EXPECT_EQ(stage.share(body), std::nullopt);
  EXPECT_EQ(std::memcmp(memory.data() + begin, body.data(), body.size()), 0);
}

TEST_F(LocalStageTest, MakesTheSecondCopyWhereItSaysSo) {
  for (bool streams : {false, true})
    for (size_t bytes : {size_t{1}, size_t{100}, size_t{16384}, size_t{16385}, size_t{100000}, kMostStagedBytes}) {
      const auto body = some_bytes(bytes, bytes), untouched = std::vector<std::byte>(bytes + 2, std::byte{0xee});
      auto other = untouched;
      SecondCopy second{other.data() + 1, streams};
      const auto begin = stage.put(body, &second);
      ASSERT_TRUE(begin);
      EXPECT_EQ(std::memcmp(memory.data() + *begin, body.data(), bytes), 0) << bytes;
      EXPECT_EQ(second.made, cpu_vendor() != CpuVendor::kAmd);
      auto expected = untouched;
      if (second.made) std::copy(body.begin(), body.end(), expected.begin() + 1);
      EXPECT_TRUE(other == expected) << bytes << streams;
      stage.give(*begin, bytes);
    }
}

TEST_F(LocalStageTest, MakesNoSecondCopyOfWhatItRefuses) {
  std::vector<std::byte> other(kMostStagedBytes + 1);
  SecondCopy second{other.data(), true};
  EXPECT_EQ(stage.put(some_bytes(kMostStagedBytes + 1, 1), &second), std::nullopt);
  while (stage.put(some_bytes(kMostStagedBytes, 2))) {}
  EXPECT_EQ(stage.put(some_bytes(kMostStagedBytes, 3), &second), std::nullopt);
  EXPECT_FALSE(second.made);
  EXPECT_TRUE(other == std::vector<std::byte>(kMostStagedBytes + 1));
}

TEST_F(LocalStageTest, RefusesWhatItIsNotFor) {
  EXPECT_EQ(stage.put({}), std::nullopt);
  EXPECT_EQ(stage.put(some_bytes(kMostStagedBytes + 1, 1)), std::nullopt);
  LocalStage none;
  EXPECT_EQ(none.put(some_bytes(1, 1)), std::nullopt);
  none.use(nullptr);
  EXPECT_EQ(none.put(some_bytes(1, 1)), std::nullopt);
}

// What another process says of its stage is compared with the stage's length.
TEST(LocalQueueStage, IsSeenByItsReadersAndOnlyInside) {
  const PeerMemory owner{getpid(), 0, make_memory_token()};
  LocalInbox inbox;
  EXPECT_EQ(inbox.stage(), nullptr);
  inbox.create(3, owner.token);
  ASSERT_NE(inbox.stage(), nullptr);
  LocalQueue queue;
  EXPECT_EQ(queue.staged(0, 1), nullptr) << "not open";
  EXPECT_FALSE(inbox.opened_by(1));
  ASSERT_TRUE(queue.open(owner, inbox.address(), 1));
  EXPECT_TRUE(inbox.opened_by(1));
  EXPECT_FALSE(inbox.opened_by(0));
  EXPECT_FALSE(inbox.opened_by(3));
  LocalStage stage;
  stage.use(inbox.stage());
  for (size_t bytes : {size_t{1}, kMostStagedBytes}) {
    const auto body = some_bytes(bytes, bytes);
    const auto begin = stage.put(body);
    ASSERT_TRUE(begin);
    const std::byte* const seen = queue.staged(*begin, bytes);
    ASSERT_NE(seen, nullptr);
    EXPECT_NE(seen, inbox.stage() + *begin) << "another mapping of it";
    EXPECT_EQ(std::memcmp(seen, body.data(), bytes), 0);
  }
  EXPECT_NE(queue.staged(0, kStageBytes), nullptr);
  EXPECT_NE(queue.staged(kStageBytes - 1, 1), nullptr);
  EXPECT_EQ(queue.staged(0, kStageBytes + 1), nullptr);
  EXPECT_EQ(queue.staged(kStageBytes, 1), nullptr);
  EXPECT_EQ(queue.staged(kStageBytes + 1, 0), nullptr);
  EXPECT_EQ(queue.staged(1, UINT64_MAX), nullptr);
  EXPECT_EQ(queue.staged(UINT64_MAX, 1), nullptr);
  EXPECT_EQ(queue.staged(UINT64_MAX, UINT64_MAX), nullptr);
}

}  // namespace
}  // namespace uzip
