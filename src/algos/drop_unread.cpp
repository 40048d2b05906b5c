// The pass that drops what nobody reads. With frames, a rank of a tree that only passes blocks on need not decode them,
// nor move the elements about.
#include "algos/interval_map.hpp"
#include "algos/passes.hpp"
#include "algos/schedule_builder.hpp"

#include <algorithm>

namespace uzip {
namespace {

/// Which steps only fill scratch that no later step reads. Looks at the last step first.
std::vector<bool> find_unread(const Schedule& schedule) {
  IntervalMap<bool> read;  // scratch: is read by one of the steps looked at so far
  const auto mark = [&](const Slice& slice, bool value) {
    if (slice.slot == Slot::kScratch) read.assign(slice.offset, slice.offset + slice.length, value);
  };
  std::vector<bool> unread(schedule.steps.size());
  for (size_t i = schedule.steps.size(); i-- > 0;) {
    const Step& step = schedule.steps[i];
    const bool fills = (step.verb == Verb::kCopy || step.verb == Verb::kDecode) && step.dst.slot == Slot::kScratch;
    if (fills) {
      bool wanted = false;
      read.for_each(step.dst.offset, step.dst.offset + step.dst.length, [&](bool one) { wanted = wanted || one; });
      unread[i] = !wanted;
      if (unread[i]) continue;
    }
    mark(step.dst, false);
    mark(step.src, true);
    mark(step.origin, true);
    for (const Slice& source : step.sources) mark(source, true);
  }
  return unread;
}

}  // namespace

Schedule drop_unread(Schedule schedule, const Shape& shape, int rank) {
  const std::vector<bool> unread = find_unread(schedule);
  if (std::find(unread.begin(), unread.end(), true) == unread.end()) return schedule;
  ScheduleBuilder builder(shape, rank);
  builder.scratch(schedule.scratch_elements);
  for (size_t elements : schedule.wire_elements) builder.wire(elements);
  for (size_t i = 0; i < unread.size(); ++i) {
    if (!unread[i]) builder.add(schedule.steps[i]);
  }
  schedule = builder.finish();
  compact_scratch(schedule);
  return schedule;
}

}  // namespace uzip
