// Coding in threads: the same frames and elements as without, completions only from progress(), and an orderly end.
#include "comm/threaded_executor.hpp"

#include "codec/frame.hpp"
#include "codec/samples.hpp"
#include "comm/loopback_job.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

namespace uzip {
namespace {

struct Ended : Completion {
  Ended() { done = [](Completion* self, const Status& status) { static_cast<Ended*>(self)->end(status); }; }
  void end(const Status& given) {
    ++times;
    status = given;
  }
  int times = 0;
  Status status;
};

std::vector<std::byte> sample(size_t count, uint32_t seed) {
  const auto values = make_sample(UZIP_FP32, SampleKind::kGaussian, count, seed);
  const auto* begin = reinterpret_cast<const std::byte*>(values.data());
  return {begin, begin + values.size()};
}

size_t frame_room(const Codec& codec, size_t elements) {
  const EncodedSizes most = codec.bound(UZIP_FP32, elements);
  return most.plain + most.coded;
}

struct Coding {
  Coding(size_t elements, uint32_t seed)
      : src(sample(elements, seed)), room(frame_room(*codec, elements)), count(elements) {}

  EncodeTask encode_task() {
    EncodeTask task;
    task.codec = codec;
    task.level = CodecLevel::kBalanced;
    task.type = UZIP_FP32;
    task.src = src.data();
    task.count = count;
    task.plain = room;
    task.header = &header;
    return task;
  }
  DecodeTask decode_task() {
    DecodeTask task;
    task.header = &header;
    task.plain = {room.data(), header.plain_bytes};
    task.coded = {room.data() + header.plain_bytes, header.coded_bytes};
    task.dst = out;
    return task;
  }
  std::vector<std::byte> frame() const {
    const auto* begin = reinterpret_cast<const std::byte*>(&header);
    std::vector<std::byte> bytes(begin, begin + sizeof header);
    if (header.codec == kCodecRaw) return bytes;  // given up: there is no body
    bytes.insert(bytes.end(), room.begin(), room.begin() + static_cast<ptrdiff_t>(header.plain_bytes + header.coded_bytes));
    return bytes;
  }

