// What calls on buffers in GPU memory promise beside the right result: order with streams, errors, bounded memory, no
// allocation when a call is repeated.
#include "comm/gpu_job.hpp"
#include "comm/user_op.hpp"
#include "gpu/gpu_memory.hpp"
#include "support/fake_gpu.hpp"

#include <gtest/gtest.h>

#include <dlfcn.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace uzip {
namespace {

using gpu::MemoryKind;

constexpr size_t kCount = 50000;
void* const kStream = reinterpret_cast<void*>(0x77);

std::vector<float> numbers(int rank, size_t count = kCount) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>((i * 7 + static_cast<size_t>(rank)) % 100) - 50;
  return values;
}

/// Two ranks with a source and a destination in GPU memory.
class GpuCalls : public testing::Test {
 protected:
  explicit GpuCalls(const Config& config = Config()) : gpu_(fake_gpu_for_tests(11)), job_(gpu_, 2, stormy_gpu_wire(11), config) {
    for (int rank = 0; rank < 2; ++rank) {
      sources_.push_back(GpuArray(gpu_, MemoryKind::kDevice, rank, kCount * sizeof(float)));
      results_.push_back(GpuArray(gpu_, MemoryKind::kDevice, rank, kCount * sizeof(float)));
      sources_.back().write(numbers(rank).data());
    }
    options_.codec = "lev";
    options_.chunk_bytes = 16384;
  }

  uzip_coll_args_t sum(int rank) {
    const auto r = static_cast<size_t>(rank);
    uzip_coll_args_t call = make_call(UZIP_ALLREDUCE, sources_[r].data(), results_[r].data(), kCount);
    call.options = &options_;
    return call;
  }
  std::string run_sum() {
    const std::string wrong = expect_all(job_.run([&](int rank) { return sum(rank); }), UZIP_OK);
    return wrong.empty() ? check_sum() : wrong;
  }
  std::string check_sum() const {
    const std::vector<float> a = numbers(0), b = numbers(1);
    std::vector<float> result(kCount);
    for (const GpuArray& array : results_) {
      array.read(result.data());
      for (size_t i = 0; i < kCount; ++i)
        if (result[i] != a[i] + b[i]) return "element " + std::to_string(i) + " is wrong";
    }
    return "";
  }
  /// What is wrong with a call of rank 0, found before anything is sent.
  Status refused(const uzip_coll_args_t& call) { return job_.start(0, call).status(); }

  TestGpu gpu_;
  GpuJob job_;
  std::vector<GpuArray> sources_, results_;
  uzip_options_t options_ = UZIP_OPTIONS_INIT;
};

TEST_F(GpuCalls, ComeAfterWhatIsOnTheirStream) {
  options_.stream = kStream;
  const std::vector<float> late = numbers(0);
  std::byte* const source = fake_gpu::behind(sources_[0].data());
  std::memset(source, 0xff, late.size() * sizeof(float));
  fake_gpu::launch(kStream, [&] { std::memcpy(source, late.data(), late.size() * sizeof(float)); }, true);
  const std::vector<Started> started = {{0, *job_.start(0, sum(0))}, {1, *job_.start(1, sum(1))}};
  job_.settle();
  EXPECT_FALSE(started[0].request->done());
  fake_gpu::allow(kStream);
  EXPECT_EQ(expect_all(job_.finish(started), UZIP_OK), "");
  EXPECT_EQ(check_sum(), "");
}

TEST_F(GpuCalls, StreamsDoNotHoldEachOtherUp) {
  GpuArray other_source(gpu_, MemoryKind::kDevice, 0, 4000), other_result(gpu_, MemoryKind::kDevice, 0, 4000);
  other_source.write(numbers(0, 1000).data());
  options_.stream = kStream;
  fake_gpu::launch(kStream, [] {}, true);
  const std::vector<Started> blocked = {{0, *job_.start(0, sum(0))}, {1, *job_.start(1, sum(1))}};
  const std::vector<Started> free = {{0, *job_.start_send(0, other_source.data(), 1000, UZIP_FP32, 1, 5)},
                                     {1, *job_.start_recv(1, other_result.data(), 1000, UZIP_FP32, 0, 5)}};
  EXPECT_EQ(expect_all(job_.finish(free), UZIP_OK), "");
  EXPECT_FALSE(blocked[0].request->done());
  fake_gpu::allow(kStream);
  EXPECT_EQ(expect_all(job_.finish(blocked), UZIP_OK), "");
  EXPECT_EQ(check_sum(), "");
}

