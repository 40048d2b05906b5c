// Messages between two ranks: order, matching by tag, sizes, and what goes wrong on the way.
#include "comm/loopback_job.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace uzip {
namespace {

LoopbackOptions any_wire(uint64_t seed) {
  LoopbackOptions wire;
  wire.seed = seed;
  wire.longest_delay = 12;
  wire.reorder_senders = true;
  wire.reorder_messages = seed % 2 == 1;
  wire.random_modes = true;
  wire.eager_limit = 1500;
  return wire;
}

std::vector<float> numbered(size_t count, int seed) {
  std::vector<float> values(count);
  std::mt19937 random(static_cast<unsigned>(seed));
  std::normal_distribution<float> normal(1, 0.1F);
  for (float& value : values) value = normal(random);
  return values;
}

TEST(PointToPoint, MovesAnyCount) {
  for (const char* codec : {"raw", "lev"}) {
    for (int split : {0, 1}) {
      uzip_options_t options = UZIP_OPTIONS_INIT;
      options.codec = codec;
      options.split_send = split;
      options.chunk_bytes = 16384;
      for (uint64_t seed = 1; seed <= 6; ++seed) {
        LoopbackJob job(3, any_wire(seed));
        for (size_t count : {size_t{0}, size_t{1}, size_t{4096}, size_t{4097}, size_t{50001}}) {
          const std::vector<float> in = numbered(count, static_cast<int>(seed));
          std::vector<float> out(count);
          const bool receiver_first = seed % 3 == 0;
          std::vector<Started> started;
          for (int turn = 0; turn < 2; ++turn) {
            if ((turn == 0) == receiver_first) {
              started.push_back(
                  {2, *job.start_recv(2, out.data(), count, UZIP_FP32, 0, 5, &options)});
            } else {
              started.push_back(
                  {0, *job.start_send(0, in.data(), count, UZIP_FP32, 2, 5, &options)});
            }
            if (seed % 2 == 0) job.settle();
          }
          ASSERT_EQ(expect_all(job.finish(started), UZIP_OK), "");
          ASSERT_TRUE(count == 0 || std::memcmp(in.data(), out.data(), count * sizeof(float)) == 0);
        }
        job.settle();
        EXPECT_EQ(job.fabric().unfinished(), 0u);
      }
    }
  }
}

TEST(PointToPoint, ToOneself) {
  LoopbackJob job(2, any_wire(1));
  const std::vector<float> in = numbered(3000, 1);
  std::vector<float> out(3000);
  const std::vector<Started> started = {{1, *job.start_recv(1, out.data(), 3000, UZIP_FP32, 1, 0)},
                                        {1, *job.start_send(1, in.data(), 3000, UZIP_FP32, 1, 0)}};
  EXPECT_EQ(expect_all(job.finish(started), UZIP_OK), "");
  EXPECT_EQ(in, out);
}

// Many messages with few tags: those of one tag arrive in order, whatever the wire, the sizes, and
// the order in which receives are posted.
TEST(PointToPoint, OneTagKeepsItsOrder) {
  constexpr int kMessages = 120, kTags = 3;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    LoopbackJob job(2, any_wire(seed));
    std::mt19937_64 random(seed);
    std::vector<std::vector<int32_t>> in, out;
    std::vector<int> tag(kMessages);
    for (int i = 0; i < kMessages; ++i) {
      tag[static_cast<size_t>(i)] = static_cast<int>(random() % kTags);
      in.emplace_back(random() % 5 == 0 ? 3000 : 10, i);
      out.emplace_back(in.back().size());
    }
    // Receives in the order of sending within a tag, the tags mixed anew.
    std::vector<std::vector<size_t>> by_tag(kTags);
    for (size_t i = 0; i < kMessages; ++i) by_tag[static_cast<size_t>(tag[i])].push_back(i);
    std::vector<size_t> posting;
    std::vector<size_t> next(kTags);
    while (posting.size() < kMessages) {
      const size_t t = random() % kTags;
      if (next[t] < by_tag[t].size()) posting.push_back(by_tag[t][next[t]++]);
    }
    std::vector<Started> started;
    size_t sent = 0, posted = 0;
    while (sent + posted < 2 * kMessages) {
      const bool send = posted == kMessages || (sent < kMessages && random() % 2 == 0);
      const size_t i = send ? sent++ : posting[posted++];
      started.push_back(
          send ? Started{0, *job.start_send(0, in[i].data(), in[i].size(), UZIP_INT32, 1, tag[i])}
               : Started{1,
                         *job.start_recv(1, out[i].data(), out[i].size(), UZIP_INT32, 0, tag[i])});
      if (random() % 3 == 0) job.step();
    }
    ASSERT_EQ(expect_all(job.finish(started), UZIP_OK), "");
    for (size_t i = 0; i < kMessages; ++i) ASSERT_EQ(in[i], out[i]) << i;
    job.settle();
    EXPECT_EQ(job.fabric().unfinished(), 0u);
  }
}

