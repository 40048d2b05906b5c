#include "bench_options.hpp"

#include "failure.hpp"

#include <getopt.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <string_view>

namespace perf {
namespace {

enum LongOnly {
  kAlgo = 256,
  kCodec,
  kChunk,
  kSplit,
  kData,
  kMem,
  kVersus,
  kCsv,
  kMedian,
  kCi,
  kPercentiles,
  kOverlap,
  kPlot,
  kProgress,
  kLaunch,
  kCorrupt
};

constexpr option kLongOptions[] = {
    {"minbytes", required_argument, nullptr, 'b'},
    {"maxbytes", required_argument, nullptr, 'e'},
    {"stepbytes", required_argument, nullptr, 'i'},
    {"stepfactor", required_argument, nullptr, 'f'},
    {"iters", required_argument, nullptr, 'n'},
    {"warmup_iters", required_argument, nullptr, 'w'},
    {"check", required_argument, nullptr, 'c'},
    {"op", required_argument, nullptr, 'o'},
    {"datatype", required_argument, nullptr, 'd'},
    {"average", required_argument, nullptr, 'a'},
    {"output_file", required_argument, nullptr, 'J'},
    {"help", no_argument, nullptr, 'h'},
    {"algo", required_argument, nullptr, kAlgo},
    {"codec", required_argument, nullptr, kCodec},
    {"chunk", required_argument, nullptr, kChunk},
    {"split", required_argument, nullptr, kSplit},
    {"data", required_argument, nullptr, kData},
    {"mem", required_argument, nullptr, kMem},
    {"versus", required_argument, nullptr, kVersus},
    {"csv", no_argument, nullptr, kCsv},
    {"median", no_argument, nullptr, kMedian},
    {"ci", required_argument, nullptr, kCi},
    {"percentiles", no_argument, nullptr, kPercentiles},
    {"overlap", no_argument, nullptr, kOverlap},
    {"plot", required_argument, nullptr, kPlot},
    {"progress", required_argument, nullptr, kProgress},
    {"launch", required_argument, nullptr, kLaunch},
    {"selftest-corrupt", required_argument, nullptr, kCorrupt},
    {nullptr, 0, nullptr, 0},
};

[[noreturn]] void fail(const std::string& message) { throw Failure(kExitUsage, message); }

std::string name_of(int code) {
  for (const option& row : kLongOptions) {
    if (row.name != nullptr && row.val == code) return std::string("--") + row.name;
  }
  return std::string("-") + static_cast<char>(code);
}

[[noreturn]] void refuse(int code, std::string_view value, const std::string& allowed) {
  fail(name_of(code) + ": '" + std::string(value) + "' is not allowed; allowed: " + allowed);
}

uint64_t parse_number(std::string_view text, uint64_t limit, bool* good) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  *good = error == std::errc{} && end == text.data() + text.size() && number <= limit;
  return number;
}

int parse_count(int code, std::string_view text, int lowest) {
  bool good = false;
  const uint64_t number = parse_number(text, 1000000000, &good);
  if (!good || number < static_cast<uint64_t>(lowest)) {
    refuse(code, text, "a whole number from " + std::to_string(lowest) + " to 1000000000");
  }
  return static_cast<int>(number);
}

size_t parse_bytes(int code, std::string_view text, size_t lowest) {
  std::string_view digits = text;
  int shift = 0;
  if (!digits.empty()) {
    constexpr std::string_view kSuffixes = "KMGT";
    const size_t suffix = kSuffixes.find(static_cast<char>(digits.back() & ~0x20));
    if (suffix != std::string_view::npos && digits.back() >= 'A') {
      shift = 10 * static_cast<int>(suffix + 1);
      digits.remove_suffix(1);
    }
  }
  bool good = false;
  // Half of the address space: sums of two sizes cannot overflow.
  const uint64_t number = parse_number(digits, (SIZE_MAX / 2) >> shift, &good);
  if (!good || number << shift < lowest) {
    refuse(code, text,
           "a number of bytes, at least " + std::to_string(lowest) +
               ", K, M, G or T (powers of 1024) may follow");
  }
  return static_cast<size_t>(number << shift);
}

struct Choice {
  const char* name;
  int value;
};

int parse_choice(int code, std::string_view text, std::initializer_list<Choice> choices) {
  std::string allowed;
  for (const Choice& choice : choices) {
    if (text == choice.name) return choice.value;
    allowed += (allowed.empty() ? "" : " ") + std::string(choice.name);
  }
  refuse(code, text, allowed);
}

std::vector<uzip_op_t> parse_ops(int code, std::string_view text) {
  std::vector<uzip_op_t> ops;
  std::string allowed;
  for (uzip_op_t op : {UZIP_SUM, UZIP_PROD, UZIP_MIN, UZIP_MAX, UZIP_AVG}) {
    if (text == "all" || text == uzip_op_name(op)) ops.push_back(op);
    allowed += std::string(uzip_op_name(op)) + " ";
  }
  if (ops.empty()) refuse(code, text, allowed + "all");
  return ops;
}

std::vector<const ElementType*> parse_types(int code, std::string_view text) {
  std::vector<const ElementType*> types;
  if (text == "all") {
    for (const ElementType& type : element_types()) types.push_back(&type);
  } else if (const ElementType* type = find_element_type(text)) {
    types.push_back(type);
  } else {
    refuse(code, text, element_type_names() + " (or bf16, fp32, ...), all");
  }
  return types;
}

// "raw,mpi": in this order, each once.
std::vector<PeerKind> parse_peers(int code, std::string_view text) {
  std::vector<PeerKind> peers;
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    const auto peer = static_cast<PeerKind>(
        parse_choice(code, text.substr(at, comma - at),
                     {{"raw", static_cast<int>(PeerKind::kRaw)},
                      {"mpi", static_cast<int>(PeerKind::kMpi)},
                      {"ucc", static_cast<int>(PeerKind::kUcc)},
                      {"nccl", static_cast<int>(PeerKind::kNccl)}}));
    if (std::ranges::count(peers, peer) == 0) peers.push_back(peer);
    at = comma + 1;
  }
  return peers;
}