TEST_F(GpuCalls, RefuseAStreamThatIsCaptured) {
  options_.stream = kStream;
  fake_gpu::set_capturing(kStream, true);
  const Status status = refused(sum(0));
  EXPECT_EQ(status.code(), UZIP_ERR_UNSUPPORTED);
  EXPECT_NE(status.message().find("captured"), std::string::npos) << status.message();
  fake_gpu::set_capturing(kStream, false);
  EXPECT_EQ(run_sum(), "");  // nothing was started: the ranks still agree
}

TEST_F(GpuCalls, RefuseBuffersThatNoGpuHasBoth) {
  std::vector<float> host(kCount);
  uzip_coll_args_t call = sum(0);
  call.dst = host.data();
  EXPECT_EQ(refused(call).code(), UZIP_ERR_INVALID);
  EXPECT_NE(refused(call).message().find("src is in memory of GPU 0 and dst in ordinary host memory"), std::string::npos)
      << refused(call).message();
  call.dst = results_[1].data();
  EXPECT_EQ(refused(call).code(), UZIP_ERR_INVALID);
  EXPECT_NE(refused(call).message().find("GPU 1"), std::string::npos);
}

TEST_F(GpuCalls, FreedMemoryIsAnError) {
  std::byte* freed = nullptr;
  {
    const GpuArray array(gpu_, MemoryKind::kDevice, 0, kCount * sizeof(float));
    freed = array.data();
  }
  uzip_coll_args_t call = sum(0);
  call.src = freed;
  EXPECT_EQ(refused(call).code(), UZIP_ERR_INVALID);
  EXPECT_NE(refused(call).message().find("freed"), std::string::npos) << refused(call).message();
  call.count = 0;  // never looked at
  EXPECT_TRUE(refused(call).ok());
}

TEST_F(GpuCalls, UserDefinedOperationsAreRefused) {
  const auto op = add_user_op({[](void*, const void*, size_t, uzip_dtype_t, void*) {}, nullptr, true});
  ASSERT_TRUE(op.ok());
  uzip_coll_args_t call = sum(0);
  call.op = *op;
  EXPECT_EQ(refused(call).code(), UZIP_ERR_UNSUPPORTED);
  EXPECT_TRUE(remove_user_op(*op));
}

// Pinned memory is the host's, unless a stream says that the GPU works on it.
TEST_F(GpuCalls, PinnedMemoryWithoutAStreamIsTheHosts) {
  GpuArray source(gpu_, MemoryKind::kPinned, 0, 4000), result(gpu_, MemoryKind::kPinned, 0, 4000);
  std::vector<float> host(1000);
  for (void* stream : {static_cast<void*>(nullptr), kStream}) {
    source.write(numbers(3, 1000).data());
    options_.stream = stream;
    const int copies = fake_gpu::counters().copies;
    const std::vector<Started> started = {
        {0, *job_.start_send(0, source.data(), 1000, UZIP_FP32, 1, 5, &options_)},
        {1, *job_.start_recv(1, result.data(), 1000, UZIP_FP32, 0, 5, &options_)}};
    EXPECT_EQ(expect_all(job_.finish(started), UZIP_OK), "");
    result.read(host.data());
    EXPECT_EQ(host, numbers(3, 1000));
    EXPECT_EQ(fake_gpu::counters().copies > copies, stream != nullptr);
  }
}

TEST_F(GpuCalls, RepeatedCallsAllocateNothingAndSynchronizeNothing) {
  for (int turn = 0; turn < 3; ++turn) ASSERT_EQ(run_sum(), "");
  const fake_gpu::Counters before = fake_gpu::counters();
  for (int turn = 0; turn < 5; ++turn) ASSERT_EQ(run_sum(), "");
  EXPECT_EQ(fake_gpu::counters().allocations, before.allocations);
  EXPECT_EQ(fake_gpu::counters().synchronizations, before.synchronizations);
}

