// usage: gpu_codec_bench PLUGIN TENSORS [JSON [MIB]]
//
// Speed of the codec kernels on one GPU, beside a copy of as many bytes in the same run. PLUGIN is
// libuzipcoll_cuda.so, TENSORS the folder tests/data/tensors; JSON receives one line for each case;
// MIB restricts the sizes to one. Built and run by tools/gpu-check.
//
// A case works on several sets of buffers in turn, together larger than the second-level cache. The
// operations of all sets are one graph; the time of an operation is a launch's by the number of
// sets, the median of some launches. Every set is decoded and compared with its elements.
#include "gpu/plugin_loader.hpp"

#include "base/crc32c.hpp"
#include "base/datatype.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace uzip;
using namespace uzip::gpu;

constexpr size_t kMiB = size_t{1} << 20;

void require(bool right, const char* what, const char* why) {
  if (right) return;
  std::fprintf(stderr, "gpu_codec_bench: %s: %s\n", what, why);
  std::exit(1);
}
void check(cudaError_t error, const char* what) {
  require(error == cudaSuccess, what, cudaGetErrorString(error));
}
const PluginApi* plugin_api = nullptr;
void check(int failed, const char* what) { require(failed == 0, what, plugin_api->last_error()); }

/// Gaussian values of a type, standard deviation 0.02.
std::vector<uint8_t> gaussian(DataType type, size_t bytes) {
  const size_t size = datatype_size(type);
  std::vector<uint8_t> result(bytes);
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal(0, 0.02);
  for (size_t i = 0; i + size <= bytes; i += size) {
    const double value = normal(random);
    uint64_t bits = 0;
    if (type == UZIP_FP64) {
      std::memcpy(&bits, &value, 8);
    } else {
      const auto narrow = static_cast<float>(value);
      uint32_t word;
      std::memcpy(&word, &narrow, 4);
      const uint32_t sign = word >> 31;
      const int exponent = static_cast<int>(word >> 23 & 255) - 127;
      if (type == UZIP_FP32) bits = word;
      if (type == UZIP_BF16) bits = word >> 16;
      if (type == UZIP_FP16)
        bits = sign << 15 | (exponent < -14 ? 0 : (exponent + 15) << 10 | (word >> 13 & 1023));
      // Scaled to the range of the type, as training does.
      if (type == UZIP_FP8_E4M3FN)
        bits = sign << 7 | (exponent < -14 ? 0 : (exponent + 15) << 3 | (word >> 20 & 7)) % 127;
      if (type == UZIP_FP8_E5M2)
        bits = sign << 7 | (exponent < -14 ? 0 : (exponent + 15) << 2 | (word >> 21 & 3));
    }
    std::memcpy(&result[i], &bits, size);
  }
  return result;
}

std::vector<uint8_t> read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Set {
  uint8_t* src;
  uint8_t* dst;
  uint8_t* plain;
  uint8_t* coded;
  FrameHeader* header;
};

