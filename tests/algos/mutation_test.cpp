// Measures the verifier: of all schedules with a single fault in a single step, on one rank or on
// all alike, which does it accept?
#include "algos/collective_cases.hpp"
#include "algos/hazard_oracle.hpp"
#include "algos/mutants.hpp"
#include "algos/print.hpp"
#include "algos/value_oracle.hpp"
#include "algos/verify.hpp"

#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <optional>
#include <string>

namespace uzip {
namespace {

constexpr size_t kFewestFaults = 300;
constexpr double kShareToFind = 0.99;

// One algorithm's mutants, and what the verifier made of them.
class Trial {
 public:
  explicit Trial(const Algorithm& algorithm) : algorithm_(algorithm) {}

  void mutate_one_rank(const Shape& shape, Form form, int rank);
  /// What a mistake in an algorithm looks like.
  void mutate_all_ranks(const Shape& shape, Form form);

  size_t faults() const { return mutants_ - harmless_; }
  size_t found() const { return faults() - missed_; }
  std::string report() const;

 private:
  // A mutant, and where it comes from.
  struct Suspect {
    const std::vector<Schedule>& originals;
    const std::vector<Schedule>& schedules;
    const Shape& shape;
    const std::string& kind;
    std::string where;
  };

  void judge(const Suspect& suspect);
  std::string why_harmless(const Suspect& suspect) const;