TEST_F(GpuCalls, PersistentOperationsFollowTheirStreamAtEachStart) {
  options_.stream = kStream;
  std::vector<Request*> requests;
  std::vector<std::shared_ptr<PreparedPlan>> plans;
  std::vector<CollArgs> calls;
  for (int rank = 0; rank < 2; ++rank) {
    calls.push_back(*validate_collective(sum(rank), job_.comm(rank).context()));
    plans.push_back(*job_.comm(rank).plan_for(calls.back()));
    requests.push_back(job_.engine(rank).acquire());
    ASSERT_TRUE(job_.comm(rank).reserve(*requests.back(), calls.back(), plans.back()).ok());
  }
  int allocations = 0;
  for (int turn = 0; turn < 4; ++turn) {
    if (turn == 1) allocations = fake_gpu::counters().allocations;  // the kernels' own memory is there now
    std::memset(fake_gpu::behind(results_[0].data()), 0, kCount * sizeof(float));
    fake_gpu::launch(kStream, [] {}, true);
    for (size_t rank = 0; rank < 2; ++rank)
      ASSERT_TRUE(job_.comm(static_cast<int>(rank)).start(*requests[rank], CollArgs(calls[rank]), plans[rank]).ok());
    job_.settle();
    EXPECT_FALSE(requests[0]->done());
    fake_gpu::allow(kStream);
    ASSERT_TRUE(job_.run_until([&] { return requests[0]->done() && requests[1]->done(); }));
    EXPECT_TRUE(requests[0]->status().ok());
    EXPECT_EQ(check_sum(), "");
  }
  EXPECT_EQ(fake_gpu::counters().allocations, allocations);
  for (size_t rank = 0; rank < 2; ++rank) {
    requests[rank]->unreserve();
    job_.engine(static_cast<int>(rank)).release(requests[rank]);
  }
}

// The device answers nothing any more: all ranks hear of it, and nobody hangs.
TEST_F(GpuCalls, AFailureOfTheDeviceEndsTheCall) {
  for (int operations : {0, 1, 5, 20, 60}) {
    ASSERT_EQ(run_sum(), "");
    fake_gpu::fail_after(operations);
    const QuietLog quiet;
    const auto statuses = job_.run([&](int rank) { return sum(rank); });
    for (const Status& status : statuses) {
      EXPECT_EQ(status.code(), UZIP_ERR_INTERNAL);
      EXPECT_NE(status.message().find("illegal memory access"), std::string::npos) << status.message();
    }
    fake_gpu::recover();
    job_.settle();
  }
}

class LittleGpuMemory : public GpuCalls {
 protected:
  static constexpr size_t kLimit = size_t{1} << 20;
  LittleGpuMemory() : GpuCalls(config()) {}
  static Config config() {
    Config config;
    config.gpu_memory = kLimit;
    config.gpu_blocks = 7;
    return config;
  }
};

TEST_F(LittleGpuMemory, BoundsTheRoundsInFlight) {
  for (const char* codec : {"lev", "raw"}) {
    options_.codec = codec;
    for (size_t chunk : {size_t{1024}, size_t{65536}, size_t{131072}}) {
      options_.chunk_bytes = chunk;
      ASSERT_EQ(run_sum(), "") << chunk;
    }
  }
  // Two ranks, each with a GPU of its own, and reports besides. A round of the largest chunks has less than 1.5 MiB.
  EXPECT_LE(fake_gpu::counters().most_bytes, 2 * (kLimit + (size_t{3} << 19)));
  EXPECT_EQ(fake_gpu::counters().last_blocks, 7u);
}

class GpuChecksums : public GpuCalls {
 protected:
  GpuChecksums() : GpuCalls(config()) {}
  static Config config() {
    Config config;
    config.checksum = true;
    return config;
  }
};

TEST_F(GpuChecksums, AreMadeAndCompared) {
  for (const char* codec : {"raw", "lev"}) {
    for (int split : {0, 1}) {
      options_.codec = codec;
      options_.split_send = split;
      ASSERT_EQ(run_sum(), "");
    }
  }
}

