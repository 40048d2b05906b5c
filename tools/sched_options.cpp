#include "sched_options.hpp"

#include "base/nearest_name.hpp"
#include "codec/codec.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string_view>

#include <getopt.h>

namespace uzip {

const char* const kSchedSynopsis =
    "usage: uzip_sched print|dot OP:ALGORITHM [-p RANKS] [-n COUNT] [-c CODEC] [-r RANK]\n"
    "       uzip_sched verify OP[:ALGORITHM]|--all [-p RANKS] [-n COUNT]\n"
    "       uzip_sched simulate|json OP[:ALGORITHM] [-m MODEL] [-p RANKS] [-n COUNT] [-d TYPE] "
    "[-c CODEC]\n"
    "       uzip_sched model [-m MODEL]\n";

const char* const kSchedHelp =
    "Shows what the library's algorithms do, proves them, and predicts how long they take.\n"
    "\n"
    "  print        the steps of each rank, as text\n"
    "  dot          the same as a graph, for Graphviz\n"
    "  verify       proves an algorithm, or all of a collective, for 1 to RANKS ranks\n"
    "  simulate     predicts times on a model of a machine, one line for each case\n"
    "  json         a simulated call as a trace for chrome://tracing and ui.perfetto.dev\n"
    "  model        the models that are always there, or one as text\n"
    "\n"
    "  -p, --ranks RANKS    number of ranks (4); with verify and simulate also a list: 2-9,32,64\n"
    "  -n, --count COUNT    elements, as in the library's calls (16; simulate, json: 1M); K, M, "
    "G:\n"
    "                       times 1024, ...; verify: only this count, not all the awkward ones;\n"
    "                       verify and simulate take lists\n"
    "      --counts N,N,... elements of each rank's block\n"
    "  -d, --type TYPE      element type (fp32)\n"
    "  -c, --codec CODEC    raw (the default) or the name of a codec: messages become frames\n"
    "      --split          frames are made and sent in two parts\n"
    "  -i, --in-place       the result replaces the operands\n"
    "      --root RANK      the root, for the collectives that have one (0)\n"
    "      --per-host N     ranks of one host, between which nothing is encoded (all are alike)\n"
    "      --per-socket N   ranks of one socket of a host, which hierarchical algorithms keep together;\n"
    "                       simulate, json: 0: as if hosts had one (as the model says)\n"
    "  -r, --rank RANK      print, dot: this rank only\n"
    "  -m, --model MODEL    simulate, json, model: a model's name or a file, see uzip_model(5) "
    "(shm)\n"
    "      --one-round      simulate, json: the whole call as one round, not cut as the library "
    "does\n"
    "  -a, --all            verify, simulate: every algorithm\n"
    "      --orders N       verify: random orders of execution for each case (3)\n"
    "      --seed N         verify: what decides these orders (1)\n"
    "  -h, --help           this text\n";

namespace {

constexpr int kMostRanks = 1 << 20;

std::string joined(const std::vector<const char*>& names) {
  std::string text;
  for (const char* name : names) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

// "there is no collective 'allredcue'; the nearest is allreduce (all: allgather, ...)"
Status unknown(const char* what, std::string_view name, const std::vector<const char*>& names) {
  return error(UZIP_ERR_INVALID, "there is no %s '%.*s'; the nearest is %s (all: %s)", what,
               static_cast<int>(std::min<size_t>(name.size(), 40)), name.data(),
               nearest_name(name, names), joined(names).c_str());
}

Result<SchedCommand> parse_command(std::string_view name) {
  constexpr std::pair<const char*, SchedCommand> kCommands[] = {
      {"print", SchedCommand::kPrint},   {"dot", SchedCommand::kDot},
      {"verify", SchedCommand::kVerify}, {"simulate", SchedCommand::kSimulate},
      {"json", SchedCommand::kJson},     {"model", SchedCommand::kModel},
  };
  std::vector<const char*> names;
  for (const auto& [known, command] : kCommands) {
    if (name == known) return command;
    names.push_back(known);
  }
  return unknown("command", name, names);
}

// OP or OP:ALGORITHM.
Result<std::vector<const Algorithm*>> parse_algorithms(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view op = text.substr(0, colon);
  std::vector<const Algorithm*> found;
  std::vector<const char*> ops;
  for (const Algorithm* algorithm : algorithms()) {
    const char* name = coll_name(algorithm->coll);
    if (op == name) found.push_back(algorithm);
    if (ops.empty() || std::string_view(ops.back()) != name) ops.push_back(name);
  }
  if (found.empty()) return unknown("collective", op, ops);
  if (colon == std::string_view::npos) return found;
  std::vector<const char*> names;
  for (const Algorithm* algorithm : found) {
    if (text.substr(colon + 1) == algorithm->name) return std::vector{algorithm};
    names.push_back(algorithm->name);
  }
  return unknown((std::string(op) + " algorithm").c_str(), text.substr(colon + 1), names);
}

// A whole number, perhaps with a factor of 1024, 1024^2 or 1024^3.
bool parse_number(std::string_view text, size_t most, size_t& number) {
  size_t factor = 1;
  if (!text.empty()) {
    const char last = text.back();
    if (last == 'K' || last == 'k') factor = size_t{1} << 10;
    if (last == 'M' || last == 'm') factor = size_t{1} << 20;
    if (last == 'G' || last == 'g') factor = size_t{1} << 30;
  }
  if (factor > 1) text.remove_suffix(1);
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc() || end != text.data() + text.size() || number > most / factor)
    return false;
  number *= factor;
  return true;
}

Result<size_t> number_of(const char* option, std::string_view text, size_t least, size_t most) {
  size_t number = 0;
  if (parse_number(text, most, number) && number >= least) return number;
  return error(UZIP_ERR_INVALID, "%s '%.40s' is not a whole number from %zu to %zu", option,
               std::string(text).c_str(), least, most);
}

std::vector<std::string_view> split_list(std::string_view text) {
  std::vector<std::string_view> items;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    items.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return items;
}

Result<std::vector<size_t>> numbers_of(const char* option, std::string_view text) {
  constexpr size_t kMost = std::numeric_limits<size_t>::max() / 1024;
  std::vector<size_t> numbers;
  for (std::string_view item : split_list(text)) {
    UZIP_ASSIGN_OR_RETURN(const size_t number, number_of(option, item, 0, kMost));
    numbers.push_back(number);
  }
  return numbers;
}

// "4", "2-9,32"; `from_one`: a single number means all up to it.
Result<std::vector<int>> parse_ranks(std::string_view text, bool from_one) {
  std::vector<int> ranks;
  const std::vector<std::string_view> items = split_list(text);
  for (std::string_view item : items) {
    const size_t dash = item.find('-');
    const std::string_view last_text = dash == item.npos ? item : item.substr(dash + 1);
    UZIP_ASSIGN_OR_RETURN(const size_t last, number_of("--ranks", last_text, 1, kMostRanks));
    size_t first = from_one && items.size() == 1 ? 1 : last;
    if (dash != item.npos) {
      UZIP_ASSIGN_OR_RETURN(first, number_of("--ranks", item.substr(0, dash), 1, last));
    }
    for (size_t size = first; size <= last; ++size) ranks.push_back(static_cast<int>(size));
  }
  return ranks;
}

Status check_type(std::string_view name, SchedOptions& options) {
  options.type = find_datatype(name);
  if (options.type != nullptr) return Status();
  std::vector<const char*> names;
  for (const DataTypeInfo& type : datatypes()) names.push_back(type.name);
  return unknown("type", name, names);
}

Status check_codec(std::string_view name, SchedOptions& options) {
  std::vector<const char*> names;
  for (const Codec* codec : codecs()) names.push_back(codec->name);
  const auto same = [&](const char* known) { return name == known; };
  if (std::none_of(names.begin(), names.end(), same)) return unknown("codec", name, names);
  options.codec = name;
  return Status();
}

// What was given, as text, until the command is known.
struct Arguments {
  const char* ranks = "4";
  bool all = false;
  std::vector<std::string_view> words;
};

enum LongOption { kCounts = 256, kSplit, kRoot, kPerHost, kPerSocket, kOneRound, kOrders, kSeed };

Status parse_option(int option, Arguments& arguments, SchedOptions& options) {
  constexpr size_t kMostOrders = 1000000;
  switch (option) {
    case 'p':
      arguments.ranks = optarg;
      return Status();
    case 'n': {
      UZIP_ASSIGN_OR_RETURN(options.counts, numbers_of("--count", optarg));
      return Status();
    }
    case kCounts: {
      UZIP_ASSIGN_OR_RETURN(options.blocks, numbers_of("--counts", optarg));
      return Status();
    }
    case 'd':
      return check_type(optarg, options);
    case 'c':
      return check_codec(optarg, options);
    case kSplit:
      options.split = true;
      return Status();
    case 'i':
      options.in_place = true;
      return Status();
    case kRoot: {
      UZIP_ASSIGN_OR_RETURN(const size_t root, number_of("--root", optarg, 0, kMostRanks));
      options.root = static_cast<int>(root);
      return Status();
    }
    case kPerHost: {
      UZIP_ASSIGN_OR_RETURN(const size_t ranks, number_of("--per-host", optarg, 1, kMostRanks));
      options.per_host = static_cast<int>(ranks);
      return Status();
    }
    case kPerSocket: {
      UZIP_ASSIGN_OR_RETURN(const size_t ranks, number_of("--per-socket", optarg, 0, kMostRanks));
      options.per_socket = static_cast<int>(ranks);
      return Status();
    }
    case 'm':
      options.model = optarg;
      return Status();
    case kOneRound:
      options.one_round = true;
      return Status();
    case 'r': {
      UZIP_ASSIGN_OR_RETURN(const size_t rank, number_of("--rank", optarg, 0, kMostRanks));
      options.rank = static_cast<int>(rank);
      return Status();
    }
    case 'a':
      arguments.all = true;
      return Status();
    case kOrders: {
      UZIP_ASSIGN_OR_RETURN(const size_t orders, number_of("--orders", optarg, 1, kMostOrders));
      options.orders = static_cast<int>(orders);
      return Status();
    }
    case kSeed: {
      UZIP_ASSIGN_OR_RETURN(const size_t seed, number_of("--seed", optarg, 0, UINT32_MAX));
      options.seed = static_cast<uint32_t>(seed);
      return Status();
    }
    case 'h':
      options.command = SchedCommand::kHelp;
      return Status();
  }
  return error(UZIP_ERR_INVALID, "there is no such option");
}

// Commands that take several algorithms, numbers of ranks and counts.
bool takes_lists(SchedCommand command) {
  return command == SchedCommand::kVerify || command == SchedCommand::kSimulate;
}

Status choose_algorithms(const Arguments& arguments, SchedOptions& options) {
  const bool several = takes_lists(options.command);
  const size_t words = arguments.words.size();
  if (arguments.all && !several)
    return error(UZIP_ERR_INVALID, "--all goes with verify and simulate");
  if (arguments.all && words > 1)
    return error(UZIP_ERR_INVALID, "--all and '%.40s' exclude each other",
                 std::string(arguments.words[1]).c_str());
  if (words > 2)
    return error(UZIP_ERR_INVALID, "unexpected argument '%.40s'",
                 std::string(arguments.words[2]).c_str());
  if (arguments.all) {
    options.algorithms.assign(algorithms().begin(), algorithms().end());
    return Status();
  }
  if (words < 2)
    return error(UZIP_ERR_INVALID, "an algorithm is missing, such as allreduce:ring%s",
                 several ? ", or --all" : "");
  UZIP_ASSIGN_OR_RETURN(options.algorithms, parse_algorithms(arguments.words[1]));
  if (options.algorithms.size() == 1 || several) return Status();
  std::vector<const char*> names;
  for (const Algorithm* algorithm : options.algorithms) names.push_back(algorithm->name);
  const std::string op(arguments.words[1]);
  return error(UZIP_ERR_INVALID, "'%s' has several algorithms: %s; name one, as in %s:%s",
               op.c_str(), joined(names).c_str(), op.c_str(), names[0]);
}

// What goes together, and defaults that depend on the command.
Status complete(const Arguments& arguments, SchedOptions& options) {
  const bool verifies = options.command == SchedCommand::kVerify;
  if (options.command == SchedCommand::kModel) {
    if (arguments.words.size() == 1) return Status();
    return error(UZIP_ERR_INVALID, "unexpected argument '%.40s'; a model is named with -m",
                 std::string(arguments.words[1]).c_str());
  }
  UZIP_RETURN_IF_ERROR(choose_algorithms(arguments, options));
  UZIP_ASSIGN_OR_RETURN(options.ranks,
                        parse_ranks(arguments.ranks, verifies && !options.one_case()));
  if (options.type == nullptr) options.type = find_datatype("fp32");
  if (options.split && options.codec == "raw")
    return error(UZIP_ERR_INVALID, "--split needs a codec (-c)");
  if (!options.counts.empty() && !options.blocks.empty())
    return error(UZIP_ERR_INVALID, "--count and --counts exclude each other");
  for (int ranks : options.ranks) {
    if (!options.blocks.empty() && options.blocks.size() != static_cast<size_t>(ranks))
      return error(UZIP_ERR_INVALID, "--counts has %zu blocks for %d ranks", options.blocks.size(),
                   ranks);
    if (options.root >= ranks && (!verifies || options.one_case()))
      return error(UZIP_ERR_INVALID, "--root %d is not below the number of ranks, %d", options.root,
                   ranks);
    if (options.rank >= ranks)
      return error(UZIP_ERR_INVALID, "--rank %d is not below the number of ranks, %d", options.rank,
                   ranks);
  }
  if (takes_lists(options.command)) return Status();
  if (options.ranks.size() > 1 || options.counts.size() > 1)
    return error(UZIP_ERR_INVALID, "lists go with verify and simulate; the others take one number");
  return Status();
}

}  // namespace

std::vector<int> SchedOptions::sockets_of(int ranks, int host) const {
  std::vector<int> sockets;
  for (int rank = 0; per_socket > 0 && rank < ranks; ++rank) sockets.push_back(rank % host / per_socket);
  return sockets;
}

Shape SchedOptions::shape(Coll coll, int ranks, size_t count) const {
  Shape shape = even_shape(coll, ranks, count, in_place);
  if (!blocks.empty() && coll != Coll::kBarrier) shape.counts = blocks;
  if (is_rooted(coll)) shape.root = root;
  for (int rank = 0; per_host > 0 && rank < ranks; ++rank) shape.hosts.push_back(rank / per_host);
  shape.sockets = sockets_of(ranks, per_host > 0 ? per_host : ranks);
  return shape;
}

Result<SchedOptions> parse_sched_options(int argc, char** argv) {
  static constexpr option kOptions[] = {
      {"ranks", required_argument, nullptr, 'p'},
      {"count", required_argument, nullptr, 'n'},
      {"counts", required_argument, nullptr, kCounts},
      {"type", required_argument, nullptr, 'd'},
      {"codec", required_argument, nullptr, 'c'},
      {"split", no_argument, nullptr, kSplit},
      {"in-place", no_argument, nullptr, 'i'},
      {"rank", required_argument, nullptr, 'r'},
      {"root", required_argument, nullptr, kRoot},
      {"per-host", required_argument, nullptr, kPerHost},
      {"per-socket", required_argument, nullptr, kPerSocket},
      {"model", required_argument, nullptr, 'm'},
      {"one-round", no_argument, nullptr, kOneRound},
      {"all", no_argument, nullptr, 'a'},
      {"orders", required_argument, nullptr, kOrders},
      {"seed", required_argument, nullptr, kSeed},
      {"help", no_argument, nullptr, 'h'},
      {nullptr, 0, nullptr, 0},
  };
  SchedOptions options;
  Arguments arguments;
  opterr = 0;
  for (int found; (found = getopt_long(argc, argv, ":p:n:d:c:ir:m:ah", kOptions, nullptr)) != -1;) {
    if (found == 'h') return options;
    if (found == ':') return error(UZIP_ERR_INVALID, "%.40s needs a value", argv[optind - 1]);
    if (found == '?') {
      std::vector<const char*> names;
      for (const option& known : std::span(kOptions).first(std::size(kOptions) - 1))
        names.push_back(known.name);
      const std::string_view given = argv[optind - 1];
      if (given.starts_with("--") && optopt == 0)
        return unknown("option", given.substr(2, given.find('=') - 2), names);
      return error(UZIP_ERR_INVALID, "there is no option '-%c', or it takes no value", optopt);
    }
    UZIP_RETURN_IF_ERROR(parse_option(found, arguments, options));
  }
  for (int i = optind; i < argc; ++i) arguments.words.push_back(argv[i]);
  if (arguments.words.empty()) {
    return error(UZIP_ERR_INVALID,
                 "a command is missing: print, dot, verify, simulate, json or model");
  }
  UZIP_ASSIGN_OR_RETURN(options.command, parse_command(arguments.words[0]));
  UZIP_RETURN_IF_ERROR(complete(arguments, options));
  return options;
}

}  // namespace uzip
