// Collectives that the GPUs of a host carry out among themselves, with GPUs that the tests make up: which calls these
// are and how the ranks agree, that results are right whatever way they took, and what ends those that can't end well.
#include "comm/api_job.hpp"
#include "comm/coll_case.hpp"
#include "comm/gpu_job.hpp"
#include "comm/gpu_peers.hpp"
#include "support/fake_gpu.hpp"
#include "support/fake_gpu_peers.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace uzip {
namespace {

Config with_peers() {
  Config config;
  config.gpu_peers = true;
  return config;
}

class PeerJob : public GpuJob {
 public:
  explicit PeerJob(int ranks, const LoopbackOptions& wire = {}, const Config& config = with_peers())
      : GpuJob(fake_gpu_for_tests(static_cast<uint64_t>(ranks) + wire.seed), ranks, wire, config) {}
};

/// A case's buffers on each rank's GPU.
class OnGpu {
 public:
  /// Of rank r on GPU r + `first`.
  OnGpu(CollCase& test, int ranks, int ranks_on_gpu, int first = 0) : test_(test), first_(first) {
    for (int rank = 0; rank < ranks; ++rank)
      for (size_t which = 0; which < 2; ++which)
        if (rank < ranks_on_gpu) move(rank, which);
  }
  ~OnGpu() {
    for (const Place& place : places_) {
      test_.pass_instead(place.rank, place.which, nullptr);
      fake_gpu::release(place.memory);
    }
  }
  OnGpu(const OnGpu&) = delete;
  OnGpu& operator=(const OnGpu&) = delete;
  void fetch() {
    for (const Place& place : places_) {
      std::vector<unsigned char>& to = test_.memory(place.rank, place.which);
      std::memcpy(to.data(), fake_gpu::behind(place.memory), to.size());
    }
  }

 private:
  struct Place {
    int rank;
    size_t which;
    std::byte* memory;
  };
  void move(int rank, size_t which) {
    const std::vector<unsigned char>& from = test_.memory(rank, which);
    if (from.empty()) return;
    std::byte* const memory = fake_gpu::allocate(gpu::MemoryKind::kDevice, (rank + first_) % fake_gpu::kDevices, from.size());
    std::memcpy(fake_gpu::behind(memory), from.data(), from.size());
    test_.pass_instead(rank, which, reinterpret_cast<unsigned char*>(memory));
    places_.push_back({rank, which, memory});
  }

