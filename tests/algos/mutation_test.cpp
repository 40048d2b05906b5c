// Measures the verifier: of all schedules with a single fault in a single step, which does it
// accept?
#include "algos/collective_cases.hpp"
#include "algos/hazard_oracle.hpp"
#include "algos/mutants.hpp"
#include "algos/print.hpp"
#include "algos/verify.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace uzip {
namespace {

constexpr size_t kFewestMutants = 300;
constexpr double kShareToFind = 0.99;

class MutationTest : public testing::TestWithParam<const Algorithm*> {};

// Why a change is none of the meaning, judged without the verifier; "" if it is one.
std::string why_harmless(const Algorithm& algorithm, const std::string& kind,
                         const std::vector<Schedule>& schedules, const Shape& shape, int rank) {
  if (kind == "drop a dependency" && shape.coll == Coll::kBarrier && is_barrier(schedules)) {
    return "every rank still hears of all, on another way";
  }
  if (kind == "drop a dependency" && shape.coll != Coll::kBarrier &&
      find_race(schedules[rank], shape, rank).empty()) {
    return "no two steps race: the dependency was redundant";
  }
  if (kind == "change the order of sources" && std::string(algorithm.name) == "two_shot") {
    return "only one rank reduces these elements: all get the same bits";
  }
  return "";
}

struct Tally {
  size_t mutants = 0;
  size_t harmless = 0;
  size_t missed = 0;
  std::map<std::string, size_t> reasons;
  std::string survivors;
};

void try_mutants(const Algorithm& algorithm, const Shape& shape, Form form, int rank,
                 Tally& tally) {
  std::vector<Schedule> schedules = build_schedules(algorithm, shape, form);
  const Schedule original = schedules[rank];
  for (const Mutant& mutant : mutants_of(original, shape)) {
    ++tally.mutants;
    schedules[rank] = mutant.schedule;
    if (!verify(schedules, shape, 2, 1).ok()) continue;
    const std::string reason = why_harmless(algorithm, mutant.kind, schedules, shape, rank);
    if (!reason.empty()) {
      ++tally.harmless;
      ++tally.reasons[mutant.kind + ": " + reason];
      continue;
    }
    ++tally.missed;
    tally.survivors += describe(algorithm, shape, form) + ", rank " + std::to_string(rank) +
                       " step " + std::to_string(mutant.step) + " (" +
                       print_step(original.steps[mutant.step]) + "): " + mutant.kind + "\n";
  }
}

TEST_P(MutationTest, FaultsAreFound) {
  const Algorithm& algorithm = *GetParam();
  Tally tally;
  for (int size : {3, 4, 5}) {
    for (bool in_place : {false, true}) {
      for (Form form : kForms) {
        std::vector<size_t> counts{3, 2, 4, 2, 3};
        counts.resize(static_cast<size_t>(size));
        try_mutants(algorithm, {algorithm.coll, size, counts, in_place}, form, 1, tally);
      }
    }
  }
  const size_t faults = tally.mutants - tally.harmless;
  std::printf("%zu mutants, %zu of them harmless, %zu of %zu faults found\n", tally.mutants,
              tally.harmless, faults - tally.missed, faults);
  for (const auto& [reason, count] : tally.reasons)
    std::printf("  %zu x %s\n", count, reason.c_str());
  if (tally.missed > 0) std::printf("missed:\n%s", tally.survivors.c_str());
  EXPECT_GE(faults, kFewestMutants);
  EXPECT_GE(static_cast<double>(faults - tally.missed), kShareToFind * static_cast<double>(faults))
      << tally.survivors;
}

std::string test_name(const testing::TestParamInfo<const Algorithm*>& info) {
  return std::string(coll_name(info.param->coll)) + "_" + info.param->name;
}

INSTANTIATE_TEST_SUITE_P(All, MutationTest,
                         testing::ValuesIn(algorithms().begin(), algorithms().end()), test_name);

}  // namespace
}  // namespace uzip