  const Codec* codec = find_codec("lev");
  std::vector<std::byte> src, room, out;
  size_t count;
  FrameHeader header{};
  Ended ended;
};

TEST(ThreadedExecutor, CodesAsWithoutThreads) {
  constexpr size_t kSizes[] = {0, 1, 1000, 16384, 40000, 100000, 262144};
  for (int threads : {1, 3}) {
    ThreadedExecutor executor(threads);
    CpuExecutor plain;
    std::vector<std::unique_ptr<Coding>> codings;
    std::vector<std::vector<std::byte>> expected;
    for (uint32_t seed = 0; seed < 40; ++seed) {
      codings.push_back(std::make_unique<Coding>(kSizes[seed % std::size(kSizes)], seed));
      ASSERT_TRUE(plain.encode(codings.back()->encode_task(), nullptr).ok());
      expected.push_back(codings.back()->frame());
      codings.back()->header = {};
      std::fill(codings.back()->room.begin(), codings.back()->room.end(), std::byte{0xee});
    }
    const auto all = [&](auto start) {
      size_t pending = 0;
      for (auto& coding : codings) {
        coding->ended = Ended();
        const auto result = start(*coding);
        ASSERT_TRUE(result.ok()) << result.status().message();
        if (*result == Progress::kPending) ++pending;
        else coding->ended.times = 1;
        EXPECT_LE(coding->ended.times, 1);
      }
      EXPECT_GT(pending, 0u);
      while (executor.busy()) {
        executor.progress();
        std::this_thread::yield();
      }
      for (auto& coding : codings) {
        EXPECT_EQ(coding->ended.times, 1);
        EXPECT_TRUE(coding->ended.status.ok());
      }
    };
    all([&](Coding& coding) { return executor.encode(coding.encode_task(), &coding.ended); });
    for (size_t i = 0; i < codings.size(); ++i) EXPECT_TRUE(codings[i]->frame() == expected[i]) << i;
    all([&](Coding& coding) -> Result<Progress> {
      coding.out.assign(coding.src.size(), std::byte{0});
      if (coding.header.codec != kCodecRaw) return executor.decode(coding.decode_task(), &coding.ended);
      coding.out = coding.src;  // given up, being too short
      return Progress::kDone;
    });
    for (auto& coding : codings) EXPECT_TRUE(coding->out == coding->src);
  }
}

TEST(ThreadedExecutor, ADamagedFrameIsAStatus) {
  ThreadedExecutor executor(1);
  Coding coding(100000, 1);
  ASSERT_TRUE(CpuExecutor().encode(coding.encode_task(), nullptr).ok());
  coding.out.resize(coding.src.size());
  DecodeTask task = coding.decode_task();
  ASSERT_GT(task.coded.size(), 0u);
  task.coded = task.coded.first(task.coded.size() / 2);
  const auto result = executor.decode(task, &coding.ended);
  ASSERT_TRUE(result.ok() && *result == Progress::kPending);
  while (executor.busy()) executor.progress();
  EXPECT_EQ(coding.ended.status.code(), UZIP_ERR_CORRUPT);
  EXPECT_EQ(coding.ended.times, 1);
}

/// Sources of a reduction, one of them a frame, and what decoding and then reducing makes of them.
struct FusedReduction {
  FusedReduction(size_t elements, uint32_t seed, size_t sources, size_t frame_at) : coding(elements, seed) {
    EXPECT_TRUE(CpuExecutor().encode(coding.encode_task(), nullptr).ok());
    for (size_t i = 0; i < sources; ++i) plain.push_back(sample(elements, seed + 100 + static_cast<uint32_t>(i)));
    std::vector<const void*> decoded;
    for (const auto& source : plain) decoded.push_back(source.data());
    pointers = decoded;
    pointers.insert(pointers.begin() + static_cast<ptrdiff_t>(frame_at), nullptr);
    decoded.insert(decoded.begin() + static_cast<ptrdiff_t>(frame_at), coding.src.data());
    expected.resize(elements * 4);
    reduce(UZIP_AVG, UZIP_FP32, expected.data(), decoded, elements, decoded.size());
    result.assign(elements * 4, std::byte{0x5a});
  }
  DecodeReduceTask task() {
    DecodeReduceTask task;
    task.op = UZIP_AVG;
    task.type = UZIP_FP32;
    task.dst = result.data();
    task.sources = pointers;
    task.count = coding.count;
    task.average_over = pointers.size();
    task.frame = coding.decode_task();
    return task;
  }
  /// Starts it as Round does: whose list of sources is soon another one's.
  Result<Progress> start(Executor& executor) {
    const std::vector<const void*> kept = pointers;
    const Result<Progress> progress = executor.decode_reduce(task(), &coding.ended);
    pointers.assign(pointers.size(), nullptr);
    pointers = kept;
    return progress;
  }