  CollCase& test_;
  int first_;
  std::vector<Place> places_;
};

CaseShape shape_of(uzip_coll_t coll, int ranks, size_t count = 1000) {
  CaseShape shape;
  shape.coll = coll;
  shape.counts.assign(static_cast<size_t>(ranks), count);
  return shape;
}

/// Runs a case, fetches its results, and says what is wrong with them or with who made them; "" if nothing is.
/// `ways` gets, by rank, whether the peers carried it out.
std::string run(PeerJob& job, CollCase& test, int ranks_on_gpu, std::vector<bool>* ways = nullptr) {
  OnGpu moved(test, job.size(), ranks_on_gpu);
  uzip_coll_info_t info = {};
  info.struct_size = sizeof info;
  std::vector<uzip_coll_info_t> infos(static_cast<size_t>(job.size()), info);
  const auto statuses = job.run([&](int rank) {
    uzip_coll_args_t call = test.args(rank);
    call.info = &infos[static_cast<size_t>(rank)];
    return call;
  });
  if (const std::string failed = expect_all(statuses, UZIP_OK); !failed.empty()) return test.describe() + ": " + failed;
  moved.fetch();
  if (ways) ways->clear();
  for (const uzip_coll_info_t& told : infos)
    if (ways) ways->push_back(std::strcmp(told.algorithm, "gpu_peers") == 0);
  return test.check();
}

const std::vector<bool> kByPeers(2, true), kStaged(2, false);
constexpr uzip_coll_t kByPeersColls[] = {UZIP_ALLREDUCE, UZIP_REDUCE_SCATTER, UZIP_ALLGATHER, UZIP_REDUCE,
                                         UZIP_BCAST,     UZIP_GATHER,         UZIP_SCATTER,   UZIP_ALLTOALL};

TEST(GpuPeers, CollectivesAreRight) {
  for (const int ranks : {2, 3, 5}) {
    for (const uint64_t storm : {0, 1, 2}) {
      PeerJob job(ranks, storm ? stormy_gpu_wire(storm) : LoopbackOptions());
      uint64_t seed = 1;
      for (const uzip_coll_t coll : kByPeersColls)
        for (const size_t count : {size_t{1}, size_t{257}, size_t{5000}})
          for (const Placement placement : kPlacements) {
            CaseShape shape = shape_of(coll, ranks, count);
            shape.placement = placement;
            shape.type = seed % 2 == 0 ? UZIP_BF16 : UZIP_INT32;
            shape.seed = seed++;
            CollCase test(shape);
            std::vector<bool> ways;
            ASSERT_EQ(run(job, test, ranks, &ways), "");
            const bool by_peers = coll != UZIP_ALLTOALL || placement == Placement::kApart;
            EXPECT_EQ(ways, std::vector<bool>(static_cast<size_t>(ranks), by_peers)) << test.describe();
          }
      // Only the kernels of the staged way count.
      EXPECT_EQ(fake_gpu::counters().reductions, 0);
    }
  }
  EXPECT_EQ(fake_gpu::peer_groups(), 0);
}

TEST(GpuPeers, WhoCarriesOutWhat) {
  PeerJob job(2);
  const auto expect = [&](uzip_coll_t coll, const std::vector<bool>& expected) {
    CollCase test(shape_of(coll, 2));
    std::vector<bool> ways;
    ASSERT_EQ(run(job, test, 2, &ways), "");
    EXPECT_EQ(ways, expected) << test.describe();
  };
  for (const uzip_coll_t coll : kByPeersColls) expect(coll, kByPeers);
  expect(UZIP_SCAN, kStaged);
}

// Memory is taken by the first call that needs it.
TEST(GpuPeers, HostCallsTakeNothing) {
  PeerJob job(2);
  CollCase test(shape_of(UZIP_ALLREDUCE, 2));
  EXPECT_EQ(run(job, test, 0), "");
  EXPECT_EQ(fake_gpu::peer_groups(), 0);
  EXPECT_EQ(run(job, test, 2), "");
  EXPECT_EQ(fake_gpu::peer_groups(), 2);
}

TEST(GpuPeers, RanksInHostMemoryAreNoHindrance) {
  for (const uint64_t storm : {0, 1, 2, 3}) {
    PeerJob job(3, storm ? stormy_gpu_wire(storm) : LoopbackOptions());
    std::vector<bool> ways;
    for (const int on_gpu : {1, 2, 3, 2, 0, 3})
      for (const uzip_coll_t coll : kByPeersColls) {
        CollCase test(shape_of(coll, 3, 700));
        ASSERT_EQ(run(job, test, on_gpu, &ways), "");
        EXPECT_EQ(ways, std::vector<bool>(3, on_gpu == 3));
      }
  }
}

// Sums of floats that are rounded, by way of whoever.
TEST(GpuPeers, TheWayDoesNotChangeTheBits) {
  for (const uzip_coll_t coll : {UZIP_ALLREDUCE, UZIP_REDUCE_SCATTER, UZIP_REDUCE})
    for (const size_t count : {size_t{3}, size_t{300}, size_t{70000}}) {
      uint64_t bits = 0;
      PeerJob job(5);
      for (const int on_gpu : {5, 3, 0}) {
        CaseShape shape = shape_of(coll, 5, count);
        shape.type = UZIP_BF16;
        shape.values = Values::kSmooth;
        CollCase test(shape);
        ASSERT_EQ(run(job, test, on_gpu), "");
        if (on_gpu == 5) bits = test.hash();
        EXPECT_EQ(test.hash(), bits) << test.describe() << " with " << on_gpu << " ranks on GPUs";
      }
    }
}

TEST(GpuPeers, AnAlgorithmWithOtherBitsIsFollowed) {
  PeerJob job(3);
  uzip_options_t options = UZIP_OPTIONS_INIT;
  for (const char* const algorithm : {"two_shot", "ring"}) {
    options.algorithm = algorithm;
    CollCase test(shape_of(UZIP_ALLREDUCE, 3));
    OnGpu moved(test, 3, 3);
    EXPECT_EQ(expect_all(job.run([&](int rank) { return test.args(rank, &options); }), UZIP_OK), "");
    moved.fetch();
    EXPECT_EQ(test.check(), "");
    EXPECT_EQ(fake_gpu::counters().reductions > 0, algorithm == std::string("ring"));
  }
}

TEST(GpuPeers, OneThatRefusesIsEnough) {
  const QuietLog quiet;
  PeerJob job(3);
  fake_gpu::refuse_peers(1);
  for (int call = 0; call < 3; ++call) {
    CollCase test(shape_of(UZIP_ALLREDUCE, 3));
    std::vector<bool> ways;
    EXPECT_EQ(run(job, test, 3, &ways), "");
    EXPECT_EQ(ways, std::vector<bool>(3, false));
    fake_gpu::refuse_peers(-1);  // once is for ever
  }
}

TEST(GpuPeers, ASettingKeepsThemApart) {
  PeerJob job(2, {}, Config());
  CollCase test(shape_of(UZIP_ALLREDUCE, 2));
  std::vector<bool> ways;
  EXPECT_EQ(run(job, test, 2, &ways), "");
  EXPECT_EQ(ways, kStaged);
}

/// The numbers of those of `calls` that are coded, when the last of two ranks leaves so much of 100 bytes.
std::vector<int> coded_of(PeerJob& job, CollCase& test, int calls, unsigned percent) {
  fake_gpu::shrink_peers_to(1, percent);
  OnGpu moved(test, 2, 2);
  uzip_options_t options = UZIP_OPTIONS_INIT;
  options.codec = "lev";
  std::vector<int> coded;
  for (int i = 0; i < calls; ++i) {
    const int before = fake_gpu::coded_peer_calls();
    const auto statuses = job.run([&](int rank) {
      uzip_coll_args_t call = test.args(rank);
      call.options = &options;
      return call;
    });
    EXPECT_EQ(expect_all(statuses, UZIP_OK), "");
    const int more = fake_gpu::coded_peer_calls() - before;
    EXPECT_EQ(more % 2, 0);  // both ranks, or none
    if (more != 0) coded.push_back(i);
  }
  fake_gpu::shrink_peers_to(1, 71);
  moved.fetch();
  EXPECT_EQ(test.check(), "");
  return coded;
}

TEST(GpuPeers, CallsThatDoNotShrinkAreCodedNowAndThen) {
  for (const uint64_t storm : {0, 1}) {
    PeerJob job(2, storm ? stormy_gpu_wire(storm) : LoopbackOptions());
    CaseShape shape = shape_of(UZIP_ALLGATHER, 2);
    shape.type = UZIP_BF16;
    CollCase test(shape);
    const std::vector<int> always = {0, 1, 2, 3, 4}, rarely = {0, 8, 24, 56};
    EXPECT_EQ(coded_of(job, test, 5, 71), always);
    EXPECT_EQ(coded_of(job, test, 60, 100), rarely);
    // The next one is coded after 60 more, and shrinks again. Calls of another size are coded anyway.
    EXPECT_EQ(coded_of(job, test, 60, 71), std::vector<int>());
    CaseShape other = shape_of(UZIP_ALLGATHER, 2, 3000);
    other.type = UZIP_BF16;
    CollCase larger(other);
    EXPECT_EQ(coded_of(job, larger, 2, 71), (std::vector<int>{0, 1}));
    EXPECT_EQ(coded_of(job, test, 4, 71), (std::vector<int>{0, 1, 2, 3}));
  }
}

TEST(GpuPeers, CallsInFlightKeepTheirOrder) {
  for (uint64_t storm = 1; storm <= 6; ++storm) {
    PeerJob job(3, stormy_gpu_wire(storm));
    // Some with a rank in host memory; several are made before the first is decided.
    std::deque<CollCase> tests;  // they don't move
    for (uint64_t i = 0; i < 9; ++i) {
      CaseShape shape = shape_of(i % 3 == 2 ? UZIP_ALLGATHER : UZIP_ALLREDUCE, 3, 100 + 300 * i);
      shape.seed = i + storm;
      tests.emplace_back(shape);
    }
    std::vector<std::unique_ptr<OnGpu>> moved;
    for (size_t i = 0; i < tests.size(); ++i) moved.push_back(std::make_unique<OnGpu>(tests[i], 3, i % 4 == 1 ? 2 : 3));
    std::vector<Started> started;
    for (const int rank : {1, 0, 2})
      for (CollCase& test : tests) {
        const auto request = job.start(rank, test.args(rank));
        ASSERT_TRUE(request.ok()) << request.status().message();
        started.push_back({rank, *request});
        job.step();
      }
    ASSERT_EQ(expect_all(job.finish(started), UZIP_OK), "");
    for (size_t i = 0; i < tests.size(); ++i) {
      moved[i]->fetch();
      EXPECT_EQ(tests[i].check(), "") << i;
    }
  }
}

TEST(GpuPeers, ACallThatARankGivesUpEndsThemButNotTheCommunicator) {
  const QuietLog quiet;
  PeerJob job(2);
  CollCase test(shape_of(UZIP_ALLREDUCE, 2));
  ASSERT_EQ(run(job, test, 2), "");
  {
    OnGpu moved(test, 2, 2);
    const auto first = job.start(0, test.args(0));
    ASSERT_TRUE(first.ok());
    job.settle();
    EXPECT_FALSE((*first)->done());
    EXPECT_EQ((*first)->waits_for(), std::vector<int>{1});
    (*first)->fail(error(UZIP_ERR_TIMEOUT, "given up"));
    const auto second = job.start(1, test.args(1));
    ASSERT_TRUE(second.ok());
    const auto statuses = job.finish({{0, *first}, {1, *second}});
    EXPECT_EQ(expect_all(statuses, UZIP_ERR_TIMEOUT, "given up"), "");
  }
  // By another way all goes on.
  std::vector<bool> ways;
  test.reset();
  EXPECT_EQ(run(job, test, 2, &ways), "");
  EXPECT_EQ(ways, kStaged);
}

// Its GPU does not take the call, which the other one waits for.
TEST(GpuPeers, ACallThatCantBeStartedFailsOnAllRanks) {
  const QuietLog quiet;
  PeerJob job(2);
  CollCase test(shape_of(UZIP_ALLREDUCE, 2));
  ASSERT_EQ(run(job, test, 2), "");
  fake_gpu::fail_peers_start(1);
  {
    OnGpu moved(test, 2, 2);
    for (const Status& status : job.run([&](int rank) { return test.args(rank); })) EXPECT_EQ(status.code(), UZIP_ERR_INTERNAL);
  }
  fake_gpu::fail_peers_start(-1);
  std::vector<bool> ways;
  test.reset();
  EXPECT_EQ(run(job, test, 2, &ways), "");
  EXPECT_EQ(ways, kStaged);
}

TEST(GpuPeers, AnotherGpuOfTheRankIsAsGoodAsTheHost) {
  PeerJob job(2);
  CollCase test(shape_of(UZIP_ALLREDUCE, 2));
  ASSERT_EQ(run(job, test, 2), "");
  test.reset();
  OnGpu moved(test, 2, 2, 1);
  EXPECT_EQ(expect_all(job.run([&](int rank) { return test.args(rank); }), UZIP_OK), "");
  moved.fetch();
  EXPECT_EQ(test.check(), "");
  EXPECT_GT(fake_gpu::counters().reductions, 0);
}

TEST(GpuPeers, ComeAfterWhatIsOnTheirStream) {
  PeerJob job(2);
  CollCase test(shape_of(UZIP_ALLREDUCE, 2));
  OnGpu moved(test, 2, 2);
  uzip_options_t options = UZIP_OPTIONS_INIT;
  options.stream = reinterpret_cast<void*>(0x77);
  bool reached = false;
  fake_gpu::launch(options.stream, [&] { reached = true; }, true);
  const std::vector<Started> started = {{0, *job.start(0, test.args(0, &options))}, {1, *job.start(1, test.args(1))}};
  job.settle();
  EXPECT_FALSE(started[0].request->done() || started[1].request->done());
  fake_gpu::allow(options.stream);
  EXPECT_EQ(expect_all(job.finish(started), UZIP_OK), "");
  EXPECT_TRUE(reached);
  moved.fetch();
  EXPECT_EQ(test.check(), "");
}

TEST(GpuPeers, ACapturedStreamIsRefusedBeforeAnythingStarts) {
  PeerJob job(2);
  CollCase test(shape_of(UZIP_ALLREDUCE, 2));
  OnGpu moved(test, 2, 2);
  uzip_options_t options = UZIP_OPTIONS_INIT;
  options.stream = reinterpret_cast<void*>(0x77);
  fake_gpu::set_capturing(options.stream, true);
  EXPECT_EQ(job.start(0, test.args(0, &options)).status().code(), UZIP_ERR_UNSUPPORTED);
  fake_gpu::set_capturing(options.stream, false);
  EXPECT_EQ(expect_all(job.run([&](int rank) { return test.args(rank, rank == 0 ? &options : nullptr); }), UZIP_OK), "");
  moved.fetch();
  EXPECT_EQ(test.check(), "");
}

TEST(GpuPeers, BallotsOfNoUseAreDropped) {
  const QuietLog quiet;
  PeerJob job(2);
  CollCase test(shape_of(UZIP_ALLREDUCE, 2));
  for (int again = 0; again < 2; ++again) {
    OnGpu moved(test, 2, 2);
    const auto first = job.start(0, test.args(0));
    ASSERT_TRUE(first.ok());
    const std::string handle(sizeof(gpu::PeerHandle), '?');
    for (const uint32_t number : {3u, 2u, 4u, 1u, 77u, 5u, 3u}) job.comm(0).send_aside(1, (*first)->stamp(), number, number == 3 ? handle : "");
    const auto second = job.start(1, test.args(1));
    ASSERT_TRUE(second.ok());
    EXPECT_EQ(expect_all(job.finish({{0, *first}, {1, *second}}), UZIP_OK), "");
    moved.fetch();
    EXPECT_EQ(test.check(), "");
    test.reset();
  }
}

TEST(GpuPeers, AHandleOfAnotherSizeIsNone) {
  const QuietLog quiet;
  PeerJob job(2);
  CollCase test(shape_of(UZIP_ALLREDUCE, 2, 100000));
  OnGpu moved(test, 2, 2);
  const auto second = job.start(1, test.args(1));
  ASSERT_TRUE(second.ok());
  job.comm(0).send_aside(1, (*second)->stamp(), static_cast<uint32_t>(Ballot::kOffer), "short");
  job.settle();
  const auto first = job.start(0, test.args(0));
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(expect_all(job.finish({{0, *first}, {1, *second}}), UZIP_ERR_CORRUPT, "handle"), "");
}

TEST(GpuPeers, BlockingCallsAndGroupsOfTheApi) {
  fake_gpu::reset(5);
  constexpr size_t kCount = 3000;
  const TestGpu gpu{fake_gpu::plugin(), fake_gpu::kDevices, true};
  ApiJob job(2, {}, with_peers(), nullptr, gpu.api);
  job.run([&](int rank, uzip_comm_t comm) {
    std::vector<float> values(kCount, static_cast<float>(rank + 1)), result(kCount);
    GpuArray array(gpu, gpu::MemoryKind::kDevice, rank, kCount * sizeof(float));
    const auto expect = [&](float each) {
      array.read(result.data());
      EXPECT_EQ(result, std::vector<float>(kCount, each));
    };
    array.write(values.data());
    EXPECT_TRUE(succeeds(uzip_allreduce(UZIP_IN_PLACE, array.data(), kCount, UZIP_FP32, UZIP_SUM, comm)));
    expect(3);
    EXPECT_TRUE(succeeds(uzip_group_start()));
    EXPECT_TRUE(succeeds(uzip_allreduce(UZIP_IN_PLACE, array.data(), kCount, UZIP_FP32, UZIP_SUM, comm)));
    EXPECT_TRUE(succeeds(uzip_group_end()));
    expect(6);
    uzip_request_t request = UZIP_REQUEST_NULL;
    EXPECT_TRUE(succeeds(uzip_allreduce_init(UZIP_IN_PLACE, array.data(), kCount, UZIP_FP32, UZIP_SUM, comm, &request)));
    for (const float each : {12.0f, 24.0f, 48.0f}) {
      EXPECT_TRUE(succeeds(uzip_start(&request)));
      EXPECT_TRUE(succeeds(uzip_wait(&request)));
      expect(each);
    }
    EXPECT_TRUE(succeeds(uzip_request_free(&request)));
  });
  EXPECT_EQ(fake_gpu::counters().reductions, 0);
}

}  // namespace
}  // namespace uzip
