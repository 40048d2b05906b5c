#include "algos/collective_cases.hpp"

#include "algos/passes.hpp"

#include <algorithm>
#include <set>

namespace uzip {

const char* form_name(Form form) {
  switch (form) {
    case Form::kPlain:
      return "plain";
    case Form::kLowered:
      return "lowered";
    case Form::kSplit:
      return "split";
  }
  return "unknown";
}

Schedule build_schedule(const Algorithm& algorithm, const Shape& shape, Form form, int rank) {
  Schedule schedule = algorithm.build(shape, rank);
  if (form == Form::kPlain) return schedule;
  return lower_codec(schedule, shape, rank, form == Form::kSplit);
}

std::vector<Schedule> build_schedules(const Algorithm& algorithm, const Shape& shape, Form form) {
  std::vector<Schedule> schedules;
  for (int rank = 0; rank < shape.size; ++rank) {
    schedules.push_back(build_schedule(algorithm, shape, form, rank));
  }
  return schedules;
}

Shape even_shape(Coll coll, int size, size_t count, bool in_place) {
  std::vector<size_t> counts = is_of_vectors(coll) ? even_shares(count, size)
                               : coll == Coll::kBarrier
                                   ? std::vector<size_t>()
                                   : std::vector<size_t>(static_cast<size_t>(size), count);
  return {coll, size, std::move(counts), in_place, 0};
}

namespace {

// Blocks of many lengths; the shares of an all-reduce may be uneven, too.
std::vector<std::vector<size_t>> uneven_counts(int size) {
  const size_t ranks = static_cast<size_t>(size);
  std::vector<size_t> last_only(ranks);
  last_only.back() = 5;
  std::vector<size_t> first_only(ranks);
  first_only.front() = 1000;
  std::vector<size_t> gaps(ranks);
  std::vector<size_t> growing(ranks);
  for (size_t rank = 0; rank < ranks; ++rank) {
    gaps[rank] = rank % 3 == 1 ? 0 : 3 * rank + 1;
    growing[rank] = rank * rank;
  }
  return {last_only, first_only, gaps, growing};
}

}  // namespace

std::vector<Shape> awkward_shapes(Coll coll, int size) {
  const size_t ranks = static_cast<size_t>(size);
  std::vector<Shape> shapes;
  if (coll == Coll::kBarrier) return {even_shape(coll, size, 0)};
  for (size_t count : std::set<size_t>{0, 1, 7, ranks - 1, ranks, ranks + 1, 1000, 65537}) {
    shapes.push_back(even_shape(coll, size, count));
  }
  for (std::vector<size_t>& counts : uneven_counts(size))
    shapes.push_back({coll, size, counts, false, 0});
  const size_t apart = shapes.size();
  for (size_t i = 0; i < apart; ++i) {
    shapes.push_back(shapes[i]);
    shapes.back().in_place = true;
  }
  if (is_rooted(coll)) {
    for (size_t i = 0; i < shapes.size(); ++i) shapes[i].root = static_cast<int>(i * 5 % ranks);
  }
  return shapes;
}

std::string describe(const Algorithm& algorithm, const Shape& shape, Form form) {
  std::string text = std::string(coll_name(algorithm.coll)) + " " + algorithm.name + ", " +
                     std::to_string(shape.size) + " ranks, counts";
  for (size_t count : shape.counts) text += " " + std::to_string(count);
  if (is_rooted(shape.coll)) text += ", root " + std::to_string(shape.root);
  return text + (shape.in_place ? ", in place, " : ", ") + form_name(form);
}

size_t count_steps(const Schedule& schedule, Verb verb, Part part) {
  return static_cast<size_t>(
      std::count_if(schedule.steps.begin(), schedule.steps.end(),
                    [&](const Step& step) { return step.verb == verb && step.part == part; }));
}

}  // namespace uzip
