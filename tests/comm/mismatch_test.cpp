// Ranks that call different things: every rank that takes part gets UZIP_ERR_MISMATCH with the
// rank and both calls, and the next call is right.
#include "comm/communicator_inspector.hpp"
#include "comm/loopback_job.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace uzip {
namespace {

constexpr size_t kRoom = 200000;  // elements in the buffers, more than any call here touches

LoopbackOptions any_wire(uint64_t seed) {
  LoopbackOptions wire;
  wire.seed = seed;
  wire.longest_delay = 10;
  wire.reorder_senders = true;
  wire.reorder_messages = seed % 2 == 1;
  wire.random_modes = true;
  wire.eager_limit = 2000;
  return wire;
}

uzip_options_t options_with(const char* algorithm, const char* codec, size_t chunk_bytes) {
  uzip_options_t options = UZIP_OPTIONS_INIT;
  options.algorithm = algorithm;
  options.codec = codec;
  options.chunk_bytes = chunk_bytes;
  return options;
}

struct Mismatch {
  const char* name;
  const char* said;  // what must stand in the messages of all
  uzip_coll_t coll;
  std::function<void(uzip_coll_args_t&)> change;
};

const size_t kCounts[4] = {700, 700, 700, 700};
const size_t kOtherCounts[4] = {701, 699, 700, 700};

std::vector<Mismatch> mismatches() {
  static const uzip_options_t kRing = options_with("ring", nullptr, 0);
  static const uzip_options_t kTwoShot = options_with("two_shot", nullptr, 0);
  static const uzip_options_t kSmallChunk = options_with(nullptr, nullptr, 512);
  static const uzip_options_t kCoded = options_with(nullptr, "lev", 0);
  const auto use = [](const uzip_options_t& options) {
    return [&options](uzip_coll_args_t& call) { call.options = &options; };
  };
  return {
      {"count", "elements", UZIP_ALLREDUCE, [](auto& call) { call.count -= 1; }},
      {"much smaller count", "allreduce of ", UZIP_ALLREDUCE, [](auto& call) { call.count = 1; }},
      {"much larger count", "elements", UZIP_ALLREDUCE, [](auto& call) { call.count = 150000; }},
      {"type", "int32", UZIP_ALLREDUCE, [](auto& call) { call.dtype = UZIP_INT32; }},
      {"wider type", "fp64", UZIP_ALLREDUCE, [](auto& call) { call.dtype = UZIP_FP64; }},
      {"operation", "max", UZIP_ALLREDUCE, [](auto& call) { call.op = UZIP_MAX; }},
      {"collective", "allgather", UZIP_ALLREDUCE, [](auto& call) { call.coll = UZIP_ALLGATHER; }},
      {"barrier", "barrier", UZIP_ALLREDUCE,
       [](auto& call) { call.coll = UZIP_BARRIER, call.options = nullptr; }},
      {"call instead of a barrier", "allreduce", UZIP_BARRIER,
       [](auto& call) { call.coll = UZIP_ALLREDUCE; }},
      {"algorithm", "algorithm", UZIP_ALLREDUCE, use(kRing)},
      {"algorithm of an all-gather", "algorithm", UZIP_ALLGATHER, use(kTwoShot)},
      {"chunk", "chunk", UZIP_ALLREDUCE, use(kSmallChunk)},
      {"codec", "codec", UZIP_ALLREDUCE, use(kCoded)},
      {"block", "elements", UZIP_REDUCE_SCATTER, [](auto& call) { call.count += 3; }},
      {"counts", "counts", UZIP_ALLGATHERV, [](auto& call) { call.counts = kOtherCounts; }},
      {"counts of a reduction", "counts", UZIP_REDUCE_SCATTERV,
       [](auto& call) { call.counts = kOtherCounts; }},
  };
}

class Buffers {
 public:
  explicit Buffers(int ranks) : in_(static_cast<size_t>(ranks) * kRoom), out_(in_.size()) {}
  double* in(int rank) { return in_.data() + static_cast<size_t>(rank) * kRoom; }
  double* out(int rank) { return out_.data() + static_cast<size_t>(rank) * kRoom; }

 private:
  std::vector<double> in_, out_;
};

// What all but one rank call.
uzip_coll_args_t usual_call(const Mismatch& mismatch, Buffers& buffers, int rank, size_t count) {
  static const uzip_options_t kUsual = options_with(nullptr, "raw", 0);
  static const uzip_options_t kUsualRing = options_with("ring", "raw", 0);
  static const uzip_options_t kUsualTwoShot = options_with("two_shot", "raw", 0);
  uzip_coll_args_t call = make_call(mismatch.coll, buffers.in(rank), buffers.out(rank), count);
  call.counts = kCounts;
  call.options = mismatch.coll == UZIP_ALLREDUCE   ? &kUsualTwoShot
                 : mismatch.coll == UZIP_ALLGATHER ? &kUsualRing
                                                   : &kUsual;
  return call;
}

// The call of rank `odd` is changed.
std::vector<Status> run_mismatch(LoopbackJob& job, Buffers& buffers, const Mismatch& mismatch,
                                 size_t count, int odd) {
  return job.run([&](int rank) {
    uzip_coll_args_t call = usual_call(mismatch, buffers, rank, count);
    if (rank == odd) mismatch.change(call);
    return call;
  });
}

class Mismatches : public testing::TestWithParam<int> {};

TEST_P(Mismatches, AreFoundByAllRanks) {
  const QuietLog quiet;
  const int ranks = GetParam();
  Buffers buffers(ranks);
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    LoopbackJob job(ranks, any_wire(seed));
    for (const Mismatch& mismatch : mismatches()) {
      for (size_t count : {size_t{5}, size_t{1000}, size_t{20000}}) {
        const int odd = static_cast<int>((seed + count) % static_cast<uint64_t>(ranks));
        const auto statuses = run_mismatch(job, buffers, mismatch, count, odd);
        ASSERT_EQ(expect_all(statuses, UZIP_ERR_MISMATCH, "rank "), "") << mismatch.name << count;
        ASSERT_EQ(expect_all(statuses, UZIP_ERR_MISMATCH, " where rank "), "") << mismatch.name;
        ASSERT_EQ(expect_all(statuses, UZIP_ERR_MISMATCH, mismatch.said), "") << mismatch.name;
        ASSERT_EQ(job.works(), "") << "after " << mismatch.name << count;
      }
    }
    job.settle();
    EXPECT_EQ(job.fabric().unfinished(), 0u);
  }
}

