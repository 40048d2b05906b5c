// Messages that the GPUs of a host carry between them, with GPUs that the tests make up: which these are, that they are
// right in any order and beside everything else, and what ends those that can't end well.
#include "comm/coll_case.hpp"
#include "comm/gpu_job.hpp"
#include "support/fake_gpu.hpp"
#include "support/fake_gpu_peers.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <random>
#include <string>
#include <vector>

namespace uzip {
namespace {

constexpr size_t kCount = 5000;  // of fp32: long enough for the GPUs

Config with_peers() {
  Config config;
  config.gpu_peers = true;
  return config;
}

/// Messages of one rank to another come in the order of sending, as transports promise.
LoopbackOptions wire_of(uint64_t seed) {
  if (seed == 0) return {};
  LoopbackOptions wire = stormy_gpu_wire(seed);
  wire.reorder_messages = false;
  return wire;
}

class MessageJob : public GpuJob {
 public:
  explicit MessageJob(int ranks, uint64_t seed = 0, const Config& config = with_peers())
      : GpuJob(fake_gpu_for_tests(static_cast<uint64_t>(ranks) + seed), ranks, wire_of(seed), config),
        risks_(fake_gpu::peer_risks()) {}
  ~MessageJob() { EXPECT_EQ(fake_gpu::peer_risks(), risks_); }

 private:
  int risks_;
};

/// A message's elements at its two ends, each on the rank's GPU or in host memory.
class Message {
 public:
  Message(int from, int to, size_t count, int tag, uint32_t seed, bool from_gpu = true, bool to_gpu = true)
      : from_(from), to_(to), tag_(tag), values_(count), got_(count) {
    for (size_t i = 0; i < count; ++i) values_[i] = static_cast<float>(seed * 1000003u + static_cast<uint32_t>(i));
    const TestGpu gpu{fake_gpu::plugin(), fake_gpu::kDevices, true};
    if (from_gpu) {
      arrays_[0].emplace_back(gpu, gpu::MemoryKind::kDevice, from, count * sizeof(float));
      arrays_[0][0].write(values_.data());
    }
    if (to_gpu) arrays_[1].emplace_back(gpu, gpu::MemoryKind::kDevice, to, count * sizeof(float));
    told_[0].struct_size = told_[1].struct_size = sizeof told_[0];
  }

  Started send(GpuJob& job, uzip_options_t options = UZIP_OPTIONS_INIT) {
    return {from_, *job.start_send(from_, place(0), values_.size(), UZIP_FP32, to_, tag_, &options)};
  }
  Started receive(GpuJob& job, uzip_options_t options = UZIP_OPTIONS_INIT) {
    return {to_, *job.start_recv(to_, place(1), values_.size(), UZIP_FP32, from_, tag_, &options)};
  }
  bool is_right() {
    if (!arrays_[1].empty()) arrays_[1][0].read(got_.data());
    return std::memcmp(got_.data(), values_.data(), got_.size() * sizeof(float)) == 0;
  }
  void* place(size_t end) {
    if (!arrays_[end].empty()) return arrays_[end][0].data();
    return end == 0 ? static_cast<void*>(values_.data()) : got_.data();
  }
  int from() const { return from_; }
  int to() const { return to_; }

