#include "comm/copied_bodies.hpp"

namespace uzip {
namespace {

/// Each copy is compared with all sends. With more steps there are so many ranks that messages are short.
constexpr size_t kMostSteps = 512;

}  // namespace

std::vector<uint32_t> find_copies_of_bodies(const Schedule& schedule) {
  const std::vector<Step>& steps = schedule.steps;
  std::vector<uint32_t> result;
  if (steps.size() > kMostSteps) return result;
  for (uint32_t copy = 0; copy < steps.size(); ++copy) {
    if (steps[copy].verb != Verb::kCopy || steps[copy].src.length == 0) continue;
    for (size_t i = 0; i < steps.size(); ++i) {
      if (steps[i].verb != Verb::kSend || !(steps[i].src == steps[copy].src)) continue;
      result.resize(steps.size(), kNoCopy);
      result[i] = copy;
    }
  }
  return result;
}

}  // namespace uzip
