// The pass that reduces straight from frames. What it replaces, on elements S of scratch:
//   decode wire W -> S
//   reduce A + S + B -> C
// becomes
//   decode_reduce A + wire W + B -> C
// where nobody else reads these S. One frame of each reduction, the last that is decoded for it: it
// is sent last, so the others are usually decoded while it is under way, and a second frame gains
// nothing, since only one can be taken from the first cache.
#include "algos/access.hpp"
#include "algos/passes.hpp"
#include "algos/schedule_builder.hpp"
#include "base/executor.hpp"

#include <algorithm>
#include <cassert>
#include <map>

namespace uzip {
namespace {

bool overlaps(const Access& access, const Slice& slice) {
  return access.memory == slice.slot && access.begin < slice.offset + slice.length &&
         slice.offset < access.end;
}

bool covers(const Access& access, const Slice& slice) {
  return access.memory == slice.slot && access.begin <= slice.offset &&
         slice.offset + slice.length <= access.end;
}

class Fusion {
 public:
  Fusion(const Schedule& schedule, const Shape& shape, int rank)
      : schedule_(schedule), map_(shape, rank), builder_(shape, rank) {
    for (uint32_t number = 0; number < schedule.steps.size(); ++number) {
      if (schedule.steps[number].verb == Verb::kReduce) fuse(number);
    }
  }

  Schedule finish();

 private:
  void fuse(uint32_t reduction);
  bool can_fuse(uint32_t decode, uint32_t reduction) const;
  bool is_read_after(uint32_t reduction, const Slice& elements) const;
  bool is_dropped(uint32_t number) const;
  std::vector<Slice> sources_of(uint32_t number) const;
  void replay(uint32_t number);

  const Schedule& schedule_;
  MemoryMap map_;
  ScheduleBuilder builder_;
  std::map<uint32_t, uint32_t> decodes_;  // by the reduction that takes the frame
  std::vector<uint32_t> dropped_;         // the decodes, ascending when all are known
};

// Looks back for the last decode that only this reduction needs.
void Fusion::fuse(uint32_t reduction) {
  const Step& step = schedule_.steps[reduction];
  if (step.sources.size() > kMostDecodeReduceSources) return;
  for (uint32_t before = reduction; before-- > 0;) {
    const Step& decode = schedule_.steps[before];
    if (decode.verb != Verb::kDecode || decode.dst.slot != Slot::kScratch) continue;
    if (std::find(step.sources.begin(), step.sources.end(), decode.dst) == step.sources.end())
      continue;
    if (!can_fuse(before, reduction)) continue;
    decodes_[reduction] = before;
    dropped_.push_back(before);
    return;
  }
}

bool Fusion::can_fuse(uint32_t decode, uint32_t reduction) const {
  const Slice& elements = schedule_.steps[decode].dst;
  const Slice& wire = schedule_.steps[decode].src;
  for (uint32_t between = decode + 1; between < reduction; ++between) {
    bool touched = false;
    for_each_access(map_, schedule_.steps[between], [&](const Access& access) {
      const bool frame = access.memory == Slot::kWire && access.writes &&
                         access.begin < 2 * wire.offset + 2 && 2 * wire.offset < access.end;
      touched |= frame || overlaps(access, elements);
    });
    if (touched) return false;
  }
  int reads = 0;
  bool overwritten = false;
  for_each_access(map_, schedule_.steps[reduction], [&](const Access& access) {
    reads += !access.writes && overlaps(access, elements);
    overwritten |= access.writes && covers(access, elements);
  });
  return reads == 1 && (overwritten || !is_read_after(reduction, elements));
}

bool Fusion::is_read_after(uint32_t reduction, const Slice& elements) const {
  for (uint32_t later = reduction + 1; later < schedule_.steps.size(); ++later) {
    bool read = false;
    bool overwritten = false;
    for_each_access(map_, schedule_.steps[later], [&](const Access& access) {
      read |= !access.writes && overlaps(access, elements);
      overwritten |= access.writes && covers(access, elements);
    });
    if (read || overwritten) return read;
  }
  return false;
}

bool Fusion::is_dropped(uint32_t number) const {
  return std::binary_search(dropped_.begin(), dropped_.end(), number);
}

Schedule Fusion::finish() {
  std::sort(dropped_.begin(), dropped_.end());
  builder_.scratch(schedule_.scratch_elements);
  for (size_t elements : schedule_.wire_elements) builder_.wire(elements);
  for (uint32_t number = 0; number < schedule_.steps.size(); ++number) {
    if (!is_dropped(number)) replay(number);
  }
  Schedule schedule = builder_.finish();
  compact_scratch(schedule);
  return schedule;
}

std::vector<Slice> Fusion::sources_of(uint32_t number) const {
  const auto found = decodes_.find(number);
  std::vector<Slice> sources;
  for (const Slice& source : schedule_.steps[number].sources) {
    const bool frame =
        found != decodes_.end() && source == schedule_.steps[found->second].dst;
    sources.push_back(frame ? schedule_.steps[found->second].src : source);
  }
  return sources;
}

void Fusion::replay(uint32_t number) {
  Step step = schedule_.steps[number];
  assert(step.verb != Verb::kDecodeReduce);  // not fused yet
  step.sources = sources_of(number);
  if (decodes_.contains(number)) step.verb = Verb::kDecodeReduce;
  builder_.add(step);
}

}  // namespace

Schedule fuse(const Schedule& schedule, const Shape& shape, int rank) {
  return Fusion(schedule, shape, rank).finish();
}

}  // namespace uzip
