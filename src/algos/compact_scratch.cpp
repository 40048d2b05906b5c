// Gives up the scratch that no step uses any more, after a pass that drops steps.
#include "algos/passes.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

namespace uzip {
namespace {

template <class Visit>
void for_each_scratch(Schedule& schedule, Visit visit) {
  const auto touch = [&](Slice& slice) {
    if (slice.slot == Slot::kScratch && slice.length > 0) visit(slice);
  };
  for (Step& step : schedule.steps) {
    for (Slice* slice : {&step.src, &step.dst, &step.origin}) touch(*slice);
    for (Slice& source : step.sources) touch(source);
  }
}

}  // namespace

void compact_scratch(Schedule& schedule) {
  std::vector<std::pair<size_t, size_t>> used;
  for_each_scratch(schedule, [&](Slice& slice) { used.emplace_back(slice.offset, slice.offset + slice.length); });
  std::sort(used.begin(), used.end());
  std::map<size_t, size_t> runs;  // where runs of scratch in use begin, and will begin
  size_t end = 0, kept = 0;       // of the run so far; elements in all of them
  for (const auto& [first, last] : used) {
    if (runs.empty() || first > end) {
      runs[first] = kept;
      end = first;
    }
    if (last > end) kept += last - end;
    end = std::max(end, last);
  }
  for_each_scratch(schedule, [&](Slice& slice) {
    const auto run = std::prev(runs.upper_bound(slice.offset));
    slice.offset = run->second + (slice.offset - run->first);
  });
  schedule.scratch_elements = kept;
}

}  // namespace uzip
