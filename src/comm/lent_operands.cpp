#include "comm/lent_operands.hpp"

#include <algorithm>

namespace uzip {
namespace {

/// Each receive is compared with all steps behind it. With more of them there are so many ranks that messages are short.
constexpr size_t kMostSteps = 512;

bool overlap(const Slice& a, const Slice& b) {
  return a.slot == b.slot && a.offset < b.offset + b.length && b.offset < a.offset + a.length;
}

bool same(const Slice& a, const Slice& b) { return a.slot == b.slot && a.offset == b.offset && a.length == b.length; }

/// The only step that reads what step number `receive` writes, if it is a reduction of just that; else null.
const Step* only_reader(const std::vector<Step>& steps, size_t receive) {
  const Slice& elements = steps[receive].dst;
  const Step* reader = nullptr;
  for (size_t i = receive + 1; i < steps.size(); ++i) {
    const Step& step = steps[i];
    const auto reads = [&](const Slice& slice) { return overlap(slice, elements); };
    const auto sources = std::count_if(step.sources.begin(), step.sources.end(), reads);
    if (sources == 0 && !reads(step.src)) continue;
    const bool fits = step.verb == Verb::kReduce && sources == 1 && !reads(step.src) && !overlap(step.dst, elements) &&
                      std::any_of(step.sources.begin(), step.sources.end(),
                                  [&](const Slice& source) { return same(source, elements); });
    if (reader || !fits) return nullptr;
    reader = &step;
  }
  return reader;
}

}  // namespace

LentOperands find_lent_operands(const Schedule& schedule) {
  LentOperands result;
  const std::vector<Step>& steps = schedule.steps;
  if (steps.size() > kMostSteps) return result;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].verb != Verb::kRecv || steps[i].dst.slot != Slot::kScratch || steps[i].dst.length == 0) continue;
    const Step* const reader = only_reader(steps, i);
    if (!reader) continue;
    result.lends.resize(steps.size());
    result.lenders.resize(steps.size());
    result.lends[i] = true;
    std::vector<uint32_t>& lenders = result.lenders[static_cast<size_t>(reader - steps.data())];
    lenders.resize(reader->sources.size(), kNoLender);
    for (size_t s = 0; s < lenders.size(); ++s)
      if (same(reader->sources[s], steps[i].dst)) lenders[s] = static_cast<uint32_t>(i);
  }
  return result;
}

}  // namespace uzip