 private:
  int from_, to_, tag_;
  std::vector<float> values_, got_;
  std::vector<GpuArray> arrays_[2];
  uzip_coll_info_t told_[2] = {};
};

int copies() { return fake_gpu::counters().copies; }

TEST(GpuMessages, GoBetweenTheGpus) {
  for (const uint64_t seed : {0, 1, 2, 3, 4}) {
    for (const bool receiver_first : {false, true}) {
      MessageJob job(3, seed);
      for (int turn = 0; turn < 3; ++turn) {
        Message message(2, 0, kCount, 5, 1 + static_cast<uint32_t>(turn));
        const int before = copies();
        std::vector<Started> started;
        if (receiver_first) started = {message.receive(job)};
        if (seed % 2 == 0) job.settle();
        started.push_back(message.send(job));
        if (seed % 2 == 0) job.settle();
        if (!receiver_first) started.push_back(message.receive(job));
        ASSERT_EQ(expect_all(job.finish(started), UZIP_OK), "");
        EXPECT_TRUE(message.is_right());
        EXPECT_EQ(copies(), before) << "it was staged";
      }
      job.settle();
      EXPECT_EQ(job.fabric().unfinished(), 0u);
    }
  }
  EXPECT_EQ(fake_gpu::peer_groups(), 0);
}

TEST(GpuMessages, SomeAreStaged) {
  MessageJob job(2);
  const auto run = [&](Message&& message) {
    const int before = copies();
    EXPECT_EQ(expect_all(job.finish({message.send(job), message.receive(job)}), UZIP_OK), "");
    EXPECT_TRUE(message.is_right());
    return copies() > before;
  };
  EXPECT_FALSE(run(Message(0, 1, kCount, 0, 1)));
  EXPECT_TRUE(run(Message(0, 1, kCount, 0, 2, true, false)));
  EXPECT_TRUE(run(Message(0, 1, kCount, 0, 3, false, true)));
  EXPECT_TRUE(run(Message(0, 1, 100, 0, 4)));    // too short
  EXPECT_TRUE(run(Message(1, 1, kCount, 0, 5)));  // to oneself
  EXPECT_FALSE(run(Message(1, 0, kCount, 0, 6)));
}

TEST(GpuMessages, ASettingKeepsThemApart) {
  MessageJob job(2, 0, Config());
  Message message(0, 1, kCount, 0, 1);
  EXPECT_EQ(expect_all(job.finish({message.send(job), message.receive(job)}), UZIP_OK), "");
  EXPECT_TRUE(message.is_right());
  EXPECT_EQ(fake_gpu::peer_groups(), 0);
}

// Each rank sends before it receives, all at a time: nobody waits in a circle.
TEST(GpuMessages, BothDirectionsAndRings) {
  for (const int ranks : {2, 3, 5})
    for (uint64_t seed = 0; seed <= 6; ++seed) {
      MessageJob job(ranks, seed);
      std::deque<Message> messages;
      std::vector<Started> started;
      for (int step = 1; step < ranks; ++step)
        for (int rank = 0; rank < ranks; ++rank)
          messages.emplace_back(rank, (rank + step) % ranks, kCount + static_cast<size_t>(step), 1, static_cast<uint32_t>(rank));
      for (Message& message : messages) started.push_back(message.send(job));
      for (Message& message : messages) started.push_back(message.receive(job));
      ASSERT_EQ(expect_all(job.finish(started), UZIP_OK), "");
      for (Message& message : messages) EXPECT_TRUE(message.is_right());
    }
}

// Many in flight with few tags, lengths that go either way, some ends in host memory: those of a tag keep their order, also
// where all are staged.
TEST(GpuMessages, ManyInAnyOrder) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    MessageJob job(3, seed, seed % 3 == 0 ? Config() : with_peers());
    std::mt19937_64 random(seed);
    std::deque<Message> messages;
    for (uint32_t i = 0; i < 150; ++i) {
      const int from = static_cast<int>(random() % 3);
      const int to = (from + 1 + static_cast<int>(random() % 2)) % 3;
      messages.emplace_back(from, to, random() % 4 == 0 ? 50 : kCount, static_cast<int>(random() % 2), i, random() % 8 != 0,
                            random() % 8 != 0);
    }
    std::vector<Started> started;
    size_t sent = 0, received = 0;
    while (sent + received < 2 * messages.size()) {
      const bool sends = received == messages.size() || (sent < messages.size() && random() % 3 != 0);
      started.push_back(sends ? messages[sent++].send(job) : messages[received++].receive(job));
      if (random() % 3 == 0) job.step();
    }
    ASSERT_EQ(expect_all(job.finish(started), UZIP_OK), "");
    for (Message& message : messages) ASSERT_TRUE(message.is_right());
    job.settle();
    EXPECT_EQ(job.fabric().unfinished(), 0u);
  }
}

/// An all-reduce of ints on the GPUs.
class Sum {
 public:
  explicit Sum(int ranks) {
    const TestGpu gpu{fake_gpu::plugin(), fake_gpu::kDevices, true};
    for (int rank = 0; rank < ranks; ++rank) {
      arrays_.emplace_back(gpu, gpu::MemoryKind::kDevice, rank, kSumCount * sizeof(int32_t));
      const std::vector<int32_t> values(kSumCount, rank + 1);
      arrays_.back().write(values.data());
    }
  }
  Started start(GpuJob& job, int rank) {
    void* const place = arrays_[static_cast<size_t>(rank)].data();
    return {rank, *job.start(rank, make_call(UZIP_ALLREDUCE, UZIP_IN_PLACE, place, kSumCount, UZIP_INT32))};
  }
  bool is_right() {
    const auto ranks = static_cast<int32_t>(arrays_.size());
    for (const GpuArray& array : arrays_) {
      std::vector<int32_t> values(kSumCount);
      array.read(values.data());
      if (values != std::vector<int32_t>(kSumCount, ranks * (ranks + 1) / 2)) return false;
    }
    return true;
  }

 private:
  static constexpr size_t kSumCount = 3000;
  std::vector<GpuArray> arrays_;
};

