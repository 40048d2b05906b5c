// uzip_tune: measures what the library is best at on this machine, and writes the table that its selector reads; or
// explains a choice. Started like any parallel program.
#include "../perf/failure.hpp"
#include "../perf/together.hpp"
#include "comm/codec_speed.hpp"
#include "comm/tuning_file.hpp"
#include "tune_explain.hpp"
#include "tune_measure.hpp"
#include "tune_model.hpp"

#include <getopt.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace uzip {
namespace {

using perf::Failure;
using perf::kExitUsage;
using perf::kExitWrong;

constexpr const char* kUsage = R"(usage: mpirun -np N uzip_tune [options]
       uzip_tune --explain CALL TYPE BYTES [--ranks N] [--link shared|network] [--file FILE]
Measures links, codecs and collectives, and writes the table from which the library chooses.

  -f, --file FILE     the table (UZIP_TUNING_FILE, or this user's cache)
  --calls LIST        of allreduce,reduce_scatter,allgather,bcast,reduce,alltoall,gather,
                      scatter,send (all)
  --types LIST        element types (bf16,fp32)
  --data LIST         what is coded: gauss, uniform, zeros, random, mixed, file:PATH (gauss,random)
  --maxbytes N        largest call, K, M or G may follow (64M)
  --seconds S         for all calls together (60)
  --model FILE        write a cost model of this machine for uzip_sched, too
  --launch HOW        auto, mpi, env or alone (auto)
  --explain           what would be done with a call, and what else was possible
  --ranks N           of that call (2)
  --per-host N        of these, on each host of a network (1)
  --link NAME         shared: all ranks on one host; network (network)
  -h, --help          this text
See uzip_tune(1).
)";

/// How much a codec is measured on: some frames of a network's pieces, in cache.
constexpr size_t kCodedBytes = 512 << 10;
constexpr int kCodings = 15;

struct Options {
  TuneOptions tune;
  ExplainedCall explained;
  std::string file;
  std::string model;  ///< where to write one; "" for none
  perf::Launch launch = perf::Launch::kAuto;
  bool explain = false;
  bool help = false;
};

[[noreturn]] void refuse(const char* option, std::string_view value, const std::string& allowed) {
  throw Failure(kExitUsage,
                std::string(option) + ": '" + std::string(value) + "' is not allowed; allowed: " + allowed);
}

size_t parse_bytes(const char* option, std::string_view text) {
  std::string_view digits = text;
  constexpr std::string_view kSuffixes = "KMG";
  const size_t suffix = digits.empty() ? kSuffixes.npos : kSuffixes.find(digits.back());
  if (suffix != kSuffixes.npos) digits.remove_suffix(1);
  const int shift = suffix == kSuffixes.npos ? 0 : 10 * static_cast<int>(suffix + 1);
  size_t value = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (problem != std::errc{} || end != digits.data() + digits.size() || value == 0 || value > (size_t{1} << 40 >> shift))
    refuse(option, text, "a number of bytes from 1 to 1024G, K, M or G may follow");
  return value << shift;
}

int parse_whole(const char* option, std::string_view text, int low, int high) {
  int value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || end != text.data() + text.size() || value < low || value > high)
    refuse(option, text, "a whole number from " + std::to_string(low) + " to " + std::to_string(high));
  return value;
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words(1);
  for (char c : text) {
    if (c == ',') words.emplace_back();
    else words.back() += c;
  }
  return words;
}

CallKind parse_kind(const char* option, const std::string& word) {
  std::string allowed;
  for (CallKind kind : kTunableKinds) {
    if (word == call_name(kind)) return kind;
    allowed += std::string(allowed.empty() ? "" : " ") + call_name(kind);
  }
  refuse(option, word, allowed);
}

DataType parse_type(const char* option, const std::string& word) {
  std::string allowed;
  for (const DataTypeInfo& info : datatypes()) {
    if (word == info.name) return info.type;
    allowed += std::string(allowed.empty() ? "" : " ") + info.name;
  }
  refuse(option, word, allowed);
}

perf::DataSource parse_data(const char* option, const std::string& word) {
  if (const auto source = perf::find_data_source(word)) return *source;
  refuse(option, word, perf::kDataSources);
}

enum LongOnly { kCalls = 256, kTypes, kMaxBytes, kSeconds, kLaunch, kExplain, kRanks, kPerHost, kLink, kModel, kData };

