// Calls on memory of real GPUs between real ranks, each on GPU rank modulo their number, which is chosen after the
// communicator was made. usage: gpu_calls [WAY]: the algorithm that must carry out what is in memory of GPUs on all ranks.
#include "../../perf/device_runtime.hpp"
#include "../../perf/failure.hpp"

#include "mp/mp_world.hpp"

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace {

using mp::expect;

constexpr size_t kCount = 1000003;
constexpr int kSkipped = 77;

class Array {
 public:
  Array(const perf::DeviceRuntime& gpu, size_t count) : gpu_(gpu), count_(count), memory_(gpu.allocate(count * sizeof(float))) {}
  ~Array() { gpu_.release(memory_); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  float* data() { return reinterpret_cast<float*>(memory_); }
  void fill(float each) { gpu_.copy(memory_, std::vector<float>(count_, each).data(), count_ * sizeof(float)); }
  /// "" if all elements are `each`.
  std::string check(float each) const {
    std::vector<float> values(count_);
    gpu_.copy(values.data(), memory_, count_ * sizeof(float));
    for (size_t i = 0; i < count_; ++i)
      if (values[i] != each)
        return "element " + std::to_string(i) + " is " + std::to_string(values[i]) + " instead of " + std::to_string(each);
    return "";
  }

 private:
  const perf::DeviceRuntime& gpu_;
  size_t count_;
  std::byte* memory_;
};

class Calls {
 public:
  Calls(mp::World& w, const perf::DeviceRuntime& gpu, std::string way)
      : w_(w), gpu_(gpu), way_(std::move(way)), sum_of_ranks_(static_cast<float>(w.size * (w.size + 1) / 2)) {}

  std::string all_on_gpus(uzip_comm_t comm) {
    Array src(gpu_, kCount), dst(gpu_, kCount);
    src.fill(static_cast<float>(w_.rank + 1));
    dst.fill(-1);
    std::string way;
    if (std::string wrong = sum(comm, src.data(), dst.data(), &way); !wrong.empty()) return wrong;
    if (!way_.empty() && way != way_) return "carried out by " + way + " instead of " + way_;
    return dst.check(sum_of_ranks_);
  }

  /// Rank 0 has host memory.
  std::string mixed() {
    if (w_.rank > 0) {
      Array src(gpu_, kCount), dst(gpu_, kCount);
      src.fill(static_cast<float>(w_.rank + 1));
      const std::string wrong = sum(w_.comm, src.data(), dst.data());
      return wrong.empty() ? dst.check(sum_of_ranks_) : wrong;
    }
    const std::vector<float> src(kCount, 1), expected(kCount, sum_of_ranks_);
    std::vector<float> dst(kCount);
    const std::string wrong = sum(w_.comm, src.data(), dst.data());
    return wrong.empty() && dst != expected ? "wrong elements" : wrong;
  }

  std::string in_flight(size_t calls, size_t count, bool as_group) {
    Array all(gpu_, calls * count);
    all.fill(static_cast<float>(w_.rank + 1));
    std::vector<uzip_request_t> requests(calls, UZIP_REQUEST_NULL);
    if (as_group) uzip_group_start();
    for (size_t i = 0; i < calls; ++i) {
      float* const data = all.data() + i * count;
      const uzip_status_t started = as_group ? uzip_allreduce(UZIP_IN_PLACE, data, count, UZIP_FP32, UZIP_SUM, w_.comm)
                                             : uzip_iallreduce(UZIP_IN_PLACE, data, count, UZIP_FP32, UZIP_SUM, w_.comm, &requests[i]);
      if (started != UZIP_OK) return expect(started, UZIP_OK);
    }
    const std::string wrong = expect(as_group ? uzip_group_end() : uzip_waitall(calls, requests.data(), nullptr), UZIP_OK);
    return wrong.empty() ? all.check(sum_of_ranks_) : wrong;
  }

  std::string persistent() {
    Array array(gpu_, kCount);
    float each = 1;
    array.fill(each);
    uzip_request_t request = UZIP_REQUEST_NULL;
    std::string wrong = expect(uzip_allreduce_init(UZIP_IN_PLACE, array.data(), kCount, UZIP_FP32, UZIP_SUM, w_.comm, &request), UZIP_OK);
    for (int i = 0; i < 5 && wrong.empty(); ++i) {
      wrong = expect(uzip_start(&request), UZIP_OK);
      if (wrong.empty()) wrong = expect(uzip_wait(&request), UZIP_OK);
      each *= static_cast<float>(w_.size);
      if (wrong.empty()) wrong = array.check(each);
    }
    uzip_request_free(&request);
    return wrong;
  }

  std::string another_communicator() {
    uzip_comm_t dup = nullptr;
    if (std::string wrong = expect(uzip_comm_dup(w_.comm, &dup), UZIP_OK); !wrong.empty()) return wrong;
    const std::string wrong = all_on_gpus(dup);
    uzip_comm_free(&dup);
    return wrong;
  }

  /// The ranks call different things; after that they go on, perhaps by another way.
  std::string disagreement() {
    Array src(gpu_, kCount), dst(gpu_, kCount);
    src.fill(1);
    const uzip_op_t op = w_.rank == 0 ? UZIP_SUM : UZIP_MAX;
    std::string wrong = expect(uzip_allreduce(src.data(), dst.data(), kCount, UZIP_FP32, op, w_.comm), UZIP_ERR_MISMATCH);
    if (wrong.empty()) wrong = sum(w_.comm, src.data(), dst.data());
    return wrong.empty() ? dst.check(static_cast<float>(w_.size)) : wrong;
  }

 private:
  std::string sum(uzip_comm_t comm, const float* src, float* dst, std::string* way = nullptr) {
    uzip_coll_info_t info = {};
    info.struct_size = sizeof info;
    uzip_coll_args_t args = {};
    args.struct_size = sizeof args;
    args.coll = UZIP_ALLREDUCE;
    args.src = src;
    args.dst = dst;
    args.count = kCount;
    args.dtype = UZIP_FP32;
    args.op = UZIP_SUM;
    args.info = &info;
    const std::string wrong = expect(uzip_coll_run(&args, comm), UZIP_OK);
    if (wrong.empty() && way) *way = info.algorithm;
    return wrong;
  }

  mp::World& w_;
  const perf::DeviceRuntime& gpu_;
  const std::string way_;
  const float sum_of_ranks_;  ///< plus 1 each
};

}  // namespace

int main(int argc, char** argv) {
  mp::World w(&argc, &argv);
  std::unique_ptr<perf::DeviceRuntime> gpu;
  try {
    gpu = std::make_unique<perf::DeviceRuntime>(perf::MemoryKind::kCuda, w.rank);
  } catch (const perf::Failure& failure) {
    std::printf("# skipped: %s\n", failure.what());
    return kSkipped;
  }
  Calls calls(w, *gpu, argc > 1 ? argv[1] : "");
  for (int i = 0; i < 2; ++i) {
    w.test("all ranks on GPUs", [&] { return calls.all_on_gpus(w.comm); });
    w.test("a rank in host memory", [&] { return calls.mixed(); });
  }
  w.test("16 in flight", [&] { return calls.in_flight(16, kCount, false); });
  w.test("400 small ones in flight", [&] { return calls.in_flight(400, 64, false); });
  w.test("a group", [&] { return calls.in_flight(16, kCount, true); });
  w.test("persistent", [&] { return calls.persistent(); });
  w.test("another communicator", [&] { return calls.another_communicator(); });
  w.test("ranks that disagree", [&] { return calls.disagreement(); });
  return w.failures() ? 1 : 0;
}