TEST(PointToPoint, AllToAllWithOneTag) {
  constexpr int kRanks = 5;
  LoopbackJob job(kRanks, any_wire(4));
  std::vector<int32_t> in(kRanks * kRanks), out(kRanks * kRanks);
  std::iota(in.begin(), in.end(), 0);
  std::vector<Started> started;
  for (int a = 0; a < kRanks; ++a) {
    for (int b = 0; b < kRanks; ++b) {
      started.push_back(
          {a, *job.start_send(a, &in[static_cast<size_t>(a * kRanks + b)], 1, UZIP_INT32, b, 9)});
      started.push_back(
          {b, *job.start_recv(b, &out[static_cast<size_t>(a * kRanks + b)], 1, UZIP_INT32, a, 9)});
    }
  }
  EXPECT_EQ(expect_all(job.finish(started), UZIP_OK), "");
  EXPECT_EQ(in, out);
}

TEST(PointToPoint, UnexpectedMessagesWait) {
  for (bool fleeting : {false, true}) {
    Meddling meddling;
    meddling.fleeting = fleeting;
    LoopbackJob job(2, LoopbackOptions(), Config(), meddling);
    std::vector<int32_t> in(40), out(40);
    std::iota(in.begin(), in.end(), 0);
    std::vector<Started> started;
    for (size_t i = 0; i < in.size(); ++i) {
      started.push_back({0, *job.start_send(0, &in[i], 1, UZIP_INT32, 1, static_cast<int>(i))});
    }
    job.settle();
    EXPECT_EQ(job.works(), "");
    for (size_t i = in.size(); i-- > 0;) {
      started.push_back({1, *job.start_recv(1, &out[i], 1, UZIP_INT32, 0, static_cast<int>(i))});
    }
    EXPECT_EQ(expect_all(job.finish(started), UZIP_OK), "");
    EXPECT_EQ(in, out);
  }
}

TEST(PointToPoint, ReceiverFindsMismatches) {
  const QuietLog quiet;
  uzip_options_t small_chunk = UZIP_OPTIONS_INIT;
  small_chunk.chunk_bytes = 1000;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    LoopbackJob job(2, any_wire(seed));
    std::vector<double> in(5000), out(5000);
    const auto expect_mismatch = [&](size_t count, DataType type, const uzip_options_t* options,
                                     const char* said) {
      const Started send = {0, *job.start_send(0, in.data(), 2000, UZIP_FP32, 1, 3)};
      if (seed % 3 == 0) job.settle();
      const Started recv = {1, *job.start_recv(1, out.data(), count, type, 0, 3, options)};
      const auto statuses = job.finish({send, recv});
      EXPECT_TRUE(statuses[0].ok()) << statuses[0].message();
      EXPECT_EQ(statuses[1].code(), UZIP_ERR_MISMATCH) << statuses[1].message();
      EXPECT_NE(statuses[1].message().find(said), std::string::npos) << statuses[1].message();
    };
    expect_mismatch(1999, UZIP_FP32, nullptr, "2000 elements");
    expect_mismatch(2001, UZIP_FP32, nullptr, "2000 elements");
    expect_mismatch(0, UZIP_FP32, nullptr, "2000 elements");
    expect_mismatch(2000, UZIP_INT32, nullptr, "fp32");
    expect_mismatch(1000, UZIP_FP64, nullptr, "fp32");
    expect_mismatch(2000, UZIP_FP32, &small_chunk, "chunk");
    if (testing::Test::HasFailure()) return;
    // The message after a wrong one is right.
    const std::vector<float> values = numbered(3000, 1);
    std::vector<float> result(3000);
    const std::vector<Started> next = {
        {0, *job.start_send(0, values.data(), 3000, UZIP_FP32, 1, 3)},
        {1, *job.start_recv(1, result.data(), 3000, UZIP_FP32, 0, 3)}};
    EXPECT_EQ(expect_all(job.finish(next), UZIP_OK), "");
    EXPECT_EQ(values, result);
    EXPECT_EQ(job.works(), "");
    job.settle();
    EXPECT_EQ(job.fabric().unfinished(), 0u);
  }
}

