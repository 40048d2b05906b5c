// Collectives that the GPUs of a host carry out among themselves, with GPUs that the tests make up: which calls these
// are, that their results are right and in order with streams, and what ends those that can't end well.
#include "comm/coll_case.hpp"
#include "comm/gpu_peers.hpp"
#include "comm/loopback_job.hpp"
#include "support/fake_gpu.hpp"
#include "support/fake_gpu_peers.hpp"

#include <gtest/gtest.h>

#include <barrier>
#include <cstring>
#include <string>
#include <vector>

namespace uzip {
namespace {

Config with_peers() {
  Config config;
  config.gpu_peers = true;
  return config;
}

class PeerJob : public LoopbackJob {
 public:
  explicit PeerJob(int ranks, const Config& config = with_peers()) : LoopbackJob(ranks, {}, config) {
    fake_gpu::reset(static_cast<uint64_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank) engine(rank).gpus().use(fake_gpu::plugin());
  }

  /// Opens the GPUs to one another. Fails unless all ranks see the same.
  bool connect() {
    std::vector<std::byte> told(static_cast<size_t>(size()) * 4096);
    std::barrier<> all_there(size());
    on_all_ranks([&](int rank) {
      (void)fake_gpu::plugin()->set_device(rank % fake_gpu::kDevices);
      const auto exchange = [&](const void* mine, void* all, size_t bytes) {
        std::memcpy(told.data() + static_cast<size_t>(rank) * bytes, mine, bytes);
        all_there.arrive_and_wait();
        std::memcpy(all, told.data(), bytes * static_cast<size_t>(size()));
        all_there.arrive_and_wait();
        return Status();
      };
      Engine& own = engine(rank);
      auto peers = GpuPeers::connect(own.gpus(), own.config(), rank, size(), exchange);
      EXPECT_TRUE(peers.ok());
      comm(rank).use(std::move(*peers));
    });
    int connected = 0;
    for (int rank = 0; rank < size(); ++rank) connected += comm(rank).peers() != nullptr;
    EXPECT_TRUE(connected == 0 || connected == size());
    return connected > 0;
  }
};

/// A case's buffers on each rank's GPU.
class OnGpu {
 public:
  OnGpu(CollCase& test, int ranks, int ranks_on_gpu) : test_(test) {
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
    std::byte* const memory = fake_gpu::allocate(gpu::MemoryKind::kDevice, rank % fake_gpu::kDevices, from.size());
    std::memcpy(fake_gpu::behind(memory), from.data(), from.size());
    test_.pass_instead(rank, which, reinterpret_cast<unsigned char*>(memory));
    places_.push_back({rank, which, memory});
  }