// "2%" or "2": a fraction of 0.02.
double parse_percent(int code, std::string_view text) {
  std::string_view digits = text;
  if (digits.ends_with('%')) digits.remove_suffix(1);
  double percent = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), percent);
  if (error != std::errc{} || end != digits.data() + digits.size() || !(percent >= 0.1) ||
      percent > 50) {
    refuse(code, text, "a percentage from 0.1% to 50%");
  }
  return percent / 100;
}

std::string parse_plot(int code, std::string_view text) {
  const bool file = text.size() > 4 && text.ends_with(".svg") && text.find('\n') == text.npos;
  if (text != "tty" && !file) refuse(code, text, "a file that ends in .svg, or tty");
  return std::string(text);
}

DataSource parse_data(int code, std::string_view text) {
  if (const auto source = find_data_source(text)) return *source;
  refuse(code, text, kDataSources);
}

// Sizes, iterations: what nccl-tests has, too. False if `code` is another option.
bool apply_common(Options& options, int code, const char* value) {
  // clang-format off
  switch (code) {
    case 'b': options.min_bytes = parse_bytes(code, value, 0); break;
    case 'e': options.max_bytes = parse_bytes(code, value, 0); break;
    case 'i': options.step_bytes = parse_bytes(code, value, 1); break;
    case 'f': options.step_factor = static_cast<size_t>(parse_count(code, value, 2)); break;
    case 'n': options.iterations = parse_count(code, value, 1); break;
    case 'w': options.warmup = parse_count(code, value, 0); break;
    case 'c': options.checks = parse_count(code, value, 0); break;
    case 'o': options.ops = parse_ops(code, value); break;
    case 'd': options.types = parse_types(code, value); break;
    case 'a': {
      const int average = parse_choice(code, value, {{"0", 0}, {"1", 1}, {"2", 2}, {"3", 3}});
      options.average = static_cast<Average>(average);
      break;
    }
    case 'J': options.json_file = value; break;
    case 'h': options.help = true; break;
    default: return false;
  }
  // clang-format on
  return true;
}