// More wrong messages in many pieces than anybody would want to remember one by one.
TEST(PointToPoint, PiecesOfWrongMessagesAreDropped) {
  const QuietLog quiet;
  constexpr size_t kWrong = 100, kCount = 1000;
  LoopbackJob job(2, any_wire(1));
  uzip_options_t options = UZIP_OPTIONS_INIT;
  options.chunk_bytes = 256;  // 16 pieces
  const std::vector<float> in(kCount);
  std::vector<std::vector<float>> out(kWrong, std::vector<float>(kCount));
  std::vector<Started> started;
  for (size_t i = 0; i < kWrong; ++i) {
    started.push_back({0, *job.start_send(0, in.data(), kCount, UZIP_FP32, 1, 0, &options)});
    started.push_back(
        {1, *job.start_recv(1, out[i].data(), kCount - 1, UZIP_FP32, 0, 0, &options)});
  }
  const auto statuses = job.finish(started);
  for (size_t i = 0; i < statuses.size(); i += 2) {
    ASSERT_TRUE(statuses[i].ok()) << statuses[i].message();
    ASSERT_EQ(statuses[i + 1].code(), UZIP_ERR_MISMATCH);
  }
  job.settle();
  EXPECT_EQ(job.fabric().unfinished(), 0u);
}

// A message that could not be sent must not hold up the ones behind it for ever.
TEST(PointToPoint, LostMessagesFailTheirReceiveOnly) {
  const QuietLog quiet;
  for (const char* codec : {"raw", "lev"}) {
    uzip_options_t options = UZIP_OPTIONS_INIT;
    options.codec = codec;
    options.chunk_bytes = 20000;
    for (uint64_t lost = 0; lost < 7; ++lost) {
      for (uint64_t seed = 1; seed <= 4; ++seed) {
        LoopbackJob job(2, any_wire(seed));
        job.fabric().fail_send(0, 1, lost, error(UZIP_ERR_TRANSPORT, "the cable is cut"));
        const std::vector<float> in = numbered(20000, 1);  // four pieces
        std::vector<std::vector<float>> out(3, std::vector<float>(in.size()));
        std::vector<Started> started;
        for (size_t i = 0; i < 3; ++i) {
          const auto recv = [&] {
            started.push_back({1, *job.start_recv(1, out[i].data(), in.size(), UZIP_FP32, 0,
                                                  static_cast<int>(i), &options)});
          };
          if (seed % 2 == 0) recv();
          started.push_back({0, *job.start_send(0, in.data(), in.size(), UZIP_FP32, 1,
                                                static_cast<int>(i), &options)});
          if (seed > 2) job.settle();
          if (seed % 2 == 1) recv();
        }
        const auto statuses = job.finish(started);
        size_t failed = 0;
        for (size_t i = 0; i < 3; ++i) {
          const Status& first = statuses[2 * i];
          const Status& second = statuses[2 * i + 1];
          ASSERT_EQ(first.code(), second.code()) << first.message() << "\n" << second.message();
          if (first.ok()) {
            ASSERT_EQ(out[i], in);
            continue;
          }
          ++failed;
          ASSERT_EQ(first.code(), UZIP_ERR_TRANSPORT) << first.message();
          ASSERT_NE(second.message().find("the cable is cut"), std::string::npos);
        }
        ASSERT_EQ(failed, 1u) << codec << " " << lost;
        ASSERT_EQ(job.works(), "");
      }
    }
  }
}

}  // namespace
}  // namespace uzip
