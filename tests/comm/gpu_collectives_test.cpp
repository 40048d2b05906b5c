// Collectives on buffers in GPU memory, of a GPU that the tests make up: the right bits, the same as on the host,
// whichever ranks have a GPU and in whatever order work and messages end.
#include "algos/algorithm.hpp"
#include "comm/coll_case.hpp"
#include "comm/gpu_job.hpp"
#include "support/fake_gpu.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace uzip {
namespace {

using gpu::MemoryKind;

constexpr uzip_coll_t kColls[] = {UZIP_ALLREDUCE, UZIP_REDUCE_SCATTER, UZIP_REDUCE_SCATTERV, UZIP_ALLGATHER,
                                  UZIP_ALLGATHERV, UZIP_BCAST, UZIP_REDUCE, UZIP_GATHER, UZIP_SCATTER,
                                  UZIP_ALLTOALL, UZIP_SCAN, UZIP_EXSCAN};
constexpr uzip_dtype_t kTypes[] = {UZIP_BF16, UZIP_FP32, UZIP_INT32, UZIP_FP8_E5M2, UZIP_FP64};
constexpr MemoryKind kKinds[] = {MemoryKind::kDevice, MemoryKind::kManaged, MemoryKind::kHost, MemoryKind::kDevice};
struct Coding {
  const char* codec;
  int split_send;
};
constexpr Coding kCodings[] = {{"raw", -1}, {"lev", 0}, {"lev", 1}, {"lev:fastest", -1}};

std::vector<const char*> algorithms_of(uzip_coll_t coll) {
  std::string name = facts_of(coll).name;
  if (facts_of(coll).has_counts) name.pop_back();
  std::vector<const char*> names;
  for (const Algorithm* algorithm : algorithms())
    if (coll_name(algorithm->coll) == name) names.push_back(algorithm->name);
  return names;
}

/// The buffers of a case in memory of other kinds.
class Moved {
 public:
  Moved(const TestGpu& gpu, CollCase& test, int ranks, size_t turn) : test_(test) {
    for (int rank = 0; rank < ranks; ++rank)
      for (size_t which = 0; which < 2; ++which) move(gpu, rank, which, kKinds[(turn + static_cast<size_t>(rank)) % 4]);
  }
  ~Moved() {
    for (const Place& place : places_) test_.pass_instead(place.rank, place.which, nullptr);
  }
  Moved(const Moved&) = delete;
  Moved& operator=(const Moved&) = delete;
  /// To where the case looks for the results.
  void fetch() {
    for (const Place& place : places_) place.array.read(test_.memory(place.rank, place.which).data());
  }

 private:
  struct Place {
    int rank;
    size_t which;
    GpuArray array;
  };
  void move(const TestGpu& gpu, int rank, size_t which, MemoryKind kind) {
    const std::vector<unsigned char>& from = test_.memory(rank, which);
    if (kind == MemoryKind::kHost || from.empty()) return;
    places_.push_back({rank, which, GpuArray(gpu, kind, rank, from.size())});
    places_.back().array.write(from.data());
    test_.pass_instead(rank, which, reinterpret_cast<unsigned char*>(places_.back().array.data()));
  }

