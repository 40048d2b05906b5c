#include "run_facts.hpp"

#include "usable_cores.hpp"
#include "versus_mpi.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <fstream>

extern char** environ;

namespace perf {

extern const char* const source_commit;  // commit.cpp, made by the makefile

namespace {

constexpr const char* kVariablePrefixes[] = {"UZIP_", "UCX_", "OMPI_MCA_", "MPICH_", "MPIR_CVAR_"};
// Only about the start, or set by launchers for themselves.
constexpr const char* kHiddenPrefixes[] = {
    "UZIP_RANK=",    "UZIP_SIZE=",   "UZIP_RENDEZVOUS=",  "OMPI_MCA_ess",   "OMPI_MCA_orte_",
    "OMPI_MCA_pmix", "OMPI_MCA_plm", "OMPI_MCA_initial_", "OMPI_MCA_shmem", "OMPI_MCA_rmaps"};

std::vector<std::string> relevant_environment() {
  std::vector<std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string variable = *entry;
    const auto matches = [&](const char* prefix) { return variable.starts_with(prefix); };
    if (std::ranges::any_of(kVariablePrefixes, matches) &&
        std::ranges::none_of(kHiddenPrefixes, matches)) {
      variables.push_back(variable);
    }
  }
  std::ranges::sort(variables);
  return variables;
}

std::string now() {
  char text[64] = "";
  const std::time_t seconds = std::time(nullptr);
  std::tm local = {};
  if (localtime_r(&seconds, &local) != nullptr) {
    std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &local);
  }
  return text;
}

std::string host_name() {
  char text[256] = "";
  return gethostname(text, sizeof(text) - 1) == 0 && text[0] != '\0' ? text : "unknown";
}

// "Intel(R) Xeon(R) ..., avx512" by /proc/cpuinfo, whose lines are "key : value".
std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  std::string name, flags;
  for (std::string line; std::getline(info, line) && (name.empty() || flags.empty());) {
    const size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    if (line.starts_with("model name")) name = line.substr(colon + 2);
    if (line.starts_with("flags")) flags = line.substr(colon + 1) + " ";
  }
  for (const char* instructions : {" avx512bw ", " avx2 "}) {
    if (flags.find(instructions) == std::string::npos) continue;
    return name + (std::string(instructions) == " avx2 " ? ", AVX2" : ", AVX-512");
  }
  return name;
}

Machine this_machine() {
  Machine machine = {.processor = processor_name(),
                     .cores = static_cast<uint64_t>(std::max(sysconf(_SC_NPROCESSORS_ONLN), 0L)),
                     .memory_bytes = static_cast<uint64_t>(std::max(sysconf(_SC_PHYS_PAGES), 0L)) *
                                     static_cast<uint64_t>(std::max(sysconf(_SC_PAGESIZE), 0L)),
                     .system = ""};
  utsname names = {};
  if (uname(&names) == 0) machine.system = std::string(names.sysname) + " " + names.release;
  return machine;
}

}  // namespace

RunFacts collect_facts(const World& world, const Operation& operation, const Options& options,
                       int argc, char** argv) {
  const uint64_t process[] = {static_cast<uint64_t>(getpid())};
  RunFacts facts = {.operation = operation,
                    .options = options,
                    .arguments = {argv, argv + argc},
                    .start_time = now(),
                    .launched_by = world.launched_by(),
                    .hosts = world.gather(host_name()),
                    .processes = world.gather(process),
                    .environment = relevant_environment(),
                    .commit = source_commit,
                    .machine = this_machine(),
                    .mpi = world.has_mpi() ? mpi_version() : "",
                    .notes = {}};
  const auto here = std::ranges::count(facts.hosts, facts.hosts.front());
  const int cores = cores_of_first_host(facts.hosts, world.gather(own_core_set()));
  if (here > cores) {
    facts.notes.push_back(std::to_string(here) + " ranks share " + std::to_string(cores) + " core" +
                          (cores == 1 ? "" : "s") + " of " + facts.hosts.front());
  }
  if (options.against(PeerKind::kMpi)) {
    const std::string hint = mpi_waiting_hint(here > cores);
    if (!hint.empty()) facts.notes.push_back(hint);
  }
  if (options.memory != MemoryKind::kHost) facts.notes.push_back(std::string("buffers: ") + name_of(options.memory));
  return facts;
}

}  // namespace perf