// Who calls with nothing to do is done at once and can't know; the others must not wait for it.
TEST_P(Mismatches, OfNothingAreFoundByTheOthers) {
  const QuietLog quiet;
  const int ranks = GetParam();
  Buffers buffers(ranks);
  static const size_t kNothing[4] = {};
  for (const char* algorithm : {"ring", "two_shot", "recursive_doubling"}) {
    const uzip_options_t options = options_with(algorithm, nullptr, 0);
    for (uint64_t seed = 1; seed <= 12; ++seed) {
      LoopbackJob job(ranks, any_wire(seed));
      const int odd = static_cast<int>(seed % static_cast<uint64_t>(ranks));
      const auto statuses = job.run([&](int rank) {
        auto call = make_call(UZIP_ALLREDUCE, buffers.in(rank), buffers.out(rank), 999);
        call.counts = kNothing;
        call.options = &options;
        if (rank == odd && seed % 3 == 0) call.coll = UZIP_ALLGATHERV, call.options = nullptr;
        if (rank == odd) call.count = 0;
        return call;
      });
      for (int rank = 0; rank < ranks; ++rank) {
        const Status& status = statuses[static_cast<size_t>(rank)];
        if (rank == odd && status.ok()) continue;
        EXPECT_EQ(status.code(), UZIP_ERR_MISMATCH) << status.message();
      }
      ASSERT_EQ(job.works(), "");
      job.settle();
      EXPECT_EQ(job.fabric().unfinished(), 0u);
    }
  }
}

// The rank is late: everything has arrived, and been given up, before it calls.
TEST_P(Mismatches, AreFoundByWhoComesLate) {
  const QuietLog quiet;
  const int ranks = GetParam();
  Buffers buffers(ranks);
  for (const Mismatch& mismatch : mismatches()) {
    LoopbackJob job(ranks, any_wire(1));
    std::vector<Started> started;
    for (int rank = 0; rank < ranks; ++rank) {
      uzip_coll_args_t call = usual_call(mismatch, buffers, rank, 1000);
      if (rank == ranks - 1) {
        job.settle();
        mismatch.change(call);
      }
      Result<Request*> request = job.start(rank, call);
      ASSERT_TRUE(request.ok());
      started.push_back({rank, *request});
    }
    ASSERT_EQ(expect_all(job.finish(started), UZIP_ERR_MISMATCH), "") << mismatch.name;
    ASSERT_EQ(job.works(), "");
    job.settle();
    EXPECT_EQ(job.fabric().unfinished(), 0u) << mismatch.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Mismatches, testing::Range(2, 5));

// A rank may be calls ahead of the others when they find out.
TEST(MismatchesInFlight, OnlyTheWrongCallFails) {
  const QuietLog quiet;
  constexpr int kRanks = 3, kCalls = 20, kWrong = 7;
  LoopbackJob job(kRanks, any_wire(2));
  std::vector<std::vector<int32_t>> out(kRanks * kCalls, std::vector<int32_t>(100));
  const std::vector<int32_t> in(100, 1);
  std::vector<Started> started;
  for (int rank = 0; rank < kRanks; ++rank) {
    for (int call = 0; call < kCalls; ++call) {
      const size_t count = call == kWrong && rank == 1 ? 99 : 100;
      auto& result = out[static_cast<size_t>(rank * kCalls + call)];
      started.push_back({rank, *job.start(rank, make_call(UZIP_ALLREDUCE, in.data(), result.data(),
                                                          count, UZIP_INT32))});
      job.step();
    }
  }
  const std::vector<Status> statuses = job.finish(started);
  for (size_t i = 0; i < statuses.size(); ++i) {
    if (i % kCalls == kWrong) {
      EXPECT_EQ(statuses[i].code(), UZIP_ERR_MISMATCH);
    } else {
      EXPECT_TRUE(statuses[i].ok()) << statuses[i].message();
      EXPECT_EQ(out[i], std::vector<int32_t>(100, kRanks));
    }
  }
}

// What was told of calls that were not made yet is forgotten when they have been made.
TEST(MismatchesInFlight, LeaveNothingBehind) {
  const QuietLog quiet;
  LoopbackJob job(4, any_wire(3));
  Buffers buffers(4);
  const Mismatch mismatch = mismatches()[0];
  for (int turn = 0; turn < 200; ++turn) {
    const auto statuses = run_mismatch(job, buffers, mismatch, 10, turn % 4);
    ASSERT_EQ(expect_all(statuses, UZIP_ERR_MISMATCH), "");
  }
  job.settle();
  for (int rank = 0; rank < 4; ++rank)
    EXPECT_EQ(CommunicatorInspector(job.comm(rank)).remembered(), 0u);
}

}  // namespace
}  // namespace uzip