  CollCase& test_;
  std::vector<Place> places_;
};

CaseShape shape_of(uzip_coll_t coll, int ranks, size_t count = 1000) {
  CaseShape shape;
  shape.coll = coll;
  shape.counts.assign(static_cast<size_t>(ranks), count);
  return shape;
}

/// What was sent tells who carried a call out: the fake peers always say 71 bytes.
constexpr uint64_t kWireOfPeers = 71;

TEST(GpuPeers, CollectivesAreRight) {
  for (const int ranks : {2, 3, 5}) {
    PeerJob job(ranks);
    ASSERT_TRUE(job.connect());
    uint64_t seed = 1;
    for (const uzip_coll_t coll : {UZIP_ALLREDUCE, UZIP_REDUCE_SCATTER, UZIP_ALLGATHER})
      for (const size_t count : {size_t{1}, size_t{257}, size_t{5000}})
        for (const Placement placement : kPlacements) {
          CaseShape shape = shape_of(coll, ranks, count);
          shape.placement = placement;
          shape.type = seed % 2 == 0 ? UZIP_BF16 : UZIP_INT32;
          shape.seed = seed++;
          CollCase test(shape);
          OnGpu moved(test, ranks, ranks);
          const auto statuses = job.run([&](int rank) { return test.args(rank); });
          ASSERT_EQ(expect_all(statuses, UZIP_OK), "") << test.describe();
          moved.fetch();
          ASSERT_EQ(test.check(), "") << test.describe();
        }
    // Only the encoder of the staged way counts.
    EXPECT_EQ(fake_gpu::counters().reductions, 0);
  }
  EXPECT_EQ(fake_gpu::peer_groups(), 0);
}

TEST(GpuPeers, WhoCarriesOutWhat) {
  PeerJob job(2);
  ASSERT_TRUE(job.connect());
  for (const uzip_coll_t coll : {UZIP_ALLREDUCE, UZIP_REDUCE_SCATTER, UZIP_ALLGATHER, UZIP_BCAST, UZIP_ALLTOALL}) {
    CollCase test(shape_of(coll, 2));
    OnGpu moved(test, 2, 2);
    uzip_coll_info_t info = {};
    info.struct_size = sizeof info;
    std::vector<uzip_coll_info_t> infos(2, info);
    const auto statuses = job.run([&](int rank) {
      uzip_coll_args_t call = test.args(rank);
      call.info = &infos[static_cast<size_t>(rank)];
      return call;
    });
    ASSERT_EQ(expect_all(statuses, UZIP_OK), "");
    const bool here = coll != UZIP_BCAST && coll != UZIP_ALLTOALL;
    for (const uzip_coll_info_t& told : infos) EXPECT_EQ(told.wire_bytes == kWireOfPeers, here) << test.describe();
  }
  // In host memory all is as ever.
  CollCase test(shape_of(UZIP_ALLREDUCE, 2));
  EXPECT_EQ(expect_all(job.run([&](int rank) { return test.args(rank); }), UZIP_OK), "");
  EXPECT_EQ(test.check(), "");
}

TEST(GpuPeers, OneThatRefusesIsEnough) {
  const QuietLog quiet;
  PeerJob job(3);
  fake_gpu::refuse_peers(1);
  EXPECT_FALSE(job.connect());
  fake_gpu::refuse_peers(-1);
  EXPECT_EQ(fake_gpu::peer_groups(), 0);
  CollCase test(shape_of(UZIP_ALLREDUCE, 3));
  OnGpu moved(test, 3, 3);
  EXPECT_EQ(expect_all(job.run([&](int rank) { return test.args(rank); }), UZIP_OK), "");
  moved.fetch();
  EXPECT_EQ(test.check(), "");
}

TEST(GpuPeers, ASettingKeepsThemApart) {
  PeerJob job(2, Config());
  EXPECT_FALSE(job.connect());
}

TEST(GpuPeers, OneRankInHostMemoryIsFound) {
  const QuietLog quiet;
  PeerJob job(2);
  ASSERT_TRUE(job.connect());
  CollCase test(shape_of(UZIP_ALLREDUCE, 2, 100000));
  OnGpu moved(test, 2, 1);
  EXPECT_EQ(expect_all(job.run([&](int rank) { return test.args(rank); }), UZIP_ERR_MISMATCH), "");
}

TEST(GpuPeers, ACallThatOneRankLacksEndsWithItsCommunicator) {
  const QuietLog quiet;
  PeerJob job(2);
  ASSERT_TRUE(job.connect());
  CollCase test(shape_of(UZIP_ALLREDUCE, 2));
  OnGpu moved(test, 2, 2);
  const auto request = job.start(0, test.args(0));
  ASSERT_TRUE(request.ok());
  job.settle();
  EXPECT_FALSE((*request)->done());
  (*request)->fail(error(UZIP_ERR_TIMEOUT, "given up"));
  EXPECT_TRUE(job.run_until([&] { return (*request)->drained(); }));
  EXPECT_EQ((*request)->status().code(), UZIP_ERR_TIMEOUT);
  job.engine(0).release(*request);
  // Nothing that needs the others' GPUs can succeed any more.
  const auto next = job.start(0, test.args(0));
  ASSERT_TRUE(next.ok());
  EXPECT_FALSE((*next)->status().ok());
  job.engine(0).release(*next);
}

TEST(GpuPeers, ACapturedStreamIsRefusedBeforeAnythingStarts) {
  PeerJob job(2);
  ASSERT_TRUE(job.connect());
  CollCase test(shape_of(UZIP_ALLREDUCE, 2));
  OnGpu moved(test, 2, 2);
  void* stream = nullptr;
  ASSERT_EQ(fake_gpu::plugin()->create_stream(&stream), 0);
  uzip_options_t options = UZIP_OPTIONS_INIT;
  options.stream = stream;
  fake_gpu::set_capturing(stream, true);
  EXPECT_EQ(job.start(0, test.args(0, &options)).status().code(), UZIP_ERR_UNSUPPORTED);
  fake_gpu::set_capturing(stream, false);
  EXPECT_EQ(expect_all(job.run([&](int rank) { return test.args(rank, rank == 0 ? &options : nullptr); }), UZIP_OK), "");
  moved.fetch();
  EXPECT_EQ(test.check(), "");
}

}  // namespace
}  // namespace uzip
