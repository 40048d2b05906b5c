// uzip_info(1): what this installation of libuzipcoll is and can do, read from the same tables that
// the library uses.
#include "algos/algorithm.hpp"
#include "algos/collective_cases.hpp"
#include "algos/machine_model.hpp"
#include "algos/simulate.hpp"
#include "base/config.hpp"
#include "base/cpu.hpp"
#include "codec_report.hpp"
#include "file_report.hpp"
#include "gpu_report.hpp"
#include "topology_report.hpp"

#include <uzipcoll/uzipcoll.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <getopt.h>
#include <ucp/api/ucp.h>

// Written into the build tree by make.
extern const char* const configure_options;

namespace {

using uzip::Config;
using uzip::SettingInfo;

enum ExitCode { kSuccess = 0, kFailure = 1, kUsage = 2 };

constexpr const char* kSynopsis =
    "usage: uzip_info [-vbaCth] [-c [--names]] [--frame FILE] [--ratio FILE TYPE]\n";

constexpr const char* kHelp =
    "Tells about this installation of libuzipcoll; without an option, briefly all of it.\n"
    "\n"
    "  -v, --version     version\n"
    "  -b, --build       compiler, configure options, UCX, CPU targets\n"
    "  -c, --settings    every UZIP_* setting with its value in force; * marks those that were "
    "changed\n"
    "      --names       with -c: the names only\n"
    "  -a, --algorithms  algorithms, for UZIP_ALGORITHM and uzip_options_t\n"
    "  -C, --codecs      codecs, for UZIP_CODEC and uzip_options_t, and how fast they are here\n"
    "  -t, --topology    cores, NUMA nodes, network, GPUs, and which GPUs reach each other's memory\n"
    "      --frame FILE  the frames in a file that uzip_encode() wrote\n"
    "      --ratio FILE TYPE\n"
    "                    speed and size with each codec of a file of elements\n"
    "  -h, --help        this text\n";

void print_version() {
  std::printf("libuzipcoll %d.%d.%d\n", UZIP_VERSION_MAJOR, UZIP_VERSION_MINOR, UZIP_VERSION_PATCH);
}

void print_build() {
#if defined(__clang__)
  constexpr const char* kCompiler = __VERSION__;
#else
  constexpr const char* kCompiler = "GCC " __VERSION__;
#endif
#if defined(NDEBUG)
  constexpr const char* kKind = "release";
#else
  constexpr const char* kKind = "debug, with assertions";
#endif
  std::printf("compiler     %s\n", kCompiler);
  std::printf("build        %s\n", kKind);
  std::printf("configured   %s\n",
              configure_options[0] == '\0' ? "without options" : configure_options);
  std::printf("UCX          %s (compiled with %d.%d)\n", ucp_get_version_string(), UCP_API_MAJOR,
              UCP_API_MINOR);
  std::printf("CPU targets ");
  for (uzip::CpuTarget target : uzip::available_cpu_targets()) {
    std::printf(" %s", uzip::cpu_target_name(target));
  }
  std::printf("\n");
}

std::string or_nothing(const std::string& value) { return value.empty() ? "(nothing)" : value; }

void print_names() {
  for (const SettingInfo& setting : uzip::settings()) std::printf("%s\n", setting.name);
}

// The settings in force, or the reason why a communicator could not be created with this
// environment.
bool read_config(Config& config) {
  std::vector<std::string> warnings;
  const uzip::Result<Config> result = uzip::parse_config(nullptr, &warnings);
  for (const std::string& warning : warnings)
    std::fprintf(stderr, "uzip_info: %s\n", warning.c_str());
  if (!result.ok()) {
    std::fprintf(stderr, "uzip_info: %s\n", result.status().message().c_str());
    return false;
  }
  config = *result;
  return true;
}

bool print_settings(bool briefly) {
  Config config;
  if (!read_config(config)) return false;
  for (const SettingInfo& setting : uzip::settings()) {
    const std::string value = uzip::setting_value(config, setting);
    const bool changed = value != setting.default_value;
    std::printf("%c %-21s %s\n", changed ? '*' : ' ', setting.name, or_nothing(value).c_str());
    if (briefly) continue;
    std::printf("      %s\n", setting.help);
    std::printf("      allowed: %s\n", setting.type);
    std::printf("      default: %s%s\n", or_nothing(setting.default_value).c_str(),
                setting.must_match ? "; must be equal on all ranks" : "");
  }
  return true;
}

// "12.1 us", "3.45 ms"
std::string time_text(double seconds) {
  char text[32];
  if (seconds < 1e-3) {
    std::snprintf(text, sizeof text, "%.3g us", 1e6 * seconds);
  } else {
    std::snprintf(text, sizeof text, "%.3g ms", 1e3 * seconds);
  }
  return text;
}

// What the simulator says of one round on a network that many have; uzip_sched(1) knows others.
void print_cost(const uzip::Algorithm& algorithm) {
  constexpr int kRanks = 8;
  constexpr std::pair<const char*, size_t> kElements[] = {
      {"1 KiB", size_t{1} << 8}, {"1 MiB", size_t{1} << 18}, {"64 MiB", size_t{1} << 24}};
  const uzip::NamedModel& named = uzip::network_model();
  const uzip::Result<uzip::MachineModel> machine =
      uzip::parse_machine_model(named.text, named.name);
  if (!machine.ok()) return;
  std::string text;
  for (const auto& [name, elements] : kElements) {
    const uzip::Shape shape = uzip::even_shape(algorithm.coll, kRanks, elements);
    const uzip::Result<uzip::Prediction> prediction =
        uzip::simulate(uzip::one_round(algorithm, shape, uzip::Form::kPlain, UZIP_FP32), *machine);
    if (!prediction.ok()) return;
    text += text.empty() ? "" : ", ";
    if (shape.total() == 0) {
      text += time_text(prediction->seconds);
      break;
    }
    text += time_text(prediction->seconds) + " for " + name;
  }
  std::printf("      predicted for %d %s: %s\n", kRanks, named.summary, text.c_str());
}

void print_algorithms(bool briefly) {
  for (const uzip::Algorithm* algorithm : uzip::algorithms()) {
    std::printf("%-15s %s\n", uzip::coll_name(algorithm->coll), algorithm->name);
    if (briefly) continue;
    std::printf("      %s\n", algorithm->summary);
    print_cost(*algorithm);
  }
}

bool print_everything() {
  print_version();
  print_build();
  std::printf("\nAlgorithms (-a)\n");
  print_algorithms(true);
  std::printf("\nCodecs (-C)\n");
  uzip::print_codec_names();
  std::printf("\nSettings in force (-c)\n");
  return print_settings(true);
}

bool succeeded(const uzip::Status& status) {
  if (status.ok()) return true;
  std::fflush(stdout);
  std::fprintf(stderr, "uzip_info: %s\n", status.message().c_str());
  return false;
}

// With the instruction set that the settings ask for.
bool print_ratios(const char* path, const char* type_name) {
  Config config;
  return read_config(config) && succeeded(uzip::set_cpu_target(config.cpu)) &&
         succeeded(uzip::print_ratios(path, type_name));
}

bool print_topology() {
  Config config;
  return read_config(config) && succeeded(uzip::print_locality(config)) && succeeded(uzip::print_gpus(config));
}

struct Choice {
  bool version = false;
  bool build = false;
  bool settings = false;
  bool names = false;
  bool algorithms = false;
  bool codecs = false;
  bool topology = false;
  bool help = false;
  const char* frame_file = nullptr;
  const char* ratio_file = nullptr;
  const char* ratio_type = nullptr;

