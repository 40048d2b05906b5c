// The table of all settings, and the only place that looks at the environment.
// Parsing, showing, suggesting and comparing between ranks all walk this one table.
#include "base/config.hpp"

#include "base/cpu.hpp"
#include "base/log.hpp"
#include "base/nearest_name.hpp"
#include "base/setting_form.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <sys/auxv.h>
#include <unistd.h>

namespace uzip {
namespace {

struct Row {
  const char* name;
  SettingForm form;
  bool must_match;
  const char* help;
};

const char* cpu_choice(int index) {
  return index == 0 ? "auto" : cpu_target_name(static_cast<CpuTarget>(index - 1));
}

const char* log_level_choice(int index) { return log_level_name(static_cast<LogLevel>(index)); }

constexpr bool kMustMatch = true;
constexpr bool kOwnChoice = false;

constexpr std::array kRows = {
    Row{"UZIP_RANK", IntegerForm{&Config::rank, 0}, kOwnChoice,
        "rank of this process, for uzip_comm_create_from_env()"},
    Row{"UZIP_SIZE", IntegerForm{&Config::size, 1}, kOwnChoice,
        "number of processes, for uzip_comm_create_from_env()"},
    Row{"UZIP_RENDEZVOUS", TextForm{&Config::rendezvous, "a directory that all ranks see", false},
        kOwnChoice, "directory where ranks find each other, for uzip_comm_create_from_env()"},

    Row{"UZIP_ALGORITHM",
        TextForm{&Config::algorithm,
                 "auto, the name of an algorithm (uzip_info -a), or a list such as "
                 "allreduce:ring,allgather:auto",
                 false},
        kMustMatch, "algorithm, for all collectives or for each named one"},
    Row{"UZIP_CODEC", TextForm{&Config::codec, "auto or the name of a codec (uzip_info -C)", false},
        kMustMatch,
        "codec for what is sent, also with :fastest, :balanced or :smallest; raw: no compression"},
    Row{"UZIP_CHUNK", BytesForm{&Config::chunk_bytes}, kMustMatch,
        "size of one encoded piece of one rank's share"},
    Row{"UZIP_SPLIT_SEND", AutoSwitchForm{&Config::split_send}, kMustMatch,
        "send the parts that are stored as they are before coding is done"},
    Row{"UZIP_CHECKSUM", SwitchForm{&Config::checksum}, kMustMatch,
        "protect every frame by a CRC32C"},
    Row{"UZIP_REPRODUCIBLE", SwitchForm{&Config::reproducible}, kMustMatch,
        "an element is reduced to the same bits in a call of any size, with pieces of any size"},
    Row{"UZIP_RANKS_PER_HOST", IntegerForm{&Config::ranks_per_host, 0}, kMustMatch,
        "for trying out: choose as if so many ranks in a row shared a host, and others a network; 0: as it is"},
    Row{"UZIP_TOPOLOGY",
        TextForm{&Config::topology, "auto, none, or how many ranks in a row share a NUMA node, such as 8 or 6,2n", false},
        kMustMatch,
        "group the ranks of a host by NUMA node, auto: as they are bound; none: not; for trying out: as if so"},
    Row{"UZIP_CODEC_THRESHOLD", BytesForm{&Config::codec_threshold}, kMustMatch,
        "calls with a smaller share per rank stay uncompressed when the codec is auto"},

    Row{"UZIP_TUNING_FILE",
        TextForm{&Config::tuning_file, "a file that uzip_tune wrote, auto or none", false}, kOwnChoice,
        "measured choices; auto: this user's own, if uzip_tune was run on this machine"},
    Row{"UZIP_CALIBRATE", SwitchForm{&Config::calibrate}, kMustMatch,
        "measure the network at the first large call, if no tuning table knows it"},

    Row{"UZIP_TIMEOUT", SecondsForm{&Config::timeout}, kOwnChoice,
        "a call that has waited for so long warns and names the missing ranks; 0: never"},
    Row{"UZIP_TIMEOUT_LIMIT", SecondsForm{&Config::timeout_limit}, kOwnChoice,
        "a call that has waited for so long fails with UZIP_ERR_TIMEOUT; 0: never"},
    Row{"UZIP_SPIN", SecondsForm{&Config::spin}, kOwnChoice,
        "idle time after which a waiting call sleeps until something arrives"},

    Row{"UZIP_CPU", NameForm{&Config::cpu, cpu_choice, 1 + int{kCpuTargetCount}}, kOwnChoice,
        "instruction set of the kernels; all give the same results"},
    Row{"UZIP_CODEC_THREADS", CountForm{&Config::codec_threads, 64}, kOwnChoice,
        "threads of this process that code and that move nonblocking calls forward"},
    Row{"UZIP_UCX_TLS",
        TextForm{&Config::ucx_tls, "a list of UCX transports, such as tcp,self, or nothing", true},
        kOwnChoice, "transports for this library's part of UCX only; empty: UCX chooses"},
    Row{"UZIP_LOCAL_QUEUES", SwitchForm{&Config::local_queues}, kOwnChoice,
        "send short messages to processes on the same host through queues in shared memory"},
    Row{"UZIP_PEER_READ", SwitchForm{&Config::peer_read}, kMustMatch,
        "read large messages straight from the memory of a process on the same host"},

    Row{"UZIP_GPU_PLUGIN", TextForm{&Config::gpu, "auto, off, or the file of a plugin", false}, kOwnChoice,
        "buffers in memory of a GPU: auto: where a GPU is in use; off: buffers are never looked at"},
    Row{"UZIP_GPU_MEMORY", BytesForm{&Config::gpu_memory}, kOwnChoice,
        "bytes of pinned and device memory that calls may use for each GPU; auto: 156M"},
    Row{"UZIP_GPU_PEERS", SwitchForm{&Config::gpu_peers}, kMustMatch,
        "messages and collectives between the GPUs of one host go by memory that these open to one another"},
    Row{"UZIP_GPU_PEER_MEMORY", BytesForm{&Config::gpu_peer_memory}, kMustMatch,
        "bytes of device memory for that, for each communicator; auto: 384M"},
    Row{"UZIP_GPU_BLOCKS", IntegerForm{&Config::gpu_blocks, 0}, kOwnChoice,
        "thread blocks of a codec kernel on a GPU; 0: as many as it runs at a time"},

    Row{"UZIP_LOG_LEVEL", ChoiceForm{&Config::log_level, log_level_choice, kLogLevelCount},
        kOwnChoice, "what is written to stderr"},
    Row{"UZIP_COLL_TRACE", SwitchForm{&Config::trace}, kOwnChoice,
        "one line for each new shape of call, with what was chosen for it"},
};

constexpr std::string_view kPrefix = "UZIP_";
// UCX reads these itself: ucp_config_read("UZIP", ...).
constexpr std::string_view kUcxPrefix = "UZIP_UCX_";

const Row* find_row(std::string_view name) {
  const auto row =
      std::find_if(kRows.begin(), kRows.end(), [&](const Row& r) { return name == r.name; });
  return row == kRows.end() ? nullptr : &*row;
}

// Bytes from outside for a message: short, and printable ASCII only.
std::string shortened(std::string_view text) {
  constexpr size_t kShown = 40;
  std::string shown;
  for (char c : text.substr(0, kShown)) {
    if (c >= ' ' && c < 0x7f) {
      shown += c;
    } else {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\x%02x", static_cast<unsigned char>(c));
      shown += escape;
    }
  }
  if (text.size() > kShown) shown += "... (" + std::to_string(text.size()) + " bytes)";
  return shown;
}

const char* nearest_setting(std::string_view name) {
  std::vector<const char*> names;
  for (const Row& row : kRows) names.push_back(row.name);
  return nearest_name(name, names);
}

std::string unknown_name_warning(std::string_view name) {
  return shortened(name) + " is not a setting and has no effect; the nearest is " +
         nearest_setting(name) + " (uzip_info -c lists all)";
}

// A program that runs with more rights than its user must not be steered by the user's environment:
// the rule of secure_getenv(3).
const char* const* process_environment() {
  static const char* const nothing[] = {nullptr};
  return getauxval(AT_SECURE) != 0 ? nothing : environ;
}

}  // namespace

std::span<const SettingInfo> settings() {
  struct Texts {
    std::string form;
    std::string default_value;
  };
  // SettingInfo points into `texts`, which is therefore filled first.
  static const std::vector<Texts> texts = [] {
    std::vector<Texts> list;
    for (const Row& row : kRows)
      list.push_back({describe_form(row.form), print_setting(row.form, Config())});
    return list;
  }();
  static const std::vector<SettingInfo> infos = [] {
    std::vector<SettingInfo> list;
    for (size_t i = 0; i < kRows.size(); ++i) {
      const Row& row = kRows[i];
      list.push_back({row.name, texts[i].form.c_str(), texts[i].default_value.c_str(), row.help,
                      row.must_match});
    }
    return list;
  }();
  return infos;
}

Result<Config> parse_config(const char* const* environment, std::vector<std::string>* warnings) {
  if (environment == nullptr) environment = process_environment();
  Config config;
  std::array<bool, kRows.size()> seen{};
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    const size_t equals = entry.find('=');
    if (!entry.starts_with(kPrefix) || equals == std::string_view::npos) continue;
    const std::string_view name = entry.substr(0, equals);
    const std::string_view value = entry.substr(equals + 1);
    const Row* row = find_row(name);
    if (row == nullptr) {
      if (warnings != nullptr && !name.starts_with(kUcxPrefix)) {
        warnings->push_back(unknown_name_warning(name));
      }
      continue;
    }
    // Of several entries with one name, getenv(3) takes the first.
    bool& row_seen = seen[static_cast<size_t>(row - kRows.data())];
    if (row_seen) continue;
    row_seen = true;
    if (!parse_setting(row->form, value, config)) {
      return error(UZIP_ERR_CONFIG, "%s='%s' is not allowed; allowed is %s", row->name,
                   shortened(value).c_str(), describe_form(row->form).c_str());
    }
  }
  return config;
}

