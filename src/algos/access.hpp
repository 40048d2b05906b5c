// What memory a step reads and writes, in terms that make aliases comparable. The one place that
// knows it; used by the builder to derive dependencies, by passes and by the verifier.
#pragma once

#include "algos/schedule.hpp"

namespace uzip {

/// Knows which slices of kInput and kOutput are the same memory (Shape::in_place).
class MemoryMap {
 public:
  MemoryMap(const Shape& shape, int rank);

  /// The slice by its one name: two element slices share memory exactly if their canonical forms
  /// overlap.
  Slice canonical(Slice slice) const {
    if (in_place_ && slice.slot == alias_) {
      slice.slot = alias_ == Slot::kInput ? Slot::kOutput : Slot::kInput;
      slice.offset += shift_;
    }
    return slice;
  }

 private:
  bool in_place_ = false;
  Slot alias_ = Slot::kInput;  // the smaller of the two buffers, which lies within the other
  size_t shift_ = 0;
};

/// Positions [begin, end) of one memory. kWire counts parts: place p is 2p (plain) and 2p + 1
/// (coded).
struct Access {
  Slot memory;
  size_t begin;
  size_t end;
  bool writes;
};

inline Access element_access(const MemoryMap& map, const Slice& slice, bool writes) {
  const Slice memory = map.canonical(slice);
  return {memory.slot, memory.offset, memory.offset + memory.length, writes};
}

inline Access wire_access(const Slice& wire, Part part, bool writes) {
  const size_t begin = 2 * wire.offset + (part == Part::kCoded ? 1 : 0);
  return {Slot::kWire, begin, begin + (part == Part::kWhole ? 2 : 1), writes};
}

/// Calls visit(Access) for everything that `step` reads or writes.
template <class Visitor>
void for_each_access(const MemoryMap& map, const Step& step, Visitor&& visit) {
  const auto touch = [&](const Slice& slice, Part part, bool writes) {
    if (slice.length == 0) return;
    visit(slice.slot == Slot::kWire ? wire_access(slice, part, writes)
                                    : element_access(map, slice, writes));
  };
  switch (step.verb) {
    case Verb::kSend:
      touch(step.src, step.part, false);
      touch(step.origin, Part::kWhole, false);  // a raw frame is sent from the elements themselves
      return;
    case Verb::kRecv:
      touch(step.dst, step.part, true);
      return;
    case Verb::kEncode:
      touch(step.src, Part::kWhole, false);
      if (step.part == Part::kCoded)
        touch(step.dst, Part::kPlain, false);  // the second of two stages
      touch(step.dst, step.part, true);
      return;
    case Verb::kCopy:
    case Verb::kDecode:
      touch(step.src, Part::kWhole, false);
      touch(step.dst, Part::kWhole, true);
      return;
    case Verb::kReduce:
    case Verb::kDecodeReduce:
      for (const Slice& source : step.sources) touch(source, Part::kWhole, false);
      touch(step.dst, Part::kWhole, true);
      return;
  }
}

}  // namespace uzip
