// Short messages without a schedule: which receive may take what is there before it is announced, and what stays as it is.
#include "comm/direct_message.hpp"

#include "comm/loopback_job.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

namespace uzip {
namespace {

constexpr size_t kCount = 100;

std::vector<int32_t> message(int number) { return std::vector<int32_t>(kCount, number); }

class DirectMessageTest : public ::testing::Test {
 protected:
  Request* receive(std::vector<int32_t>& into, int tag) {
    into.assign(kCount, -1);
    return *job_.start_recv(1, into.data(), kCount, UZIP_INT32, 0, tag);
  }
  void send(const std::vector<int32_t>& from, int tag, DataType type = UZIP_INT32) {
    sent_.push_back({0, *job_.start_send(0, from.data(), from.size(), type, 1, tag)});
  }
  /// Of the sends, and of `receives` in their order.
  std::vector<Status> finish(const std::vector<Request*>& receives) {
    for (Request* receive : receives) sent_.push_back({1, receive});
    std::vector<Status> statuses = job_.finish(sent_);
    statuses.erase(statuses.begin(), statuses.end() - static_cast<ptrdiff_t>(receives.size()));
    return statuses;
  }

  LoopbackJob job_{2};
  std::vector<Started> sent_;
};

TEST_F(DirectMessageTest, IsTakenBeforeItIsAnnounced) {
  const std::vector<int32_t> out = message(7);
  std::vector<int32_t> in;
  Request* const receive = this->receive(in, 3);
  ASSERT_TRUE(receive->expects());
  EXPECT_FALSE(receive->poll());
  send(out, 3);
  EXPECT_TRUE(receive->poll());
  EXPECT_TRUE(receive->done());
  EXPECT_FALSE(receive->expects());
  EXPECT_EQ(std::memcmp(in.data(), out.data(), kCount * sizeof(int32_t)), 0);
  EXPECT_EQ(job_.fabric().unfinished(), 0u);
  EXPECT_EQ(expect_all(finish({receive}), UZIP_OK), "");
}

TEST_F(DirectMessageTest, IsTakenByTheOldestReceiveOfItsTag) {
  const std::vector<int32_t> first = message(1), second = message(2), other = message(3);
  std::vector<int32_t> in_first, in_second, in_other;
  Request* const a = receive(in_first, 5);
  Request* const b = receive(in_second, 5);
  Request* const c = receive(in_other, 6);
  send(first, 5);
  send(second, 5);
  send(other, 6);
  EXPECT_FALSE(b->poll());  // its turn is after a's
  EXPECT_FALSE(c->poll());  // its message is not the next
  EXPECT_TRUE(a->poll());
  EXPECT_TRUE(b->poll());
  EXPECT_TRUE(c->poll());
  EXPECT_EQ(in_first, first);
  EXPECT_EQ(in_second, second);
  EXPECT_EQ(in_other, other);
  EXPECT_EQ(expect_all(finish({a, b, c}), UZIP_OK), "");
}

// What was announced before there was a receive for it has had its turn; the next ones are polled for as usual.
TEST_F(DirectMessageTest, ComesAfterOnesThatAreHeld) {
  const std::vector<int32_t> early = message(1), next = message(2), last = message(3);
  std::vector<int32_t> in_early, in_next, in_last;
  send(early, 8);
  job_.settle();
  send(next, 9);
  Request* const b = receive(in_next, 9);
  EXPECT_TRUE(b->poll());
  Request* const a = receive(in_early, 8);
  EXPECT_TRUE(a->done());
  Request* const c = receive(in_last, 8);
  send(last, 8);
  EXPECT_TRUE(c->poll());
  EXPECT_EQ(in_early, early);
  EXPECT_EQ(in_next, next);
  EXPECT_EQ(in_last, last);
  EXPECT_EQ(expect_all(finish({a, b, c}), UZIP_OK), "");
}

// Whatever differs is left to on_message(), which says how.
TEST_F(DirectMessageTest, IsNotTakenIfItDiffers) {
  const QuietLog quiet;
  const std::vector<int32_t> out = message(1), longer(kCount + 1, 2);
  std::vector<int32_t> in_a, in_b, in_c;
  Request* const a = receive(in_a, 1);
  Request* const b = receive(in_b, 2);
  Request* const c = receive(in_c, 3);
  send(longer, 1);
  EXPECT_FALSE(a->poll());
  job_.settle();
  send(out, 2, UZIP_FP32);
  EXPECT_FALSE(b->poll());
  job_.settle();
  send(out, 3);
  EXPECT_TRUE(c->poll());  // numbers go on
  const std::vector<Status> statuses = finish({a, b, c});
  EXPECT_EQ(statuses[0].code(), UZIP_ERR_MISMATCH);
  EXPECT_NE(statuses[0].message().find("101 elements"), std::string::npos) << statuses[0].message();
  EXPECT_EQ(statuses[1].code(), UZIP_ERR_MISMATCH);
  EXPECT_NE(statuses[1].message().find("fp32"), std::string::npos) << statuses[1].message();
  EXPECT_TRUE(statuses[2].ok());
  EXPECT_EQ(in_a, std::vector<int32_t>(kCount, -1));  // nothing was written
  EXPECT_EQ(in_b, std::vector<int32_t>(kCount, -1));
  EXPECT_EQ(in_c, out);
}

TEST_F(DirectMessageTest, EndsWithItsSender) {
  const QuietLog quiet;
  std::vector<int32_t> in;
  Request* const receive = this->receive(in, 1);
  job_.fabric().kill(0);
  EXPECT_FALSE(receive->poll());
  EXPECT_EQ(expect_all(finish({receive}), UZIP_ERR_PEER), "");
}

// Both sides of the longest one, and with a codec: the same elements either way.
TEST(DirectMessage, SuitsShortMessagesAsTheyAre) {
  LoopbackJob job(2);
  for (const char* codec : {"raw", "lev"})
    for (size_t bytes : {size_t{0}, size_t{4}, size_t{256} << 10, (size_t{256} << 10) + 4}) {
      uzip_options_t options = UZIP_OPTIONS_INIT;
      options.codec = codec;
      std::vector<float> in(bytes / sizeof(float)), out(in.size());
      for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(i % 1000);
      Request* const receive = *job.start_recv(1, in.data(), in.size(), UZIP_FP32, 0, 0, &options);
      const bool direct = codec[0] == 'r' && bytes <= size_t{256} << 10;
      EXPECT_EQ(DirectMessage::suits(receive->plan()), direct) << codec << " " << bytes;
      EXPECT_EQ(receive->expects(), direct && bytes <= kMostPolledBytes) << codec << " " << bytes;
      Request* const send = *job.start_send(0, out.data(), out.size(), UZIP_FP32, 1, 0, &options);
      EXPECT_EQ(expect_all(job.finish({{0, send}, {1, receive}}), UZIP_OK), "");
      EXPECT_TRUE(in.empty() || std::memcmp(in.data(), out.data(), in.size() * sizeof(float)) == 0);
    }
}

}  // namespace
}  // namespace uzip
