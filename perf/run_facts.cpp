#include "run_facts.hpp"

#include "usable_cores.hpp"
#include "versus_mpi.hpp"

#include <unistd.h>

#include <algorithm>
#include <ctime>

extern char** environ;

namespace perf {
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
                    .mpi = world.has_mpi() ? mpi_version() : "",
                    .notes = {}};
  const auto here = std::ranges::count(facts.hosts, facts.hosts.front());
  const int cores = cores_of_first_host(facts.hosts, world.gather(own_core_set()));
  if (here > cores) {
    facts.notes.push_back(std::to_string(here) + " ranks share " + std::to_string(cores) + " core" +
                          (cores == 1 ? "" : "s") + " of " + facts.hosts.front());
  }
  if (options.versus_mpi) {
    const std::string hint = mpi_waiting_hint(here > cores);
    if (!hint.empty()) facts.notes.push_back(hint);
  }
  return facts;
}

}  // namespace perf