  Coding coding;
  std::vector<std::vector<std::byte>> plain;
  std::vector<const void*> pointers;
  std::vector<std::byte> expected, result;
};

TEST(ThreadedExecutor, ReducesFromFramesToTheSameBits) {
  ThreadedExecutor threaded(2);
  CpuExecutor here;
  ASSERT_TRUE(threaded.fuses() && here.fuses());
  for (Executor* executor : {static_cast<Executor*>(&here), static_cast<Executor*>(&threaded)}) {
    std::vector<std::unique_ptr<FusedReduction>> all;
    for (uint32_t seed = 0; seed < 12; ++seed) {
      const size_t elements[] = {5000, 100000, 262144};
      all.push_back(std::make_unique<FusedReduction>(elements[seed % 3], seed, seed % 4, seed % 4 / 2));
    }
    size_t pending = 0;
    for (auto& one : all) {
      const auto progress = one->start(*executor);
      ASSERT_TRUE(progress.ok()) << progress.status().message();
      pending += *progress == Progress::kPending;
    }
    EXPECT_EQ(pending > 0, executor == &threaded);
    while (executor->busy()) executor->progress();
    for (auto& one : all) {
      EXPECT_TRUE(one->coding.ended.status.ok());
      EXPECT_TRUE(one->result == one->expected);
    }
  }
}

/// With a checksum, too: a value that is changed and decodes.
TEST(ThreadedExecutor, ADamagedFrameIsNotReduced) {
  ThreadedExecutor threaded(1);
  CpuExecutor here;
  for (Executor* executor : {static_cast<Executor*>(&here), static_cast<Executor*>(&threaded)}) {
    for (bool checksum : {false, true}) {
      FusedReduction one(100000, 3, 2, 1);
      ASSERT_NE(one.coding.header.codec, kCodecRaw);
      if (checksum) {
        add_checksum(one.coding.src, one.coding.header);
        one.coding.room[1000] ^= std::byte{1};  // in the plain part
      } else {
        one.coding.header.coded_bytes -= 16;
      }
      const auto progress = one.start(*executor);
      while (executor->busy()) executor->progress();
      const Status status = progress.ok() ? one.coding.ended.status : progress.status();
      EXPECT_EQ(status.code(), UZIP_ERR_CORRUPT);
      for (std::byte byte : one.result) ASSERT_EQ(byte, std::byte{0x5a});
    }
  }
}

TEST(ThreadedExecutor, EndsInTheMiddleOfWork) {
  for (uint32_t round = 0; round < 20; ++round) {
    std::vector<std::unique_ptr<Coding>> codings;
    for (uint32_t i = 0; i < 6; ++i) codings.push_back(std::make_unique<Coding>(200000, i));
    {
      ThreadedExecutor executor(2);
      for (auto& coding : codings) ASSERT_TRUE(executor.encode(coding->encode_task(), &coding->ended).ok());
      if (round % 2) executor.progress();
    }
    // Nobody writes any more.
    for (auto& coding : codings) std::fill(coding->room.begin(), coding->room.end(), std::byte{7});
    std::this_thread::yield();
    for (auto& coding : codings) EXPECT_EQ(coding->room.front(), std::byte{7});
  }
}

TEST(ThreadedExecutor, AsManyThreadsAsAreWanted) {
  EXPECT_EQ(choose_codec_threads(0, 1), 0);
  EXPECT_EQ(choose_codec_threads(7, 1000), 7);
  EXPECT_EQ(choose_codec_threads(-1, 1 << 20), 0);
  EXPECT_GE(choose_codec_threads(-1, 1), 0);
  EXPECT_LE(choose_codec_threads(-1, 1), 2);
}

/// Collectives whose pieces are coded in threads give the bits of plain ones.
TEST(ThreadedExecutor, CollectivesGiveTheSameBits) {
  constexpr int kRanks = 3;
  constexpr size_t kCount = 700001;
  std::vector<std::vector<std::byte>> results;
  for (const char* codec : {"raw", "lev"}) {
    Config config;
    config.codec = codec;
    config.codec_threads = 2;
    config.chunk_bytes = 256 << 10;
    config.checksum = true;
    LoopbackJob job(kRanks, {}, config);
    std::vector<std::vector<std::byte>> in, out(kRanks, std::vector<std::byte>(kCount * 4));
    for (uint32_t rank = 0; rank < kRanks; ++rank) in.push_back(sample(kCount, rank));
    job.on_all_ranks([&](int rank) {
      const auto r = static_cast<size_t>(rank);
      std::unique_lock lock(job.engine(rank).mutex());
      const auto request = job.start(rank, make_call(UZIP_ALLREDUCE, in[r].data(), out[r].data(), kCount));
      ASSERT_TRUE(request.ok());
      job.engine(rank).wait(**request, lock);
      EXPECT_TRUE((*request)->status().ok()) << (*request)->status().message();
      job.engine(rank).release(*request);
    });
    for (const auto& result : out) results.push_back(result);
  }
  for (const auto& result : results)
    EXPECT_EQ(std::memcmp(result.data(), results.front().data(), result.size()), 0);
}

}  // namespace
}  // namespace uzip