void apply_own(Options& options, int code, const char* value) {
  // clang-format off
  switch (code) {
    case kAlgo: options.algorithm = value; break;
    case kCodec: options.codec = value; break;
    case kChunk: options.chunk_bytes = parse_bytes(code, value, 0); break;
    case kSplit:
      options.split_send = parse_choice(code, value, {{"auto", -1}, {"0", 0}, {"1", 1}});
      break;
    case kData: options.data = parse_data(code, value); break;
    case kMem:
      options.memory = static_cast<MemoryKind>(
          parse_choice(code, value,
                       {{"host", static_cast<int>(MemoryKind::kHost)},
                        {"cuda", static_cast<int>(MemoryKind::kCuda)},
                        {"pinned", static_cast<int>(MemoryKind::kPinned)},
                        {"managed", static_cast<int>(MemoryKind::kManaged)}}));
      break;
    case kVersus: options.versus = parse_peers(code, value); break;
    case kCsv: options.csv = true; break;
    case kMedian: options.median = true; break;
    case kCi: options.precision = parse_percent(code, value); break;
    case kPercentiles: options.percentiles = true; break;
    case kOverlap: options.overlap = true; break;
    case kPlot: options.plot = parse_plot(code, value); break;
    case kProgress:
      options.progress = static_cast<ShowProgress>(
          parse_choice(code, value,
                       {{"auto", static_cast<int>(ShowProgress::kAuto)},
                        {"on", static_cast<int>(ShowProgress::kOn)},
                        {"off", static_cast<int>(ShowProgress::kOff)}}));
      break;
    case kLaunch:
      options.launch = static_cast<Launch>(
          parse_choice(code, value,
                       {{"auto", static_cast<int>(Launch::kAuto)},
                        {"mpi", static_cast<int>(Launch::kMpi)},
                        {"env", static_cast<int>(Launch::kEnvironment)},
                        {"alone", static_cast<int>(Launch::kAlone)}}));
      break;
    case kCorrupt:
      options.corruption = static_cast<Corruption>(
          parse_choice(code, value,
                       {{"exact", static_cast<int>(Corruption::kExact)},
                        {"bits", static_cast<int>(Corruption::kBits)},
                        {"ranks", static_cast<int>(Corruption::kRanks)},
                        {"guard", static_cast<int>(Corruption::kGuard)}}));
      break;
    default: break;
  }
  // clang-format on
}

// What makes no sense together, or for this operation.
void cross_check(const Operation& operation, const Options& options, bool op_given) {
  if (options.min_bytes > options.max_bytes) {
    fail("--minbytes " + format_bytes(options.min_bytes) + " is more than --maxbytes " +
         format_bytes(options.max_bytes) + "; give both, the smaller one first");
  }
  if (options.step_factor > 1 && options.min_bytes == 0 && options.max_bytes > 0) {
    fail("--minbytes 0 cannot be multiplied by --stepfactor; use --stepbytes, or at least 1 byte");
  }
  if (op_given && !operation.reduces)
    fail(std::string("--op: ") + operation.name + " reduces nothing");
  if (options.algorithm != "auto" && !operation.has_algorithms) {
    fail(std::string("--algo: ") + operation.name + " has no algorithms to choose from");
  }
  if (options.overlap && operation.start == nullptr)
    fail(std::string("--overlap: ") + operation.name + " is not one nonblocking call");
  if (options.memory != MemoryKind::kHost && (options.against(PeerKind::kMpi) || options.against(PeerKind::kUcc))) {
    fail("--mem: only raw and nccl can be compared with for buffers that are not in host memory");
  }
  if (options.memory != MemoryKind::kCuda && options.against(PeerKind::kNccl)) {
    fail(std::string("--versus nccl: NCCL needs memory of a GPU, not --mem ") + name_of(options.memory) +
         "; give --mem cuda");
  }
  if (options.plot == "tty" && options.csv) {
    fail("--plot tty and --csv would both write to standard output; give --plot a file");
  }
  if (options.corruption != Corruption::kNone && options.checks == 0) {
    fail("--selftest-corrupt needs --check 1 or more");
  }
}

}  // namespace

uzip_options_t Options::call_options() const {
  uzip_options_t call = UZIP_OPTIONS_INIT;
  call.algorithm = algorithm == "auto" ? nullptr : algorithm.c_str();
  call.codec = codec == "auto" ? nullptr : codec.c_str();
  call.chunk_bytes = chunk_bytes;
  call.split_send = split_send;
  return call;
}