// Each rank makes its calls in an order of its own, but for the sums.
TEST(GpuMessages, BesideCollectives) {
  for (const int ranks : {2, 3})
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      MessageJob job(ranks, seed);
      std::mt19937_64 random(seed);
      std::deque<Message> messages;
      std::deque<Sum> sums;
      for (uint32_t i = 0; i < 12; ++i) {
        const int from = static_cast<int>(random() % static_cast<unsigned>(ranks));
        messages.emplace_back(from, (from + 1) % ranks, kCount, static_cast<int>(i), i);
      }
      for (int i = 0; i < 6; ++i) sums.emplace_back(ranks);
      std::vector<Started> started;
      std::vector<size_t> sums_at(static_cast<size_t>(ranks)), sends_at = sums_at, receives_at = sums_at;
      const auto start_next = [&](int rank) {
        const auto r = static_cast<size_t>(rank);
        const auto next_of = [&](size_t& at, auto end) -> Message* {
          while (at < messages.size() && (messages[at].*end)() != rank) ++at;
          return at < messages.size() ? &messages[at++] : nullptr;
        };
        switch (random() % 3) {
          case 0:
            if (sums_at[r] < sums.size()) started.push_back(sums[sums_at[r]++].start(job, rank));
            break;
          case 1:
            if (Message* const message = next_of(sends_at[r], &Message::from)) started.push_back(message->send(job));
            break;
          default:
            if (Message* const message = next_of(receives_at[r], &Message::to)) started.push_back(message->receive(job));
        }
      };
      const size_t all = 2 * messages.size() + sums.size() * static_cast<size_t>(ranks);
      while (started.size() < all) {
        start_next(static_cast<int>(random() % static_cast<unsigned>(ranks)));
        for (uint64_t i = random() % 8; i > 0; --i) job.step();
      }
      ASSERT_EQ(expect_all(job.finish(started), UZIP_OK), "") << seed;
      for (Message& message : messages) ASSERT_TRUE(message.is_right());
      for (Sum& sum : sums) ASSERT_TRUE(sum.is_right());
    }
}

// A rank that has begun a collective receives what it needs before the others come to it.
TEST(GpuMessages, ABegunCollectiveHoldsNothingUp) {
  MessageJob job(2);
  Sum sum(2);
  Message message(0, 1, kCount, 0, 1);
  const Started first = sum.start(job, 1);
  job.settle();
  ASSERT_EQ(expect_all(job.finish({message.receive(job), message.send(job)}), UZIP_OK), "");
  EXPECT_TRUE(message.is_right());
  ASSERT_EQ(expect_all(job.finish({first, sum.start(job, 0)}), UZIP_OK), "");
  EXPECT_TRUE(sum.is_right());
}

// The sender may code; what the receiver would have done does not matter.
TEST(GpuMessages, TheSenderChoosesTheCodec) {
  MessageJob job(2);
  uzip_options_t raw = UZIP_OPTIONS_INIT;
  raw.codec = "raw";
  Message message(0, 1, kCount, 0, 1);
  EXPECT_EQ(expect_all(job.finish({message.send(job, raw), message.receive(job)}), UZIP_OK), "");
  EXPECT_TRUE(message.is_right());
}

TEST(GpuMessages, ComeAfterWhatIsOnTheirStream) {
  for (const bool of_sender : {false, true}) {
    MessageJob job(2);
    Message message(0, 1, kCount, 0, 1);
    uzip_options_t options = UZIP_OPTIONS_INIT;
    options.stream = reinterpret_cast<void*>(0x77);
    fake_gpu::launch(options.stream, [] {}, true);
    const std::vector<Started> started = {of_sender ? message.send(job, options) : message.send(job),
                                          of_sender ? message.receive(job) : message.receive(job, options)};
    job.settle();
    EXPECT_FALSE(started[1].request->done());
    fake_gpu::allow(options.stream);
    EXPECT_EQ(expect_all(job.finish(started), UZIP_OK), "");
    EXPECT_TRUE(message.is_right());
  }
}

// As when they are staged: the receiver learns it, the sender goes on.
TEST(GpuMessages, AMismatchFailsTheReceive) {
  const QuietLog quiet;
  for (const bool early : {false, true}) {
    MessageJob job(2);
    Message message(0, 1, kCount, 0, 1);
    const auto run = [&](size_t count, DataType type) {
      std::vector<Started> started;
      if (early) started.push_back(message.send(job));
      job.settle();
      started.push_back({1, *job.start_recv(1, message.place(1), count, type, 0, 0)});
      if (!early) started.push_back(message.send(job));
      const Started receive = started[early ? 1 : 0], send = started[early ? 0 : 1];
      EXPECT_EQ(expect_all(job.finish({receive}), UZIP_ERR_MISMATCH), "");
      EXPECT_EQ(expect_all(job.finish({send}), UZIP_OK), "");
    };
    run(kCount - 1, UZIP_FP32);
    run(kCount, UZIP_INT32);
    EXPECT_EQ(expect_all(job.finish({message.send(job), message.receive(job)}), UZIP_OK), "");
    EXPECT_TRUE(message.is_right());
    job.settle();
    EXPECT_EQ(job.fabric().unfinished(), 0u);
  }
}