constexpr option kLongOptions[] = {
    {"file", required_argument, nullptr, 'f'},      {"calls", required_argument, nullptr, kCalls},
    {"types", required_argument, nullptr, kTypes},  {"maxbytes", required_argument, nullptr, kMaxBytes},
    {"seconds", required_argument, nullptr, kSeconds}, {"launch", required_argument, nullptr, kLaunch},
    {"per-host", required_argument, nullptr, kPerHost}, {"model", required_argument, nullptr, kModel},
    {"explain", no_argument, nullptr, kExplain},    {"ranks", required_argument, nullptr, kRanks},
    {"link", required_argument, nullptr, kLink},    {"help", no_argument, nullptr, 'h'},
    {"data", required_argument, nullptr, kData},
    {nullptr, 0, nullptr, 0},
};

void apply(Options& options, int code, const std::string& value) {
  switch (code) {
    case 'f': options.file = value; break;
    case 'h': options.help = true; break;
    case kCalls:
      options.tune.kinds.clear();
      for (const std::string& word : words_of(value)) options.tune.kinds.push_back(parse_kind("--calls", word));
      break;
    case kTypes:
      options.tune.types.clear();
      for (const std::string& word : words_of(value)) options.tune.types.push_back(parse_type("--types", word));
      break;
    case kData:
      options.tune.data.clear();
      for (const std::string& word : words_of(value)) options.tune.data.push_back(parse_data("--data", word));
      break;
    case kMaxBytes: options.tune.largest = parse_bytes("--maxbytes", value); break;
    case kSeconds: options.tune.seconds = parse_whole("--seconds", value, 1, 100000); break;
    case kExplain: options.explain = true; break;
    case kRanks: options.explained.ranks = parse_whole("--ranks", value, 2, 1 << 20); break;
    case kPerHost: options.explained.per_host = parse_whole("--per-host", value, 1, 1 << 20); break;
    case kModel: options.model = value; break;
    case kLink:
      if (value != "shared" && value != "network") refuse("--link", value, "shared network");
      options.explained.link = value == "shared" ? LinkClass::kShared : LinkClass::kNetwork;
      break;
    case kLaunch: {
      const char* names[] = {"auto", "mpi", "env", "alone"};
      const perf::Launch ways[] = {perf::Launch::kAuto, perf::Launch::kMpi, perf::Launch::kEnvironment,
                                   perf::Launch::kAlone};
      const auto name = std::find(std::begin(names), std::end(names), value);
      if (name == std::end(names)) refuse("--launch", value, "auto mpi env alone");
      options.launch = ways[name - std::begin(names)];
      break;
    }
    default: break;
  }
}

Options parse_options(int argc, char** argv) {
  Options options;
  options.tune.types = {UZIP_BF16, UZIP_FP32};
  options.tune.kinds.assign(std::begin(kTunableKinds), std::end(kTunableKinds));
  opterr = 0;
  for (;;) {
    const int at = optind;
    const int code = getopt_long(argc, argv, ":f:h", kLongOptions, nullptr);
    if (code == -1) break;
    const std::string given = argv[at < argc ? at : argc - 1];
    if (code == '?') throw Failure(kExitUsage, "unknown option " + given + "; uzip_tune -h lists all");
    if (code == ':') throw Failure(kExitUsage, "option " + given + " needs a value; uzip_tune -h explains it");
    apply(options, code, optarg ? optarg : "");
  }
  const int words = argc - optind;
  if (options.explain && !options.help) {
    if (words != 3) throw Failure(kExitUsage, "--explain needs a call, a type and a size, as in: allreduce bf16 64M");
    options.explained.kind = parse_kind("--explain", argv[optind]);
    options.explained.type = parse_type("--explain", argv[optind + 1]);
    options.explained.bytes = parse_bytes("--explain", argv[optind + 2]);
    if (options.explained.per_host > options.explained.ranks)
      refuse("--per-host", std::to_string(options.explained.per_host), "at most --ranks");
  } else if (words > 0 && !options.help) {
    throw Failure(kExitUsage, std::string("unexpected argument '") + argv[optind] + "'; uzip_tune -h lists all options");
  }
  return options;
}

/// The table in `path`, or an empty one if there is no file. Throws Failure if it is something else.
TuningTable old_table(const std::string& path) {
  if (access(path.c_str(), F_OK) != 0) return TuningTable();
  Result<TuningTable> table = read_tuning_file(path);
  if (!table.ok())
    throw Failure(kExitUsage, table.status().message() + "; remove it, or give another one with --file");
  return std::move(*table);
}

