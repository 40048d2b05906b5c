// Speed of the lev codec on one core with Google Benchmark, for every type, level and CPU target,
// on random numbers and on the tensors of tests/data.
//
// A case is OPERATION/TYPE/DATA/TARGET/WHERE/LEVEL. "cached" codes 512 KiB again and again;
// "memory" walks through 64 MiB in pieces of 512 KiB, with the frames in one small buffer, as the
// engine does. Bytes are those of the elements. Each pass is followed by a memcpy of as many bytes,
// which is not in the times; of_memcpy compares the medians of both: 0.5 is half as fast as memcpy.
// What can't be compressed is sent as it is, so "encode" then is only the time to find that out;
// "decide" is what it costs, as a part of memcpy. "stream" decodes past the caches. "reduce" adds a
// frame to elements; of_reduce compares it with a reduction of the same elements that arrived
// plain, in the same small buffer.
#include "codec_benchmarks.hpp"

#include "base/cpu.hpp"
#include "base/reduce.hpp"
#include "codec/codec.hpp"
#include "codec/reduce_frames.hpp"
#include "codec/samples.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace uzip {
namespace {

constexpr size_t kPieceBytes = size_t{512} << 10;
constexpr size_t kCachedBytes = kPieceBytes;
constexpr size_t kMemoryBytes = size_t{64} << 20;

/// Page-aligned, as message buffers are.
class Buffer {
 public:
  explicit Buffer(size_t bytes)
      : bytes_(static_cast<std::byte*>(std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096))) {
    std::memset(bytes_, 1, bytes);
  }
  ~Buffer() { std::free(bytes_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  std::byte* at(size_t offset) { return bytes_ + offset; }

 private:
  std::byte* bytes_;
};

struct Data {
  std::string name;
  DataType type;
  std::vector<uint8_t> bytes;  ///< one piece
};

struct Case {
  std::shared_ptr<const Data> data;
  CpuTarget target;
  size_t bytes;
};

double median(std::vector<double>& seconds) {
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

/// Elements, and room for the frame of one piece.
struct Bench {
  Bench(const Case& which, const benchmark::State& state)
      : codec(*find_codec("lev")),
        type(which.data->type),
        level(static_cast<CodecLevel>(state.range(0))),
        bytes(which.bytes),
        count(kPieceBytes / datatype_size(type)),
        bound(codec.bound(type, count)),
        src(which.bytes),
        dst(which.bytes),
        body(bound.plain + bound.coded),
        plain(kPieceBytes) {
    static_cast<void>(set_cpu_target(cpu_target_name(which.target)).ok());
    for (size_t at = 0; at < which.bytes; at += kPieceBytes)
      std::memcpy(src.at(at), which.data->bytes.data(), kPieceBytes);
    std::memcpy(plain.at(0), which.data->bytes.data(), kPieceBytes);
  }
  bool encode(size_t at) {
    return codec
        .encode(type, level, src.at(at), count, {body.at(0), bound.plain + bound.coded}, scratch,
                header)
        .ok();
  }
  bool decode(size_t at, bool streams = false) {
    const Codec& used = *find_codec(header.codec);
    const auto decode = streams ? used.decode_streaming : used.decode;
    return decode(header, {body.at(0), header.plain_bytes},
                  {body.at(header.plain_bytes), header.coded_bytes}, {dst.at(at), kPieceBytes},
                  scratch)
        .ok();
  }
  void reduce_plain() {
    for (size_t at = 0; at < bytes; at += kPieceBytes)
      reduce(UZIP_SUM, type, dst.at(at), std::array<const void*, 2>{src.at(at), plain.at(0)},
             count);
  }
  /// Measures `piece(offset)` for all pieces.
  template <class Piece>
  void run(benchmark::State& state, Piece piece, bool reduces = false) {
    using Clock = std::chrono::steady_clock;
    auto seconds = [](Clock::duration d) { return std::chrono::duration<double>(d).count(); };
    std::vector<double> coding;
    std::vector<double> copying;
    std::vector<double> reducing;
    for (auto _ : state) {
      const auto begin = Clock::now();
      for (size_t at = 0; at < bytes; at += kPieceBytes) benchmark::DoNotOptimize(piece(at));
      const auto coded = Clock::now();
      std::memcpy(dst.at(0), src.at(0), bytes);
      benchmark::ClobberMemory();
      const auto copied = Clock::now();
      if (reduces) reduce_plain();
      reducing.push_back(seconds(Clock::now() - copied));
      state.SetIterationTime(seconds(coded - begin));
      coding.push_back(seconds(coded - begin));
      copying.push_back(seconds(copied - coded));
    }
    if (coding.empty()) return;
    if (reduces) state.counters["of_reduce"] = median(reducing) / median(coding);
    state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * bytes));
    const double of_memcpy = median(copying) / median(coding);
    if (header.codec == kCodecRaw)
      state.counters["decide"] = 1 / of_memcpy;
    else
      state.counters["of_memcpy"] = of_memcpy;
    state.counters["ratio"] = header.codec == kCodecRaw
                                  ? 1.0
                                  : static_cast<double>(header.plain_bytes + header.coded_bytes) /
                                        static_cast<double>(kPieceBytes);
  }

  const Codec& codec;
  DataType type;
  CodecLevel level;
  size_t bytes;
  size_t count;
  EncodedSizes bound;
  Buffer src;
  Buffer dst;
  Buffer body;
  Buffer plain;
  CodecScratch scratch;
  FrameHeader header;
};

void run_encode(benchmark::State& state, const Case& which) {
  Bench bench(which, state);
  bench.run(state, [&](size_t at) { return bench.encode(at); });
}

void run_decode(benchmark::State& state, const Case& which) {
  Bench bench(which, state);
  if (!bench.encode(0) || bench.header.codec == kCodecRaw) return state.SkipWithError("sent raw");
  bench.run(state, [&](size_t at) { return bench.decode(at); });
}

/// As into a large result.
void run_stream(benchmark::State& state, const Case& which) {
  Bench bench(which, state);
  if (!bench.encode(0) || bench.header.codec == kCodecRaw) return state.SkipWithError("sent raw");
  bench.run(state, [&](size_t at) { return bench.decode(at, true); });
}

/// dst = src + frame: what the owner of a share does with what arrives.
void run_reduce(benchmark::State& state, const Case& which) {
  Bench bench(which, state);
  if (!bench.encode(0) || bench.header.codec == kCodecRaw) return state.SkipWithError("sent raw");
  std::vector<std::byte> work(reduce_frames_bytes(bench.type, 1));
  auto piece = [&](size_t at) {
    const ReduceOperand operands[] = {
        {bench.src.at(at), nullptr, {}, {}},
        {nullptr,
         &bench.header,
         {bench.body.at(0), bench.header.plain_bytes},
         {bench.body.at(bench.header.plain_bytes), bench.header.coded_bytes}}};
    return reduce_frames(UZIP_SUM, bench.type, bench.dst.at(at), operands, bench.count, 0, work,
                         bench.scratch)
        .ok();
  };
  bench.run(state, piece, true);
}

void run_memcpy(benchmark::State& state, size_t bytes) {
  Buffer src(bytes);
  Buffer dst(bytes);
  for (auto _ : state) {
    std::memcpy(dst.at(0), src.at(0), bytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * bytes));
}

/// Random numbers of every float type, and the tensors, repeated to fill a piece.
std::vector<std::shared_ptr<const Data>> all_data() {
  std::vector<std::shared_ptr<const Data>> all;
  for (const DataTypeInfo& info : datatypes()) {
    if (!is_float(info.type)) continue;
    for (SampleKind kind : {SampleKind::kGaussian, SampleKind::kRandomBits})
      all.push_back(
          std::make_shared<Data>(Data{sample_kind_name(kind), info.type,
                                      make_sample(info.type, kind, kPieceBytes / info.size)}));
  }
  for (const TensorSample& tensor : tensor_samples()) {
    std::vector<uint8_t> bytes;
    while (bytes.size() < kPieceBytes && !tensor.bytes.empty())
      bytes.insert(bytes.end(), tensor.bytes.begin(), tensor.bytes.end());
    if (bytes.empty()) continue;
    all.push_back(std::make_shared<Data>(Data{tensor.name, tensor.type, std::move(bytes)}));
  }
  return all;
}

void add(const std::string& name, void (*run)(benchmark::State&, const Case&), const Case& which) {
  benchmark::RegisterBenchmark(name.c_str(), run, which)->DenseRange(0, 2)->UseManualTime();
}

void register_all() {
  const auto data = all_data();
  for (const auto& [where, bytes] :
       {std::pair{"cached", kCachedBytes}, std::pair{"memory", kMemoryBytes}}) {
    benchmark::RegisterBenchmark((std::string("memcpy/") + where).c_str(), run_memcpy, bytes);
    for (CpuTarget target : available_cpu_targets()) {
      for (const auto& one : data) {
        const std::string tail = std::string("/") + datatype_info(one->type).name + "/" +
                                 one->name + "/" + cpu_target_name(target) + "/" + where;
        const Case which{one, target, bytes};
        add("encode" + tail, run_encode, which);
        add("decode" + tail, run_decode, which);
        add("stream" + tail, run_stream, which);
        add("reduce" + tail, run_reduce, which);
      }
    }
  }
}

}  // namespace

int run_codec_benchmarks(int argc, char** argv) {
  register_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace uzip