// Whatever bits change on the way, there is a status and no access outside of the buffers.
TEST(GpuWire, DamagedFramesAreFound) {
  const TestGpu gpu = fake_gpu_for_tests(21);
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    LoopbackOptions wire = stormy_gpu_wire(seed);
    uint64_t messages = 0, damaged = 0;
    wire.tamper = [&](int, int, std::vector<std::byte>&, std::vector<std::byte>& body) {
      if (body.size() < 100 || ++messages % 3 != 0) return;
      ++damaged;
      body[(seed * 977 + messages * 31) % body.size()] ^= std::byte{0x10};
    };
    Config config;
    config.checksum = seed % 2 == 1;  // then also what still decodes is found
    GpuJob job(gpu, 2, wire, config);
    std::vector<GpuArray> arrays;
    for (int rank = 0; rank < 2; ++rank) {
      arrays.push_back(GpuArray(gpu, MemoryKind::kDevice, rank, 8000 * sizeof(float)));
      arrays.back().write(numbers(rank, 8000).data());
    }
    uzip_options_t options = UZIP_OPTIONS_INIT;
    options.codec = "lev";
    const QuietLog quiet;
    const auto statuses = job.run([&](int rank) {
      uzip_coll_args_t call = make_call(UZIP_ALLREDUCE, UZIP_IN_PLACE, arrays[static_cast<size_t>(rank)].data(), 8000);
      call.options = &options;
      return call;
    });
    for (const Status& status : statuses) {
      EXPECT_TRUE(status.ok() || status.code() == UZIP_ERR_CORRUPT) << status.message();
    }
    EXPECT_FALSE(config.checksum && damaged > 0 && statuses[0].ok() && statuses[1].ok());
  }
}

TEST(GpuPlugins, OneThatIsMissingLeavesTheHost) {
  const QuietLog quiet;
  Config config;
  config.gpu = "./no_such_plugin.so";
  LoopbackJob job(2, {}, config);
  EXPECT_EQ(job.engine(0).gpus().plugin(), nullptr);
  EXPECT_EQ(job.works(), "");
}

/// On a GPU, with the plugin of this build: what only the driver can tell.
class DeviceCalls : public testing::Test {
 protected:
  static constexpr size_t kBytes = kCount * sizeof(float);

  void SetUp() override {
    std::string why;
    gpu_ = real_gpu(&why);
    if (!gpu_.api) GTEST_SKIP() << why;
    gpu::require(*gpu_.api, gpu_.api->set_device(0));
    gpu::require(*gpu_.api, gpu_.api->create_stream(&stream_));
    job_ = std::make_unique<GpuJob>(gpu_, 2);
    options_.stream = stream_;
  }
  void TearDown() override {
    if (stream_) (void)gpu_.api->destroy_stream(stream_);
  }
  GpuArray array(const void* from = nullptr) const {
    GpuArray made(gpu_, MemoryKind::kDevice, 0, kBytes);
    if (from) made.write(from);
    return made;
  }
  /// A message from rank 0 to rank 1, both on GPU 0; "" or what is wrong with it.
  std::string send(const void* src, int values_of) {
    const GpuArray result = array();
    const auto sent = job_->start_send(0, src, kCount, UZIP_FP32, 1, 5, &options_);
    if (!sent.ok()) return sent.status().message();
    uzip_options_t plain = UZIP_OPTIONS_INIT;
    const std::vector<Started> started = {{0, *sent}, {1, *job_->start_recv(1, result.data(), kCount, UZIP_FP32, 0, 5, &plain)}};
    const std::string wrong = expect_all(job_->finish(started), UZIP_OK);
    std::vector<float> got(kCount);
    result.read(got.data());
    return !wrong.empty() ? wrong : got == numbers(values_of) ? "" : "wrong elements";
  }
  template <class Function>
  static Function driver(const char* name) {
    static void* const library = dlopen("libcuda.so.1", RTLD_NOW);
    return reinterpret_cast<Function>(library ? dlsym(library, name) : nullptr);
  }

  TestGpu gpu_;
  void* stream_ = nullptr;
  std::unique_ptr<GpuJob> job_;
  uzip_options_t options_ = UZIP_OPTIONS_INIT;
};

