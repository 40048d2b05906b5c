// What the codec costs and gains on one core, without communication: a table in which other
// lossless compressors stand beside it, or with --benchmark_* options Google Benchmark's cases. It
// works below the public API, so it is the one program here that includes headers of src/.
#include "base/cpu.hpp"
#include "codec/samples.hpp"
#include "codec_table.hpp"

#ifdef PERF_WITH_BENCHMARK
#include "codec_benchmarks.hpp"
#endif

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>

namespace {

constexpr const char* kUsage =
    "usage: codec [--cached] [--cpu TARGET] [--match TEXT] [FILE TYPE]...\n"
#ifdef PERF_WITH_BENCHMARK
    "       codec --benchmark_filter=REGEX...   (Google Benchmark)\n"
#endif
    "\n"
    "Prints ratio and speeds of lev and of the compressors that configure found, for raw files of\n"
    "elements or, without any, for the samples of tests/data and random numbers. All are coded in\n"
    "pieces of at most 256 KiB.\n"
    "\n"
    "  --cached      code one piece again and again, in the cache, instead of walking through 16 "
    "MiB\n"
    "  --cpu TARGET  as UZIP_CPU; for lev and the reductions\n"
    "  --match TEXT  only the lines whose type, data and codec, with one blank between them, have "
    "it\n";

struct Arguments {
  uzip::TableOptions table;
  const char* cpu = "auto";
};

bool read_file(const char* path, const char* type_name, std::vector<uzip::TableData>* data) {
  const uzip::DataTypeInfo* info = uzip::find_datatype(type_name);
  if (info == nullptr) {
    std::fprintf(stderr, "codec: there is no type '%s'\n", type_name);
    return false;
  }
  std::ifstream file(path, std::ios::binary);
  std::vector<uint8_t> bytes(std::istreambuf_iterator<char>(file), {});
  if (!file || bytes.size() < info->size) {
    std::fprintf(stderr, "codec: %s: cannot be read, or holds no element\n", path);
    return false;
  }
  const char* slash = std::strrchr(path, '/');
  data->push_back({slash == nullptr ? path : slash + 1, info->type, std::move(bytes)});
  return true;
}

bool parse(int argc, char** argv, Arguments* arguments) {
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    const bool has_more = i + 1 < argc;
    if (option == "--cached")
      arguments->table.cached = true;
    else if (option == "--cpu" && has_more)
      arguments->cpu = argv[++i];
    else if (option == "--match" && has_more)
      arguments->table.match = argv[++i];
    else if (option.starts_with("-") || !has_more)
      return false;
    else if (!read_file(argv[i], argv[i + 1], &arguments->table.data))
      return false;
    else
      ++i;
  }
  return true;
}

void add_samples(std::vector<uzip::TableData>* data) {
  constexpr size_t kBytes = size_t{256} << 10;
  for (const uzip::TensorSample& tensor : uzip::tensor_samples()) {
    // The type stands beside it.
    const size_t tail = std::strlen(uzip::datatype_info(tensor.type).name) + 1;
    data->push_back({tensor.name.substr(0, tensor.name.size() - tail), tensor.type, tensor.bytes});
  }
  for (const uzip::DataTypeInfo& info : uzip::datatypes()) {
    if (!uzip::is_float(info.type)) continue;
    for (uzip::SampleKind kind : {uzip::SampleKind::kGaussian, uzip::SampleKind::kRandomBits})
      data->push_back({uzip::sample_kind_name(kind), info.type,
                       uzip::make_sample(info.type, kind, kBytes / info.size)});
  }
}

}  // namespace

int main(int argc, char** argv) {
#ifdef PERF_WITH_BENCHMARK
  for (int i = 1; i < argc; ++i)
    if (std::strncmp(argv[i], "--benchmark", 11) == 0)
      return uzip::run_codec_benchmarks(argc, argv);
#endif
  Arguments arguments;
  if (!parse(argc, argv, &arguments)) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  if (const uzip::Status status = uzip::set_cpu_target(arguments.cpu); !status.ok()) {
    std::fprintf(stderr, "codec: %s\n", status.message().c_str());
    return 2;
  }
  if (arguments.table.data.empty()) add_samples(&arguments.table.data);
  return uzip::print_codec_table(arguments.table) ? 0 : 1;
}