std::string path_of(const Options& options, const Config& config) {
  const std::string path = options.file.empty() ? tuning_path(config) : options.file;
  if (path.empty())
    throw Failure(kExitUsage, "there is no place for a table: UZIP_TUNING_FILE is none, or HOME is not set; give --file");
  return path;
}

int explain_call(const Options& options, const Config& config) {
  const std::string path = path_of(options, config);
  std::shared_ptr<const TuningTable> table;
  if (access(path.c_str(), F_OK) == 0) table = std::make_shared<const TuningTable>(old_table(path));
  std::printf("table %s%s\n", path.c_str(), table ? "" : ": there is none");
  const Result<std::string> text = explain(options.explained, config, std::move(table));
  if (!text.ok()) throw Failure(kExitUsage, text.status().message());
  std::fputs(text->c_str(), stdout);
  return 0;
}

/// Entries of other links, ranks, calls and types stay.
int tune(const perf::World& world, const Options& options, const Config& config) {
  if (world.ranks() < 2)
    throw perf::SharedFailure(kExitUsage, "one rank has nobody to talk to; start it with mpirun -np 2 or more");
  std::string path;
  TuningTable table;
  perf::do_together(world, [&] {
    if (!world.is_root()) return;
    path = path_of(options, config);
    table = old_table(path);
    // Found out before anything is measured.
    if (Status status = write_tuning_file(path, table); !status.ok()) throw Failure(kExitUsage, status.message());
  });
  const JobLinks links = links_of(world, config.ranks_per_host);
  const LinkClass link = links.link;
  table.machine = describe_machine();
  bool busy = false;
  table.links[static_cast<size_t>(link)] = measure_link(world, links, &busy);
  table.codecs = measure_codec_speeds(options.tune.types, kCodedBytes, kCodings);
  if (world.is_root()) {
    const TunedLink& measured = table.link(link);
    std::printf("%s, %d ranks, link %s: latency %.2f us, %.4g GB/s a rank\n", table.machine.c_str(), world.ranks(),
                link_class_name(link), measured.latency * 1e6, measured.bandwidth / 1e9 / largest_host(links.hosts));
    if (busy) {
      std::fputs("uzip_tune: times vary widely: this machine, or the network, is busy; run it again when it is not\n",
                 stderr);
    }
  }
  measure_calls(world, links, options.tune, &table, [](const std::string& what) {
    std::printf("%s\n", what.c_str());
    std::fflush(stdout);
  });
  MachineModel model;
  if (!options.model.empty()) model = measure_model(world, links, table, config.codec_threads);
  perf::do_together(world, [&] {
    if (!world.is_root()) return;
    if (Status status = write_tuning_file(path, table); !status.ok()) throw Failure(kExitWrong, status.message());
    std::printf("%zu choices in %s\n", table.choices.size(), path.c_str());
    if (options.model.empty()) return;
    if (Status status = write_text_file(options.model, model_text(model)); !status.ok())
      throw Failure(kExitWrong, status.message());
    std::printf("a cost model in %s\n", options.model.c_str());
  });
  return 0;
}

int run_ranks(const Options& options, const Config& config, int argc, char** argv) {
  // What is measured must not depend on an older table.
  setenv("UZIP_TUNING_FILE", "none", 1);
  perf::World world(options.launch, &argc, &argv);
  int exit_status = 0;
  try {
    exit_status = tune(world, options, config);
  } catch (const perf::SharedFailure& failure) {
    if (world.is_root()) std::fprintf(stderr, "uzip_tune: %s\n", failure.what());
    exit_status = failure.exit_status();
  }
  world.leave();
  return exit_status;
}

}  // namespace
}  // namespace uzip

int main(int argc, char** argv) {
  using namespace uzip;
  try {
    const Options options = parse_options(argc, argv);
    if (options.help) {
      if (perf::speaks_for_job()) std::fputs(kUsage, stdout);
      return 0;
    }
    const Result<Config> config = parse_config(nullptr, nullptr);
    if (!config.ok()) throw Failure(kExitUsage, config.status().message());
    if (options.explain) return explain_call(options, *config);
    return run_ranks(options, *config, argc, argv);
  } catch (const perf::Failure& failure) {
    if (perf::speaks_for_job() || failure.exit_status() != kExitUsage)
      std::fprintf(stderr, "uzip_tune: %s\n", failure.what());
    perf::World::abandon(failure.exit_status());
  }
}