TEST_F(DeviceCalls, ComeAfterWhatIsOnTheirStream) {
  const GpuArray late = array(numbers(1).data()), source = array(numbers(0).data());
  const GpuArray from(gpu_, MemoryKind::kDevice, 0, size_t{1} << 30), to(gpu_, MemoryKind::kDevice, 0, size_t{1} << 30);
  for (int i = 0; i < 30; ++i) gpu::require(*gpu_.api, gpu_.api->copy(to.data(), from.data(), from.size(), stream_));
  gpu::require(*gpu_.api, gpu_.api->copy(source.data(), late.data(), kBytes, stream_));
  bool done = true;
  gpu::require(*gpu_.api, gpu_.api->query_stream(stream_, &done));
  EXPECT_FALSE(done) << "the copies are too fast for this test";
  EXPECT_EQ(send(source.data(), 1), "");
}

TEST_F(DeviceCalls, FreedMemoryIsAnError) {
  void* freed = nullptr;
  gpu::require(*gpu_.api, gpu_.api->allocate(&freed, size_t{64} << 20));
  gpu::require(*gpu_.api, gpu_.api->release(freed));
  EXPECT_NE(send(freed, 0).find("freed"), std::string::npos);
}

TEST_F(DeviceCalls, WithoutAPluginMemoryOfAGpuIsAnError) {
  const QuietLog quiet;
  Config config;
  config.gpu = "./no_such_plugin.so";
  LoopbackJob job(1, {}, config);
  if (job.engine(0).gpus().plugin()) GTEST_SKIP() << "an installed plugin was found";
  const GpuArray memory = array();
  const Status status = job.start_send(0, memory.data(), kCount, UZIP_FP32, 0, 5).status();
  EXPECT_EQ(status.code(), UZIP_ERR_INVALID) << status.message();
}

TEST_F(DeviceCalls, RefuseAStreamThatIsCaptured) {
  const auto begin = driver<int (*)(void*, int)>("cuStreamBeginCapture_v2");
  const auto end = driver<int (*)(void*, void**)>("cuStreamEndCapture");
  ASSERT_TRUE(begin && end);
  const GpuArray source = array(numbers(2).data());
  EXPECT_EQ(send(source.data(), 2), "");
  ASSERT_EQ(begin(stream_, 0), 0);
  EXPECT_NE(send(source.data(), 2).find("captured"), std::string::npos);
  // Calls on other streams go on, and leave the capture intact.
  void* other = nullptr;
  gpu::require(*gpu_.api, gpu_.api->create_stream(&other));
  options_.stream = other;
  const auto sent = job_->start_send(0, source.data(), kCount, UZIP_FP32, 1, 5, &options_);
  ASSERT_TRUE(sent.ok()) << sent.status().message();
  job_->settle();
  void* graph = nullptr;
  EXPECT_EQ(end(stream_, &graph), 0);
  const GpuArray result = array();
  const std::vector<Started> started = {{0, *sent}, {1, *job_->start_recv(1, result.data(), kCount, UZIP_FP32, 0, 5, &options_)}};
  EXPECT_EQ(expect_all(job_->finish(started), UZIP_OK), "");
  (void)gpu_.api->destroy_stream(other);
}

TEST_F(DeviceCalls, TakeMemoryOfPoolsToo) {
  const auto allocate = driver<int (*)(unsigned long long*, size_t, void*)>("cuMemAllocAsync");
  const auto release = driver<int (*)(unsigned long long, void*)>("cuMemFreeAsync");
  ASSERT_TRUE(allocate && release);
  unsigned long long memory = 0;
  ASSERT_EQ(allocate(&memory, kBytes, stream_), 0);
  auto* const source = reinterpret_cast<void*>(static_cast<uintptr_t>(memory));
  const GpuArray values = array(numbers(3).data());
  gpu::require(*gpu_.api, gpu_.api->copy(source, values.data(), kBytes, stream_));
  EXPECT_EQ(send(source, 3), "");
  EXPECT_EQ(release(memory, stream_), 0);
}

}  // namespace
}  // namespace uzip
