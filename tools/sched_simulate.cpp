#include "sched_simulate.hpp"

#include "algos/simulate.hpp"
#include "base/nearest_name.hpp"
#include "comm/selector.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string_view>

namespace uzip {
namespace {

constexpr const char* kDefaultModel = "shm";
constexpr size_t kDefaultCount = 1 << 20;
constexpr size_t kMostModelBytes = 1 << 20;

Result<std::string> read_file(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return error(UZIP_ERR_INVALID, "%s: %s", path.c_str(), std::strerror(errno));
  std::string text(kMostModelBytes + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  const bool failed = std::ferror(file) != 0;
  std::fclose(file);
  if (failed) return error(UZIP_ERR_INVALID, "%s: cannot be read", path.c_str());
  if (text.size() > kMostModelBytes)
    return error(UZIP_ERR_INVALID, "%s: larger than any cost model", path.c_str());
  return text;
}

// A name without a dot or slash is one of ours.
Result<MachineModel> load_model(const std::string& name) {
  std::vector<const char*> names;
  for (const NamedModel& model : machine_models()) {
    if (name == model.name) return parse_machine_model(model.text, name);
    names.push_back(model.name);
  }
  if (name.find_first_of("./") == name.npos)
    return error(
        UZIP_ERR_INVALID,
        "there is no model '%.40s'; the nearest is %s (uzip_sched model lists all; a file's "
        "name has a dot or slash)",
        name.c_str(), nearest_name(name, names));
  UZIP_ASSIGN_OR_RETURN(const std::string text, read_file(name));
  return parse_machine_model(text, name);
}

// Which host each rank is on, if hosts have several ranks and there are several hosts: as the
// library tells algorithms.
std::vector<int> hosts_of(int ranks, const MachineModel& machine) {
  const int per_host = static_cast<int>(machine.ranks_per_host);
  std::vector<int> hosts;
  for (int rank = 0; per_host > 1 && per_host < ranks && rank < ranks; ++rank)
    hosts.push_back(rank / per_host);
  return hosts;
}

// Which socket of its host each rank is on, likewise, if hosts have several: as --per-socket says, or the model.
std::vector<int> sockets_of(const SchedOptions& options, int ranks, const MachineModel& machine) {
  const int host = std::min(ranks, static_cast<int>(machine.ranks_per_host));
  if (options.per_socket >= 0) return options.sockets_of(ranks, host);
  std::vector<int> sockets;
  for (int rank = 0; machine.socket_of(host - 1) > 0 && rank < ranks; ++rank) sockets.push_back(machine.socket_of(rank));
  return sockets;
}

Result<CallKind> kind_of(Coll coll) {
  for (int i = 1; i <= std::numeric_limits<uint8_t>::max(); ++i) {
    const CallKind kind = static_cast<CallKind>(i);
    if (std::string_view(call_name(kind)) == coll_name(coll)) return kind;
  }
  return error(UZIP_ERR_UNSUPPORTED, "the library has no call %s", coll_name(coll));
}

// How the library would carry out the call on this machine: its own selector cuts it into rounds.
Result<CallModel> plan_call(const SchedOptions& options, const Algorithm& algorithm, int ranks,
                            size_t count, const MachineModel& machine) {
  const CodecModel* codec = nullptr;
  if (options.codec != "raw") {
    codec = machine.find_codec(options.codec, options.type->type);
    if (codec == nullptr && is_float(options.type->type))
      return error(UZIP_ERR_INVALID, "model %s has no codec %s for %s", machine.name.c_str(),
                   options.codec.c_str(), options.type->name);
  }
  // Blocks of many sizes are not cut into rounds here.
  if (options.one_round || !options.blocks.empty() || algorithm.coll == Coll::kAlltoallv) {
    Shape shape = options.shape(algorithm.coll, ranks, count);
    shape.hosts = hosts_of(ranks, machine);
    shape.sockets = sockets_of(options, ranks, machine);
    return one_round(algorithm, shape, codec ? options.form() : Form::kPlain, options.type->type,
                     codec);
  }
  CallShape call;
  UZIP_ASSIGN_OR_RETURN(call.kind, kind_of(algorithm.coll));
  call.type = options.type->type;
  call.in_place = options.in_place;
  call.size = ranks;
  if (is_rooted(algorithm.coll)) call.root = options.root;
  call.count = algorithm.coll == Coll::kBarrier ? 0 : count;
  call.options.algorithm = &algorithm;
  UZIP_ASSIGN_OR_RETURN(call.options.codec, parse_codec_choice(codec ? options.codec : "raw"));
  call.options.chunk_bytes = static_cast<size_t>(machine.chunk);
  if (options.split) call.options.split_send = 1;
  const Config config;
  UZIP_ASSIGN_OR_RETURN(const Plan plan,
                        Selector(config, link_facts(ranks <= machine.ranks_per_host, nullptr),
                                 hosts_of(ranks, machine))
                            .select(call));

  CallModel model;
  model.algorithm = &algorithm;
  model.type = call.type;
  model.codec = codec;
  model.window = machine.window > 0 ? static_cast<uint32_t>(machine.window) : plan.window;
  Shape shape;
  const std::vector<int> sockets = sockets_of(options, ranks, machine);
  for (uint32_t round = 0; round < plan.rounds; ++round) {
    plan.round_shape(round, shape);
    shape.sockets = sockets;
    const Form form = codec == nullptr    ? Form::kPlain
                      : plan.split(round) ? Form::kSplitFused
                                          : Form::kFused;
    const auto same = std::find_if(
        model.kinds.begin(), model.kinds.end(),
        [&](const CallModel::Kind& kind) { return kind.form == form && kind.shape == shape; });
    model.rounds.push_back(static_cast<uint32_t>(same - model.kinds.begin()));
    if (same == model.kinds.end()) model.kinds.push_back({shape, form});
  }
  return model;
}

void print_row(const SchedOptions& options, const Algorithm& algorithm, int ranks, size_t count,
               const Prediction& prediction) {
  RankLoad most;
  for (const RankLoad& load : prediction.loads) {
    most.core = std::max(most.core, load.core);
    most.sent = std::max(most.sent, load.sent);
    most.messages = std::max(most.messages, load.messages);
  }
  const double bytes = static_cast<double>(count) * options.type->size;
  const std::string name = std::string(coll_name(algorithm.coll)) + ":" + algorithm.name;
  std::printf("%7d %12zu %14.0f %-32s %14.3f %9.3f %14.0f %9llu %5.1f %9zu\n", ranks, count, bytes,
              name.c_str(), 1e6 * prediction.seconds, bytes / prediction.seconds / 1e9, most.sent,
              static_cast<unsigned long long>(most.messages), 100 * most.core / prediction.seconds,
              prediction.simulated.size());
}

}  // namespace

Status print_simulations(const SchedOptions& options) {
  UZIP_ASSIGN_OR_RETURN(const MachineModel machine,
                        load_model(options.model.empty() ? kDefaultModel : options.model));
  std::printf(
      "# predicted with model %s, %s, codec %s; of the busiest rank: bytes and messages sent, "
      "time of its core\n",
      machine.name.c_str(), options.type->name, options.codec.c_str());
  std::printf("#%6s %12s %14s %-32s %14s %9s %14s %9s %5s %9s\n", "ranks", "count", "bytes",
              "algorithm", "time_us", "GB/s", "sent", "messages", "core%", "simulated");
  Status first_fault;
  const std::vector<size_t> counts =
      options.counts.empty() ? std::vector<size_t>{kDefaultCount} : options.counts;
  for (int ranks : options.ranks) {
    for (size_t count : counts) {
      for (const Algorithm* algorithm : options.algorithms) {
        const Result<CallModel> call = plan_call(options, *algorithm, ranks, count, machine);
        const Result<Prediction> prediction =
            call.ok() ? simulate(*call, machine) : Result<Prediction>(call.status());
        if (prediction.ok()) {
          print_row(options, *algorithm, ranks, count, *prediction);
        } else {
          std::printf("# %s on %d ranks: %s\n", algorithm->name, ranks,
                      prediction.status().message().c_str());
          if (first_fault.ok()) first_fault = prediction.status();
        }
      }
    }
  }
  return first_fault;
}

Status print_simulated_trace(const SchedOptions& options) {
  UZIP_ASSIGN_OR_RETURN(const MachineModel machine,
                        load_model(options.model.empty() ? kDefaultModel : options.model));
  const size_t count = options.counts.empty() ? kDefaultCount : options.counts[0];
  UZIP_ASSIGN_OR_RETURN(const CallModel call, plan_call(options, *options.algorithms[0],
                                                        options.ranks[0], count, machine));
  UZIP_ASSIGN_OR_RETURN(const std::string text, print_trace(call, machine));
  std::fputs(text.c_str(), stdout);
  return Status();
}

Status print_model(const SchedOptions& options) {
  if (options.model.empty()) {
    for (const NamedModel& model : machine_models())
      std::printf("%-10s %s\n", model.name, model.summary);
    return Status();
  }
  UZIP_ASSIGN_OR_RETURN(const MachineModel machine, load_model(options.model));
  std::fputs(print_machine_model(machine).c_str(), stdout);
  return Status();
}

}  // namespace uzip