  bool is_empty() const {
    return !(version || build || settings || algorithms || codecs || topology || help ||
             frame_file != nullptr || ratio_file != nullptr);
  }
};

// The arguments behind the options, and the options that go together.
bool check_arguments(int argc, char** argv, Choice& choice) {
  if (choice.ratio_file != nullptr) {
    if (optind == argc) {
      std::fprintf(stderr, "uzip_info: --ratio FILE needs the type of the elements behind it\n");
      return false;
    }
    choice.ratio_type = argv[optind++];
  }
  if (optind < argc) {
    std::fprintf(stderr, "uzip_info: unexpected argument '%.64s'\n", argv[optind]);
    return false;
  }
  if (choice.names && !choice.settings) {
    std::fprintf(stderr, "uzip_info: --names goes with -c\n");
    return false;
  }
  return true;
}

// False after a wrong option, which getopt_long has already complained about.
bool parse_options(int argc, char** argv, Choice& choice) {
  enum LongOption { kNames = 256, kFrame, kRatio };
  static constexpr option kOptions[] = {
      {"version", no_argument, nullptr, 'v'},        {"build", no_argument, nullptr, 'b'},
      {"settings", no_argument, nullptr, 'c'},       {"names", no_argument, nullptr, kNames},
      {"algorithms", no_argument, nullptr, 'a'},     {"codecs", no_argument, nullptr, 'C'},
      {"topology", no_argument, nullptr, 't'},       {"help", no_argument, nullptr, 'h'},
      {"frame", required_argument, nullptr, kFrame}, {"ratio", required_argument, nullptr, kRatio},
      {nullptr, 0, nullptr, 0},
  };
  for (int option; (option = getopt_long(argc, argv, "vbcaCth", kOptions, nullptr)) != -1;) {
    switch (option) {
      case 'v':
        choice.version = true;
        break;
      case 'b':
        choice.build = true;
        break;
      case 'c':
        choice.settings = true;
        break;
      case kNames:
        choice.names = true;
        break;
      case 'a':
        choice.algorithms = true;
        break;
      case 'C':
        choice.codecs = true;
        break;
      case 't':
        choice.topology = true;
        break;
      case 'h':
        choice.help = true;
        break;
      case kFrame:
        choice.frame_file = optarg;
        break;
      case kRatio:
        choice.ratio_file = optarg;
        break;
      default:
        return false;
    }
  }
  return check_arguments(argc, argv, choice);
}

bool print_chosen(const Choice& choice) {
  if (choice.help) {
    std::printf("%s%s", kSynopsis, kHelp);
    return true;
  }
  if (choice.is_empty()) return print_everything();
  if (choice.version) print_version();
  if (choice.build) print_build();
  if (choice.algorithms) print_algorithms(false);
  if (choice.codecs && !succeeded(uzip::print_codecs())) return false;
  if (choice.topology && !print_topology()) return false;
  if (choice.settings && choice.names) print_names();
  if (choice.settings && !choice.names && !print_settings(false)) return false;
  if (choice.frame_file != nullptr && !succeeded(uzip::print_frames(choice.frame_file)))
    return false;
  return choice.ratio_file == nullptr || print_ratios(choice.ratio_file, choice.ratio_type);
}

}  // namespace

int main(int argc, char** argv) {
  Choice choice;
  if (!parse_options(argc, argv, choice)) {
    std::fputs(kSynopsis, stderr);
    return kUsage;
  }
  const bool printed = print_chosen(choice);
  // A full disk or a closed pipe must not look like success.
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    std::fprintf(stderr, "uzip_info: cannot write to standard output: %s\n", std::strerror(errno));
    return kFailure;
  }
  return printed ? kSuccess : kFailure;
}