Options parse_options(const Operation& operation, int argc, char** argv) {
  Options options;
  bool op_given = false;
  opterr = 0;
  for (;;) {
    const int at = optind;
    const int code = getopt_long(argc, argv, ":b:e:i:f:n:w:c:o:d:a:J:h", kLongOptions, nullptr);
    if (code == -1) break;
    const std::string given = argv[at < argc ? at : argc - 1];
    if (code == '?') {
      // optopt is the letter of an unknown short option, which may stand behind others.
      const bool short_option = optopt > 0 && optopt < 256;
      fail("unknown option " +
           (short_option ? std::string("-") + static_cast<char>(optopt) : given) + "; " +
           operation.name + " -h lists all");
    }
    if (code == ':')
      fail("option " + given + " needs a value; " + operation.name + " -h explains it");
    op_given = op_given || code == 'o';
    if (!apply_common(options, code, optarg)) apply_own(options, code, optarg);
  }
  if (optind < argc) {
    fail(std::string("unexpected argument '") + argv[optind] + "'; " + operation.name +
         " -h lists all options");
  }
  if (!options.help) cross_check(operation, options, op_given);
  return options;
}

std::string usage(const Operation& operation) {
  std::string text = std::string("usage: ") + operation.name + " [options]\n" + operation.name +
                     " " + operation.does + R"(; it measures and checks that.

Sizes: bytes in the larger of a rank's two buffers; K, M, G, T are powers of 1024
  -b, --minbytes N       first size (32M)
  -e, --maxbytes N       last size (32M)
  -i, --stepbytes N      distance between sizes (1M)
  -f, --stepfactor N     multiply sizes by N instead
Measuring
  -n, --iters N          timed calls (20)
  -w, --warmup_iters N   calls before these (5)
  -c, --check N          checks of each line; 0: none (1)
  -a, --average 0|1|2|3  whose time: 0 rank 0, 1 mean of all, 2 shortest, 3 longest (1)
  --median               median over the calls instead of their mean
  --ci P%                call until the time is known within P%, with 95 % confidence
  --percentiles          show the 50th, 90th and 99th percentile of the calls, too
  --overlap              how much of a nonblocking call passes while the program computes
  --versus LIST          take turns with raw (the library without compression), mpi, ucc or nccl
                         (their own functions) and compare the medians; raw,mpi: with both
Data
  -d, --datatype TYPE    )" +
                     element_type_names() + R"(,
                         the library's own names (bf16, ...), or all (float)
  -o, --op OP            sum, prod, min, max, avg or all (sum); reductions only
  --data KIND            gauss, uniform, zeros, random, mixed or file:PATH (gauss)
  --mem KIND             where the buffers are: host, cuda (memory of GPU rank modulo their
                         number), pinned or managed (host)
How the library does it (uzip_info lists the names)
  --algo NAME            algorithm (auto)
  --codec NAME           raw, lev, ... (auto)
  --chunk N              bytes of an encoded piece; 0: the library chooses (0)
  --split auto|0|1       send raw planes before coding is done (auto)
Output
  -J, --output_file F    write the results to F as JSON
  --csv                  comma-separated values instead of a table
  --plot FILE.svg|tty    draw the bandwidths, with gnuplot
  --progress auto|on|off tell on standard error how far it is, and how long it will take;
                         auto: if that is a terminal (auto)
Starting
  --launch HOW           auto, mpi, env (UZIP_RANK, ...) or alone (auto)
  --selftest-corrupt C   falsify a result, to see that it is noticed: exact, bits, ranks, guard
  -h, --help             this text
Exit status: 0 all right, 1 wrong elements or a failed operation, 2 wrong options.
See uzip_perf(1).
)";
  return text;
}

std::string format_bytes(size_t bytes) {
  constexpr char kSuffixes[] = {'\0', 'K', 'M', 'G', 'T'};
  size_t suffix = 0;
  while (bytes != 0 && bytes % 1024 == 0 && suffix + 1 < sizeof(kSuffixes)) {
    bytes /= 1024;
    ++suffix;
  }
  std::string text = std::to_string(bytes);
  if (suffix > 0) text += kSuffixes[suffix];
  return text;
}

}  // namespace perf