TEST(GpuMessages, WhoCantOpenTheOthersMemoryIsStaged) {
  const QuietLog quiet;
  for (const int refusing : {0, 1}) {
    MessageJob job(2);
    fake_gpu::refuse_peers(refusing);
    for (uint32_t turn = 0; turn < 3; ++turn) {
      Message message(0, 1, kCount, 0, turn);
      Message back(1, 0, kCount, 0, turn + 10);
      EXPECT_EQ(expect_all(job.finish({message.send(job), back.send(job), message.receive(job), back.receive(job)}), UZIP_OK), "");
      EXPECT_TRUE(message.is_right() && back.is_right());
      fake_gpu::refuse_peers(-1);
    }
  }
}

TEST(GpuMessages, AMessageThatCantBeStartedFailsAtBothEnds) {
  const QuietLog quiet;
  for (const int failing : {0, 1}) {
    MessageJob job(2);
    Message message(0, 1, kCount, 0, 1);
    ASSERT_EQ(expect_all(job.finish({message.send(job), message.receive(job)}), UZIP_OK), "");
    fake_gpu::fail_peers_start(failing);
    EXPECT_EQ(expect_all(job.finish({message.send(job), message.receive(job)}), UZIP_ERR_INTERNAL), "");
    fake_gpu::fail_peers_start(-1);
    // By another way all goes on.
    EXPECT_EQ(expect_all(job.finish({message.send(job), message.receive(job)}), UZIP_OK), "");
    EXPECT_TRUE(message.is_right());
  }
}

TEST(GpuMessages, ASendThatIsGivenUpFailsItsReceive) {
  const QuietLog quiet;
  MessageJob job(2);
  Message message(0, 1, kCount, 0, 1);
  const Started send = message.send(job);
  job.settle();
  send.request->fail(error(UZIP_ERR_TIMEOUT, "given up"));
  EXPECT_EQ(expect_all(job.finish({send, message.receive(job)}), UZIP_ERR_TIMEOUT, "given up"), "");
  EXPECT_EQ(expect_all(job.finish({message.send(job), message.receive(job)}), UZIP_OK), "");
  EXPECT_TRUE(message.is_right());
}

TEST(GpuMessages, AFreedCommunicatorAnswersWhoOffered) {
  const QuietLog quiet;
  MessageJob job(2);
  auto comm = job.make_communicator();
  job.join(comm);
  const TestGpu gpu{fake_gpu::plugin(), fake_gpu::kDevices, true};
  const GpuArray array(gpu, gpu::MemoryKind::kDevice, 0, kCount * sizeof(float));
  const auto send = job.start_send(0, array.data(), kCount, UZIP_FP32, 1, 0, nullptr, comm[0].comm.get());
  ASSERT_TRUE(send.ok());
  job.settle();
  EXPECT_FALSE((*send)->done());
  job.leave(comm, 1);
  EXPECT_EQ(expect_all(job.finish({{0, *send}}), UZIP_OK), "");
  job.leave(comm, 0);
}

TEST(GpuMessages, WhatNobodyExpectsIsDropped) {
  const QuietLog quiet;
  MessageJob job(2);
  Message message(0, 1, kCount, 0, 1);
  for (int turn = 0; turn < 2; ++turn) {
    const Started send = message.send(job);
    const CallStamp stamp = send.request->stamp();
    const std::string handle(sizeof(gpu::PeerHandle), '?');
    const auto say = [&] {
      for (uint8_t word = 0; word < 16; ++word) {
        if (word >= 1 && word <= 2) continue;  // an offer of it: it is the message's
        OfferNumber number{static_cast<OfferWord>(word), 1, static_cast<uint8_t>(UZIP_FP32)};
        job.comm(0).say_of_message(1, stamp, 0, number, word == 5 ? handle : "");
      }
    };
    say();
    job.settle();
    const Started receive = message.receive(job);
    say();
    EXPECT_EQ(expect_all(job.finish({send, receive}), UZIP_OK), "");
    say();
    job.settle();
    EXPECT_TRUE(message.is_right());
    EXPECT_EQ(job.fabric().unfinished(), 0u);
  }
}

TEST(GpuMessages, AHandleOfAnotherSizeIsNone) {
  const QuietLog quiet;
  MessageJob job(2);
  Message message(0, 1, kCount, 0, 1);
  const Started receive = message.receive(job);
  CallStamp stamp = receive.request->stamp();
  job.comm(0).say_of_message(1, stamp, 0, {OfferWord::kOfferHandle, 0, UZIP_FP32}, "short");
  EXPECT_EQ(expect_all(job.finish({receive}), UZIP_ERR_CORRUPT, "handle"), "");
}

}  // namespace
}  // namespace uzip