  CollCase& test_;
  std::vector<Place> places_;
};

std::string run_case(const TestGpu& gpu, LoopbackJob& job, CollCase& test, size_t turn, const uzip_options_t& options) {
  Moved moved(gpu, test, job.size(), turn);
  const auto statuses = job.run([&](int rank) { return test.args(rank, &options); });
  const std::string wrong = expect_all(statuses, UZIP_OK);
  if (wrong.empty()) {
    moved.fetch();
    return test.check();
  }
  return test.describe() + ", " + (options.algorithm ? options.algorithm : "auto") + ", " +
         (options.codec ? options.codec : "auto") + ": " + wrong;
}

uzip_options_t make_options(const char* algorithm, const Coding& coding, size_t chunk_bytes) {
  uzip_options_t options = UZIP_OPTIONS_INIT;
  options.algorithm = algorithm;
  options.codec = coding.codec;
  options.split_send = coding.split_send;
  options.chunk_bytes = chunk_bytes;
  return options;
}

/// Every collective, algorithm, codec and kind of memory, diagonally.
void run_all(const TestGpu& gpu, int ranks) {
  GpuJob job(gpu, ranks, stormy_gpu_wire(static_cast<uint64_t>(ranks)));
  const auto p = static_cast<size_t>(ranks);
  size_t turn = 0;
  for (uzip_coll_t coll : kColls) {
    for (const char* algorithm : algorithms_of(coll)) {
      for (size_t count : {size_t{0}, p + 1, size_t{257}, size_t{20001}}) {
        const Coding& coding = kCodings[turn % std::size(kCodings)];
        const uzip_dtype_t type = kTypes[turn % std::size(kTypes)];
        const Placement placement = kPlacements[turn / 3 % std::size(kPlacements)];
        std::vector<size_t> counts(p, count);
        if (facts_of(coll).has_counts) counts[turn % p] = 70;
        CollCase test({coll, type, UZIP_SUM, counts, placement, Values::kExact, turn, static_cast<int>(turn * 7 % p)});
        const size_t chunk = count > 10000 ? 32768 : 64 * uzip_dtype_size(type);
        ASSERT_EQ(run_case(gpu, job, test, turn, make_options(algorithm, coding, chunk)), "");
        ++turn;
      }
    }
  }
  job.settle();
  EXPECT_EQ(job.fabric().unfinished(), 0u);
}

/// One rank's frames are made by the GPU, another's by the CPU; the codec has no part in the bits, nor has the place.
void compare_with_host(const TestGpu& gpu, int ranks) {
  LoopbackJob host(ranks);
  GpuJob job(gpu, ranks, stormy_gpu_wire(200 + static_cast<uint64_t>(ranks)));
  size_t turn = 0;
  for (uzip_coll_t coll : {UZIP_ALLREDUCE, UZIP_REDUCE_SCATTERV, UZIP_REDUCE, UZIP_SCAN, UZIP_ALLGATHER}) {
    for (const char* algorithm : algorithms_of(coll)) {
      for (Values values : {Values::kSmooth, Values::kBits}) {
        std::vector<size_t> counts(static_cast<size_t>(ranks), 12001);
        if (facts_of(coll).has_counts) counts[0] = 17;
        CollCase test({coll, kTypes[turn % 2], UZIP_SUM, counts, Placement::kApart, values, turn});
        const auto plain = make_options(algorithm, kCodings[0], 16384);
        ASSERT_EQ(expect_all(host.run([&](int rank) { return test.args(rank, &plain); }), UZIP_OK), "");
        const uint64_t hash = test.hash();
        for (const Coding& coding : kCodings) {
          test.reset();
          ASSERT_EQ(run_case(gpu, job, test, turn, make_options(algorithm, coding, 16384)), "");
          ASSERT_EQ(test.hash(), hash) << test.describe() << " " << algorithm << coding.codec;
        }
        ++turn;
      }
    }
  }
}

class GpuCollectives : public testing::TestWithParam<int> {};

TEST_P(GpuCollectives, AreRight) {
  const TestGpu gpu = fake_gpu_for_tests(static_cast<uint64_t>(GetParam()));
  run_all(gpu, GetParam());
  const fake_gpu::Counters done = fake_gpu::counters();
  EXPECT_GT(std::min({done.encodings, done.decodings, done.reductions}), GetParam() > 1 ? 100 : -1);
}
TEST_P(GpuCollectives, SameBitsAsOnTheHost) { compare_with_host(fake_gpu_for_tests(100), GetParam()); }

INSTANTIATE_TEST_SUITE_P(Ranks, GpuCollectives, testing::Values(1, 2, 3, 4, 7));

/// The same on a GPU, with the plugin of this build.
class DeviceCollectives : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    gpu_ = real_gpu(&why);
    if (!gpu_.api) GTEST_SKIP() << why;
  }
  TestGpu gpu_;
};

TEST_F(DeviceCollectives, AreRight) {
  for (int ranks : {1, 2, 3, 5}) run_all(gpu_, ranks);
}
TEST_F(DeviceCollectives, SameBitsAsOnTheHost) {
  for (int ranks : {2, 3, 4}) compare_with_host(gpu_, ranks);
}

}  // namespace
}  // namespace uzip
