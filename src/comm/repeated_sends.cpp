#include "comm/repeated_sends.hpp"

namespace uzip {

std::vector<uint32_t> count_receivers(const Schedule& schedule) {
  const std::vector<Step>& steps = schedule.steps;
  std::vector<uint32_t> result(steps.size(), 1);
  const Step* first = nullptr;
  for (size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    if (step.verb != Verb::kSend) continue;
    if (first && step.src == first->src && step.part == first->part && step.depends_on == first->depends_on) {
      ++result[static_cast<size_t>(first - steps.data())];
      result[i] = 0;
    } else {
      first = &step;
    }
  }
  return result;
}

}  // namespace uzip