  const Algorithm& algorithm_;
  size_t mutants_ = 0;
  size_t harmless_ = 0;
  size_t missed_ = 0;
  std::map<std::string, size_t> reasons_;
  std::string survivors_;
};

void Trial::mutate_one_rank(const Shape& shape, Form form, int rank) {
  const std::vector<Schedule> originals = build_schedules(algorithm_, shape, form);
  std::vector<Schedule> schedules = originals;
  const Schedule& original = originals[rank];
  for (Mutant& mutant : mutants_of(original, shape)) {
    schedules[rank] = std::move(mutant.schedule);
    judge({originals, schedules, shape, mutant.kind,
           describe(algorithm_, shape, form) + ", rank " + std::to_string(rank) + " step " +
               std::to_string(mutant.step) + " (" + print_step(original.steps[mutant.step]) + ")"});
  }
}

void Trial::mutate_all_ranks(const Shape& shape, Form form) {
  std::vector<std::vector<Mutant>> mutants;
  const std::vector<Schedule> originals = build_schedules(algorithm_, shape, form);
  for (const Schedule& schedule : originals) {
    mutants.push_back(mutants_of(schedule, shape));
  }
  for (size_t i = 0; i < mutants[0].size(); ++i) {
    std::vector<Schedule> schedules;
    for (const std::vector<Mutant>& of_rank : mutants) {
      const bool same = i < of_rank.size() && of_rank[i].kind == mutants[0][i].kind &&
                        of_rank[i].step == mutants[0][i].step;
      if (same) schedules.push_back(of_rank[i].schedule);
    }
    if (schedules.size() < mutants.size()) continue;
    judge({originals, schedules, shape, mutants[0][i].kind,
           describe(algorithm_, shape, form) + ", all ranks, step " +
               std::to_string(mutants[0][i].step)});
  }
}

void Trial::judge(const Suspect& suspect) {
  ++mutants_;
  if (!verify(suspect.schedules, suspect.shape, 2, 1).ok()) return;
  const std::string reason = why_harmless(suspect);
  if (reason.empty()) {
    ++missed_;
    survivors_ += suspect.where + ": " + suspect.kind + "\n";
  } else {
    ++harmless_;
    ++reasons_[suspect.kind + ": " + reason];
  }
}

// Why a change is none of the meaning, judged without the verifier; "" if it is one.
std::string Trial::why_harmless(const Suspect& suspect) const {
  if (suspect.shape.coll == Coll::kBarrier) {
    return is_barrier(suspect.schedules) ? "every rank still hears of all others" : "";
  }
  for (int rank = 0; rank < suspect.shape.size; ++rank) {
    if (!find_race(suspect.schedules[rank], suspect.shape, rank).empty()) return "";
  }
  const std::optional<Outcome> before = run_elementwise(suspect.originals, suspect.shape);
  const std::optional<Outcome> after = run_elementwise(suspect.schedules, suspect.shape);
  if (!before || !after) return "";
  if (*before == *after) return "no two steps race, and the results are the same";
  const bool reordered = suspect.kind == "change the order of sources";
  return reordered && same_but_for_order(*before, *after)
             ? "all ranks that have an element reduce it in the same order"
             : "";
}

std::string Trial::report() const {
  std::string text = std::to_string(mutants_) + " mutants, " + std::to_string(harmless_) +
                     " of them harmless; " + std::to_string(found()) + " of " +
                     std::to_string(faults()) + " faults found\n";
  for (const auto& [reason, count] : reasons_) {
    text += "  " + std::to_string(count) + " x " + reason + "\n";
  }
  return text + (missed_ > 0 ? "missed:\n" + survivors_ : "");
}

/// How many ranks in a row share a host, and a socket; 0: all.
struct Grouping {
  int per_host, per_socket;
};

// Hierarchical algorithms between hosts, between sockets, and both.
std::vector<Grouping> groupings_of(const Algorithm& algorithm) {
  if (std::string(algorithm.name) != "hierarchical") return {{0, 0}};
  return {{2, 0}, {0, 2}, {4, 2}};
}

void group(Shape& shape, const Grouping& by) {
  for (int rank = 0; rank < shape.size; ++rank) {
    if (by.per_host > 0) shape.hosts.push_back(rank / by.per_host);
    if (by.per_socket > 0) shape.sockets.push_back(rank / by.per_socket);
  }
}

// One for each rank or, of an all-to-all, for each pair of ranks.
std::vector<size_t> uneven_counts(Coll coll, int size) {
  constexpr size_t kPattern[] = {3, 2, 4, 2, 3};
  const size_t ranks = static_cast<size_t>(size);
  std::vector<size_t> counts(coll == Coll::kAlltoallv ? ranks * ranks : ranks);
  for (size_t i = 0; i < counts.size(); ++i) counts[i] = kPattern[i % std::size(kPattern)];
  return counts;
}

class MutationTest : public testing::TestWithParam<const Algorithm*> {};

TEST_P(MutationTest, FaultsAreFound) {
  const Coll coll = GetParam()->coll;
  Trial trial(*GetParam());
  for (int size : {3, 4, 5}) {
    for (bool in_place : {false, true}) {
      for (Form form : kForms) {
        const std::vector<size_t> counts = uneven_counts(coll, size);
        const size_t total = coll == Coll::kAllreduce ? 3 * counts.size() : 3;
        const Shape one{coll, size, counts, in_place}, all = even_shape(coll, size, total, in_place);
        for (const Grouping& by : groupings_of(*GetParam())) {
          if (by.per_host >= size) continue;
          Shape grouped = one, all_grouped = all;
          group(grouped, by);
          group(all_grouped, by);
          trial.mutate_one_rank(grouped, form, 1);
          trial.mutate_all_ranks(all_grouped, form);
        }
      }
    }
  }
  std::printf("%s", trial.report().c_str());
  EXPECT_GE(trial.faults(), kFewestFaults);
  EXPECT_GE(static_cast<double>(trial.found()), kShareToFind * static_cast<double>(trial.faults()));
}

std::string test_name(const testing::TestParamInfo<const Algorithm*>& info) {
  return std::string(coll_name(info.param->coll)) + "_" + info.param->name;
}

INSTANTIATE_TEST_SUITE_P(All, MutationTest,
                         testing::ValuesIn(algorithms().begin(), algorithms().end()), test_name);

}  // namespace
}  // namespace uzip