class Bench {
 public:
  Bench(std::ofstream& json) : json_(json) {
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "stream");
    check(cudaEventCreate(&begin_), "event");
    check(cudaEventCreate(&end_), "event");
    check(cudaMalloc(&fault_, 8), "memory");
    check(cudaMemset(fault_, 0, 8), "memory");
  }

  size_t only_mib = 0;  ///< 0: all sizes

  void run(const std::string& data, DataType type, size_t bytes,
           const std::vector<uint8_t>& elements) {
    if (only_mib != 0 && bytes != only_mib * kMiB) return;
    type_ = type;
    count_ = bytes / datatype_size(type);
    make_sets(bytes, elements);
    check(plugin_api->create_codec(count_, &codec_), "codec");
    const double copy = median([&](const Set& s) {
      check(cudaMemcpyAsync(s.dst, s.src, bytes, cudaMemcpyDeviceToDevice, stream_), "copy");
    });
    const double checksum = median([&](const Set& s) {
      check(plugin_api->checksum(codec_, s.src, bytes, reinterpret_cast<uint32_t*>(s.dst), stream_), "checksum");
    });
    compare_checksum(bytes);
    for (int levels : {1, 2}) {
      levels_ = levels;
      const double encode = median([&](const Set& s) { this->encode(s, false); });
      const double ratio = frame_ratio(bytes);
      check(cudaMemset(sets_[0].dst, 0xee, bytes), "memory");
      const double decode = median([&](const Set& s) { this->decode(s, nullptr); });
      compare(bytes);
      const double reduce = median([&](const Set& s) { this->decode(s, s.dst); });
      const double fixed = median([&](const Set& s) { this->encode(s, true); });
      report(data, bytes, levels, copy, checksum, encode, fixed, decode, reduce, ratio);
    }
    plugin_api->destroy_codec(codec_);
    free_sets();
  }

 private:
  void make_sets(size_t bytes, const std::vector<uint8_t>& elements) {
    const size_t sets = std::max<size_t>(2, std::min<size_t>(48, 256 * kMiB / bytes));
    uint64_t plain = 0;
    uint64_t coded = 0;
    check(plugin_api->encode_bound(static_cast<uint8_t>(type_), count_, &plain, &coded), "bound");
    for (size_t i = 0; i < sets; ++i) {
      Set s{};
      check(cudaMalloc(&s.src, bytes), "memory");
      check(cudaMalloc(&s.dst, bytes), "memory");
      check(cudaMalloc(&s.plain, plain), "memory");
      check(cudaMalloc(&s.coded, coded), "memory");
      check(cudaMalloc(&s.header, sizeof(FrameHeader)), "memory");
      for (size_t at = 0; at < bytes; at += elements.size())
        check(cudaMemcpy(s.src + at, elements.data(), std::min(elements.size(), bytes - at),
                         cudaMemcpyHostToDevice),
              "copy");
      plain_room_ = plain;
      coded_room_ = coded;
      sets_.push_back(s);
    }
  }
  void free_sets() {
    for (const Set& s : sets_) {
      for (void* memory : {static_cast<void*>(s.src), static_cast<void*>(s.dst),
                           static_cast<void*>(s.plain), static_cast<void*>(s.coded),
                           static_cast<void*>(s.header)})
        check(cudaFree(memory), "memory");
    }
    sets_.clear();
  }

  void encode(const Set& s, bool fixed_plain) {
    EncodeRequest request{};
    request.type = static_cast<uint8_t>(type_);
    request.count = count_;
    request.src = s.src;
    request.plain = s.plain;
    request.coded = s.coded;
    request.header = s.header;
    request.levels = levels_;
    request.fixed_plain = fixed_plain;
    check(plugin_api->encode(codec_, &request, stream_), "encode");
  }
  void decode(const Set& s, const uint8_t* operand) {
    DecodeRequest request{};
    request.type = static_cast<uint8_t>(type_);
    request.count = count_;
    request.header = s.header;
    request.header_on_device = true;
    request.plain = s.plain;
    request.coded = s.coded;
    request.plain_room = plain_room_;
    request.coded_room = coded_room_;
    request.dst = s.dst;
    request.operand = operand;
    request.op = UZIP_SUM;
    request.fault = fault_;
    check(plugin_api->decode(codec_, &request, stream_), "decode");
  }

  /// Seconds of one operation.
  double median(const std::function<void(const Set&)>& operation) {
    for (const Set& s : sets_) operation(s);
    check(cudaStreamSynchronize(stream_), "first launch");
    cudaGraph_t graph;
    cudaGraphExec_t launch;
    check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "capture");
    for (const Set& s : sets_) operation(s);
    check(cudaStreamEndCapture(stream_, &graph), "capture");
    check(cudaGraphInstantiate(&launch, graph, 0), "graph");
    std::vector<float> times;
    for (int i = 0; i < 13; ++i) {
      check(cudaEventRecord(begin_, stream_), "event");
      check(cudaGraphLaunch(launch, stream_), "graph");
      check(cudaEventRecord(end_, stream_), "event");
      check(cudaStreamSynchronize(stream_), "graph");
      float ms = 0;
      check(cudaEventElapsedTime(&ms, begin_, end_), "time");
      if (i > 2) times.push_back(ms);
    }
    check(cudaGraphExecDestroy(launch), "graph");
    check(cudaGraphDestroy(graph), "graph");
    std::nth_element(times.begin(), times.begin() + 5, times.end());
    return times[5] * 1e-3 / static_cast<double>(sets_.size());
  }

  double frame_ratio(size_t bytes) {
    FrameHeader header;
    check(cudaMemcpy(&header, sets_.back().header, sizeof header, cudaMemcpyDeviceToHost), "copy");
    return static_cast<double>(header.plain_bytes + header.coded_bytes) /
           static_cast<double>(bytes);
  }

  void compare(size_t bytes) {
    uint64_t fault = 0;
    check(cudaMemcpy(&fault, fault_, 8, cudaMemcpyDeviceToHost), "copy");
    require(fault == 0, "decode", "reports a fault");
    std::vector<uint8_t> a(bytes);
    std::vector<uint8_t> b(bytes);
    for (const Set* s : {&sets_.front(), &sets_.back()}) {
      check(cudaMemcpy(a.data(), s->src, bytes, cudaMemcpyDeviceToHost), "copy");
      check(cudaMemcpy(b.data(), s->dst, bytes, cudaMemcpyDeviceToHost), "copy");
      require(std::memcmp(a.data(), b.data(), bytes) == 0, "decode", "gives other elements");
    }
  }

  void compare_checksum(size_t bytes) {
    std::vector<std::byte> elements(bytes);
    uint32_t crc = 0;
    check(cudaMemcpy(elements.data(), sets_.back().src, bytes, cudaMemcpyDeviceToHost), "copy");
    check(cudaMemcpy(&crc, sets_.back().dst, sizeof crc, cudaMemcpyDeviceToHost), "copy");
    require(crc == crc32c(elements), "checksum", "is another one than the CPU's");
  }

  void report(const std::string& data, size_t bytes, int levels, double copy, double checksum,
              double encode, double fixed, double decode, double reduce, double ratio) {
    const auto size = static_cast<double>(bytes);
    const char* const type = datatype_info(type_).name;
    std::printf("%-10s %-13s %5zu %d | %7.1f %6.0f | %7.1f %6.0f | %7.1f %6.0f | %7.1f %6.0f | %7.1f %6.0f | "
                "%7.1f %6.0f | %.4f\n",
                type, data.c_str(), bytes / kMiB, levels, copy * 1e6, size / copy * 1e-9,
                checksum * 1e6, size / checksum * 1e-9, encode * 1e6, size / encode * 1e-9, fixed * 1e6, size / fixed * 1e-9, decode * 1e6,
                size / decode * 1e-9, reduce * 1e6, size / reduce * 1e-9, ratio);
    std::fflush(stdout);
    if (!json_.is_open()) return;
    json_ << "{\"benchmark\": \"gpu_codec\", \"type\": \"" << type << "\", \"data\": \"" << data
          << "\", \"bytes\": " << bytes << ", \"levels\": " << levels
          << ", \"copy_seconds\": " << copy << ", \"checksum_seconds\": " << checksum
          << ", \"encode_seconds\": " << encode
          << ", \"encode_fixed_seconds\": " << fixed << ", \"decode_seconds\": " << decode
          << ", \"decode_reduce_seconds\": " << reduce << ", \"ratio\": " << ratio << "}\n";
  }

  std::ofstream& json_;
  cudaStream_t stream_;
  cudaEvent_t begin_, end_;
  uint64_t* fault_ = nullptr;
  CodecContext* codec_ = nullptr;
  DataType type_{};
  uint64_t count_ = 0;
  int levels_ = 1;
  uint64_t plain_room_ = 0;
  uint64_t coded_room_ = 0;
  std::vector<Set> sets_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: gpu_codec_bench PLUGIN TENSORS [JSON [MIB]]\n");
    return 2;
  }
  const auto plugin = open_plugin(argv[1]);
  require(plugin.ok(), "plugin", plugin.ok() ? "" : plugin.status().message().c_str());
  plugin_api = *plugin;
  std::ofstream json;
  if (argc > 3) json.open(argv[3], std::ios::app);
  DeviceInfo info;
  check(plugin_api->describe_device(0, &info), "device");
  std::printf("# %s, %d processors; us and GB/s of elements: copy, checksum, encode, encode with plain parts at fixed places, "
              "decode, decode and add\n", info.name, info.processors);
  std::printf("# type     data            MiB L |    copy        |    checksum    |  encode        |   fixed        "
              "|  decode        |     add        | ratio\n");
  Bench bench(json);
  if (argc > 4) bench.only_mib = std::strtoul(argv[4], nullptr, 10);
  const auto bf16 = gaussian(UZIP_BF16, 64 * kMiB);
  for (size_t mib : {1, 4, 16, 64, 256, 1024})
    bench.run("gaussian", UZIP_BF16, mib * kMiB, bf16);
  for (DataType type : {UZIP_FP16, UZIP_FP32, UZIP_FP64, UZIP_FP8_E4M3FN, UZIP_FP8_E5M2})
    bench.run("gaussian", type, 256 * kMiB, gaussian(type, 32 * kMiB));
  const std::filesystem::path tensors = argv[2];
  for (const char* name : {"weight_bf16", "grad_bf16", "weight_fp32", "weight_fp8_e4m3fn"}) {
    const auto elements = read_file(tensors / (std::string(name) + ".bin"));
    const std::string type_name = std::string(name).substr(std::string(name).find('_') + 1);
    const DataTypeInfo* const type = find_datatype(type_name);
    require(!elements.empty() && type != nullptr, name, "is not there");
    for (size_t mib : {16, 256}) bench.run(std::string(name).substr(0, 13), type->type, mib * kMiB, elements);
  }
  return 0;
}
