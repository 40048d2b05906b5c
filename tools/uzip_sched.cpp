// uzip_sched(1): shows the schedules of the library's algorithms and proves them. It builds them
// from the same registry that the library selects from.
#include "algos/print.hpp"
#include "algos/prove.hpp"
#include "sched_options.hpp"
#include "sched_simulate.hpp"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <numeric>

namespace {

using uzip::Algorithm;
using uzip::Form;
using uzip::Proof;
using uzip::SchedCommand;
using uzip::SchedOptions;
using uzip::Shape;

enum ExitCode { kSuccess = 0, kFailure = 1, kUsage = 2 };

constexpr size_t kCountToPrint = 16;

std::vector<int> ranks_to_show(const SchedOptions& options) {
  if (options.rank >= 0) return {options.rank};
  std::vector<int> ranks(static_cast<size_t>(options.ranks[0]));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

bool print_schedules(const SchedOptions& options) {
  const Algorithm& algorithm = *options.algorithms[0];
  const Shape shape = options.shape(algorithm.coll, options.ranks[0],
                                    options.counts.empty() ? kCountToPrint : options.counts[0]);
  const std::string what = uzip::describe(algorithm, shape, options.form());
  if (!algorithm.supports(shape)) {
    std::fprintf(stderr, "uzip_sched: the algorithm does not support %s\n", what.c_str());
    return false;
  }
  if (options.command == SchedCommand::kDot) {
    const std::vector<uzip::Schedule> schedules =
        uzip::build_schedules(algorithm, shape, options.form());
    std::fputs(uzip::print_dot(schedules, ranks_to_show(options)).c_str(), stdout);
    return true;
  }
  std::printf("# %s\n# %s\n", what.c_str(), algorithm.summary);
  for (int rank : ranks_to_show(options)) {
    const uzip::Schedule schedule = uzip::build_schedule(algorithm, shape, options.form(), rank);
    std::printf("\nrank %d: %s", rank, uzip::print_schedule(schedule).c_str());
  }
  return true;
}

// The awkward cases for so many ranks, or the one that was asked for.
Proof prove_for(const SchedOptions& options, const Algorithm& algorithm, int ranks) {
  if (!options.one_case()) return uzip::prove(algorithm, ranks, options.orders, options.seed);
  const std::vector<size_t> counts =
      options.counts.empty() ? std::vector<size_t>{0} : options.counts;
  Proof all;
  for (size_t count : counts) {
    const Shape shape = options.shape(algorithm.coll, ranks, count);
    Proof one = uzip::prove_case(algorithm, shape, options.form(), options.orders, options.seed);
    all.cases += one.cases;
    all.skipped += one.skipped;
    all.steps += one.steps;
    if (one.counterexample && !all.counterexample)
      all.counterexample = std::move(one.counterexample);
  }
  return all;
}

bool verify_algorithm(const SchedOptions& options, const Algorithm& algorithm) {
  Proof all;
  const auto begin = std::chrono::steady_clock::now();
  for (int ranks : options.ranks) {
    Proof proof = prove_for(options, algorithm, ranks);
    all.cases += proof.cases;
    all.skipped += proof.skipped;
    all.steps += proof.steps;
    if (proof.counterexample) {
      all.counterexample = std::move(proof.counterexample);
      break;
    }
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::printf("%-9s %s:%s, %d to %d ranks: %zu cases, %zu steps, %.2f s",
              all.counterexample ? "WRONG"
              : all.cases > 0    ? "proved"
                                 : "NO CASES",
              uzip::coll_name(algorithm.coll), algorithm.name, options.ranks.front(),
              options.ranks.back(), all.cases, all.steps, seconds);
  if (all.skipped > 0) std::printf("; %zu more not supported by the algorithm", all.skipped);
  std::printf("\n");
  if (all.counterexample)
    std::fputs(uzip::print_counterexample(algorithm, *all.counterexample).c_str(), stdout);
  std::fflush(stdout);
  return all.holds();
}

bool verify_all(const SchedOptions& options) {
  size_t wrong = 0;
  for (const Algorithm* algorithm : options.algorithms) {
    if (!verify_algorithm(options, *algorithm)) ++wrong;
  }
  if (wrong > 0) {
    std::fprintf(stderr, "uzip_sched: %zu of %zu algorithms could not be proved\n", wrong,
                 options.algorithms.size());
  }
  return wrong == 0;
}

bool succeeded(const uzip::Status& status) {
  if (status.ok()) return true;
  std::fflush(stdout);
  std::fprintf(stderr, "uzip_sched: %s\n", status.message().c_str());
  return false;
}

bool run(const SchedOptions& options) {
  switch (options.command) {
    case SchedCommand::kHelp:
      std::printf("%s\n%s", uzip::kSchedSynopsis, uzip::kSchedHelp);
      return true;
    case SchedCommand::kPrint:
    case SchedCommand::kDot:
      return print_schedules(options);
    case SchedCommand::kVerify:
      return verify_all(options);
    case SchedCommand::kSimulate:
      return succeeded(uzip::print_simulations(options));
    case SchedCommand::kJson:
      return succeeded(uzip::print_simulated_trace(options));
    case SchedCommand::kModel:
      return succeeded(uzip::print_model(options));
  }
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  const uzip::Result<SchedOptions> options = uzip::parse_sched_options(argc, argv);
  if (!options.ok()) {
    std::fprintf(stderr, "uzip_sched: %s\n%s", options.status().message().c_str(),
                 uzip::kSchedSynopsis);
    return kUsage;
  }
  const bool done = run(*options);
  // A full disk or a closed pipe must not look like success.
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    std::fprintf(stderr, "uzip_sched: cannot write to standard output: %s\n", std::strerror(errno));
    return kFailure;
  }
  return done ? kSuccess : kFailure;
}