Result<const Config*> load_config() {
  static const Result<Config> loaded = [] {
    std::vector<std::string> warnings;
    Result<Config> config = parse_config(nullptr, &warnings);
    if (config.ok()) set_log_level(static_cast<LogLevel>(config->log_level));
    for (const std::string& warning : warnings) log(LogLevel::kWarn, "%s", warning.c_str());
    return config;
  }();
  if (!loaded.ok()) return loaded.status();
  return &*loaded;
}

std::string cache_folder() {
  const auto absolute = [](const char* name) {
    const char* value = getauxval(AT_SECURE) == 0 ? std::getenv(name) : nullptr;
    return std::string(value != nullptr && value[0] == '/' ? value : "");
  };
  if (std::string folder = absolute("XDG_CACHE_HOME"); !folder.empty()) return folder;
  const std::string home = absolute("HOME");
  return home.empty() ? "" : home + "/.cache";
}

std::vector<std::string> matching_settings(const Config& config) {
  std::vector<std::string> list;
  for (const Row& row : kRows) {
    if (row.must_match)
      list.push_back(std::string(row.name) + "=" + print_setting(row.form, config));
  }
  return list;
}

std::string setting_value(const Config& config, const SettingInfo& setting) {
  const Row* row = find_row(setting.name);
  return row == nullptr ? std::string() : print_setting(row->form, config);
}

}  // namespace uzip
