// Speed of the lev codec on one core, for every type, level and CPU target: `make
// tests/codec_benchmark`, needs Google Benchmark. It is here and not in perf/, whose programs know
// the public headers only.
//
// "cached" codes 512 KiB again and again; "memory" walks through 64 MiB in pieces of 512 KiB, with
// the frames in one small buffer, as the engine does. Bytes are those of the elements; compare with
// the memcpy lines of the same run. The argument of every case is the level. Data decides: these
// are Gaussian, 0.02 wide.
#include "base/cpu.hpp"
#include "codec/codec.hpp"
#include "codec/reduce_frames.hpp"
#include "codec/samples.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstring>
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

struct Case {
  const DataTypeInfo* info;
  CpuTarget target;
  size_t bytes;
};

/// Elements, and room for the frame of one piece.
struct Bench {
  Bench(const Case& which, const benchmark::State& state)
      : codec(*find_codec("lev")),
        type(which.info->type),
        level(static_cast<CodecLevel>(state.range(0))),
        count(kPieceBytes / which.info->size),
        bound(codec.bound(type, count)),
        src(which.bytes),
        dst(which.bytes),
        body(bound.plain + bound.coded) {
    static_cast<void>(set_cpu_target(cpu_target_name(which.target)).ok());
    const auto sample = make_sample(type, SampleKind::kGaussian, count);
    for (size_t at = 0; at < which.bytes; at += kPieceBytes)
      std::memcpy(src.at(at), sample.data(), kPieceBytes);
  }
  bool encode(size_t at) {
    return codec
        .encode(type, level, src.at(at), count, {body.at(0), bound.plain + bound.coded}, scratch,
                header)
        .ok();
  }
  bool decode(size_t at) {
    return find_codec(header.codec)
        ->decode(header, {body.at(0), header.plain_bytes},
                 {body.at(header.plain_bytes), header.coded_bytes}, {dst.at(at), kPieceBytes},
                 scratch)
        .ok();
  }
  void report(benchmark::State& state, size_t bytes) const {
    state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * bytes));
    state.counters["ratio"] = static_cast<double>(header.plain_bytes + header.coded_bytes) /
                              static_cast<double>(kPieceBytes);
  }

  const Codec& codec;
  DataType type;
  CodecLevel level;
  size_t count;
  EncodedSizes bound;
  Buffer src;
  Buffer dst;
  Buffer body;
  CodecScratch scratch;
  FrameHeader header;
};

void run_encode(benchmark::State& state, Case which) {
  Bench bench(which, state);
  for (auto _ : state)
    for (size_t at = 0; at < which.bytes; at += kPieceBytes)
      benchmark::DoNotOptimize(bench.encode(at));
  bench.report(state, which.bytes);
}

void run_decode(benchmark::State& state, Case which) {
  Bench bench(which, state);
  if (!bench.encode(0) || bench.header.codec == kCodecRaw) return state.SkipWithError("sent raw");
  for (auto _ : state)
    for (size_t at = 0; at < which.bytes; at += kPieceBytes)
      benchmark::DoNotOptimize(bench.decode(at));
  bench.report(state, which.bytes);
}

/// dst = src + frame: what the owner of a share does with what arrives.
void run_reduce(benchmark::State& state, Case which) {
  Bench bench(which, state);
  if (!bench.encode(0) || bench.header.codec == kCodecRaw) return state.SkipWithError("sent raw");
  std::vector<std::byte> work(reduce_frames_bytes(bench.type, 1));
  for (auto _ : state) {
    for (size_t at = 0; at < which.bytes; at += kPieceBytes) {
      const ReduceOperand operands[] = {
          {bench.src.at(at), nullptr, {}, {}},
          {nullptr,
           &bench.header,
           {bench.body.at(0), bench.header.plain_bytes},
           {bench.body.at(bench.header.plain_bytes), bench.header.coded_bytes}}};
      benchmark::DoNotOptimize(reduce_frames(UZIP_SUM, bench.type, bench.dst.at(at), operands,
                                             bench.count, 0, work, bench.scratch)
                                   .ok());
    }
  }
  bench.report(state, which.bytes);
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

void add(const std::string& name, void (*run)(benchmark::State&, Case), const Case& which) {
  benchmark::RegisterBenchmark(name.c_str(), run, which)->DenseRange(0, 2);
}

void register_all() {
  for (const auto& [where, bytes] :
       {std::pair{"cached", kCachedBytes}, std::pair{"memory", kMemoryBytes}}) {
    benchmark::RegisterBenchmark((std::string("memcpy/") + where).c_str(), run_memcpy, bytes);
    for (CpuTarget target : available_cpu_targets()) {
      for (const DataTypeInfo& info : datatypes()) {
        if (!is_float(info.type)) continue;
        const std::string tail =
            std::string("/") + info.name + "/" + cpu_target_name(target) + "/" + where;
        const Case which{&info, target, bytes};
        add("encode" + tail, run_encode, which);
        add("decode" + tail, run_decode, which);
        add("reduce" + tail, run_reduce, which);
      }
    }
  }
}

}  // namespace
}  // namespace uzip

int main(int argc, char** argv) {
  uzip::register_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
