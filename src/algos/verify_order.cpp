// The verifier's third part: hazards. A race needs no unlucky order to be found here.
#include "algos/access_history.hpp"
#include "algos/verify_parts.hpp"

#include <algorithm>

namespace uzip {
namespace {

// Whether steps precede another one, over any number of dependencies.
class Ancestry {
 public:
  explicit Ancestry(const Schedule& schedule) : schedule_(schedule), seen_(schedule.steps.size()) {}

  /// The first of `earlier` (ascending) that `number` does not have to wait for; `number` itself:
  /// none.
  uint32_t first_unordered(uint32_t number, const std::vector<uint32_t>& earlier) {
    const std::vector<uint32_t>& direct = schedule_.steps[number].depends_on;
    if (std::includes(direct.begin(), direct.end(), earlier.begin(), earlier.end())) return number;
    // Dependencies point backwards, so nothing before the oldest one asked for can lead to it.
    const uint32_t oldest = earlier.front();
    stack_.assign(1, number);
    ++search_;
    while (!stack_.empty()) {
      const uint32_t step = stack_.back();
      stack_.pop_back();
      for (uint32_t before : schedule_.steps[step].depends_on) {
        if (before < oldest || seen_[before] == search_) continue;
        seen_[before] = search_;
        stack_.push_back(before);
      }
    }
    for (uint32_t step : earlier) {
      if (seen_[step] != search_) return step;
    }
    return number;
  }

 private:
  const Schedule& schedule_;
  std::vector<uint32_t> seen_;  // the last search that came by
  std::vector<uint32_t> stack_;
  uint32_t search_ = 0;
};

}  // namespace

Status check_order(const Ensemble& ensemble, int rank) {
  const Schedule& schedule = ensemble.schedules[rank];
  AccessHistory history(ensemble.shape_of(rank), rank);
  Ancestry ancestry(schedule);
  for (uint32_t number = 0; number < schedule.steps.size(); ++number) {
    const std::vector<uint32_t>& hazards = history.follow(schedule.steps[number], number);
    const uint32_t unordered = ancestry.first_unordered(number, hazards);
    if (unordered != number) {
      return ensemble.fault({rank, number}, "touches the same memory as step " +
                                                std::to_string(unordered) +
                                                " and does not wait for it");
    }
  }
  return Status();
}

}  // namespace uzip
