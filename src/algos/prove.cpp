#include "algos/prove.hpp"

#include "algos/print.hpp"

#include <algorithm>
#include <utility>

namespace uzip {
namespace {

// A counterexample shows its schedules when they have this many steps in all, at most.
constexpr size_t kStepsToShow = 80;

size_t steps_of(const std::vector<Schedule>& schedules) {
  size_t steps = 0;
  for (const Schedule& schedule : schedules) steps += schedule.steps.size();
  return steps;
}

}  // namespace

Proof prove_case(const Algorithm& algorithm, const Shape& shape, Form form, int orders,
                 uint32_t seed) {
  Proof proof;
  if (!algorithm.supports(shape)) {
    proof.skipped = 1;
    return proof;
  }
  const std::vector<Schedule> schedules = build_schedules(algorithm, shape, form);
  proof.cases = 1;
  proof.steps = steps_of(schedules);
  const Status status = verify(schedules, shape, orders, seed, algorithm.in_rank_order);
  if (!status.ok()) proof.counterexample = Counterexample{shape, form, status.message()};
  return proof;
}

Proof prove(const Algorithm& algorithm, int ranks, int orders, uint32_t seed) {
  // Small cases first: what is wrong is easier to see in them.
  std::vector<Shape> shapes = awkward_shapes(algorithm.coll, ranks);
  std::stable_sort(shapes.begin(), shapes.end(),
                   [](const Shape& a, const Shape& b) { return a.total() < b.total(); });
  Proof proof;
  for (const Shape& shape : shapes) {
    for (Form form : kForms) {
      Proof one = prove_case(algorithm, shape, form, orders, seed);
      proof.cases += one.cases;
      proof.skipped += one.skipped;
      proof.steps += one.steps;
      if (one.counterexample) {
        proof.counterexample = std::move(one.counterexample);
        return proof;
      }
    }
  }
  return proof;
}

std::string print_counterexample(const Algorithm& algorithm, const Counterexample& example) {
  std::string text =
      describe(algorithm, example.shape, example.form) + ":\n  " + example.fault + "\n";
  const std::vector<Schedule> schedules = build_schedules(algorithm, example.shape, example.form);
  if (steps_of(schedules) > kStepsToShow) return text;
  for (size_t rank = 0; rank < schedules.size(); ++rank) {
    text += "rank " + std::to_string(rank) + ": " + print_schedule(schedules[rank]);
  }
  return text;
}

}  // namespace uzip
