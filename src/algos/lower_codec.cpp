// The pass that makes a schedule of elements one of frames. Algorithms know nothing of codecs; here
// every message gets a place on the wire, and an encoding only where no frame of the same elements
// exists yet.
#include "algos/access.hpp"
#include "algos/interval_map.hpp"
#include "algos/passes.hpp"
#include "algos/schedule_builder.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <map>
#include <tuple>

namespace uzip {
namespace {

class Lowering {
 public:
  Lowering(const Schedule& schedule, const Shape& shape, int rank, bool split)
      : shape_(shape), rank_(rank), map_(shape, rank), builder_(shape, rank), split_(split) {
    builder_.scratch(schedule.scratch_elements);
    for (const Step& step : schedule.steps) lower(step);
  }

  Schedule finish() { return builder_.finish(); }

 private:
  // A place that holds the frame of some elements as they were at a time.
  struct Frame {
    Slice wire;
    Slice origin;  // the elements if it was encoded here; empty if it was received
    uint32_t time;
  };
  using Key = std::tuple<Slot, size_t, size_t>;

  void lower(const Step& step);
  void send(const Step& step);
  void receive(const Step& step);
  const Frame* find_frame(const Slice& elements);
  void remember_frame(const Slice& elements, const Slice& wire, const Slice& origin);
  void mark_changed(const Slice& elements);
  Key key_of(const Slice& elements) const;

  const Shape& shape_;
  int rank_;
  MemoryMap map_;
  ScheduleBuilder builder_;
  bool split_;
  uint32_t now_ = 0;                              // counts changes
  std::array<IntervalMap<uint32_t>, 3> changed_;  // by element slot: the time of the last change
  std::map<Key, Frame> frames_;                   // the latest frame of each slice
};

void Lowering::lower(const Step& step) {
  switch (step.verb) {
    case Verb::kSend:
      if (step.src.length == 0) return builder_.signal(step.peer);
      if (shape_.share_host(rank_, step.peer)) return builder_.send(step.src, step.peer);
      return send(step);
    case Verb::kRecv:
      if (step.dst.length == 0) return builder_.await_signal(step.peer);
      if (!shape_.share_host(rank_, step.peer)) return receive(step);
      builder_.recv(step.peer, step.dst);
      return mark_changed(step.dst);
    case Verb::kCopy:
      builder_.copy(step.src, step.dst);
      return mark_changed(step.dst);
    case Verb::kReduce:
      builder_.reduce(step.sources, step.dst, step.average);
      return mark_changed(step.dst);
    case Verb::kEncode:
    case Verb::kDecode:
    case Verb::kDecodeReduce:
      assert(!"the schedule is lowered already");
  }
}

void Lowering::send(const Step& step) {
  const Frame* known = find_frame(step.src);
  const bool fresh = known == nullptr;
  if (fresh) {
    remember_frame(step.src, builder_.wire(step.src.length), step.src);
    known = find_frame(step.src);
  }
  const Frame frame = *known;
  // The plain part leaves while the coded one is still being made, hence one part after the other.
  for (Part part : split_ ? std::vector{Part::kPlain, Part::kCoded} : std::vector{Part::kWhole}) {
    if (fresh) builder_.encode(step.src, frame.wire, part);
    builder_.send_wire(frame.wire, part, step.peer, frame.origin);
  }
}

void Lowering::receive(const Step& step) {
  const Slice wire = builder_.wire(step.dst.length);
  if (split_) {
    builder_.recv_wire(step.peer, wire, Part::kPlain);
    builder_.recv_wire(step.peer, wire, Part::kCoded);
  } else {
    builder_.recv_wire(step.peer, wire, Part::kWhole);
  }
  builder_.decode(wire, step.dst);
  mark_changed(step.dst);
  remember_frame(step.dst, wire, {});
}

const Lowering::Frame* Lowering::find_frame(const Slice& elements) {
  const auto found = frames_.find(key_of(elements));
  if (found == frames_.end()) return nullptr;
  const auto [slot, begin, end] = found->first;
  uint32_t last_change = 0;
  changed_[static_cast<size_t>(slot)].for_each(
      begin, end, [&](uint32_t time) { last_change = std::max(last_change, time); });
  return last_change <= found->second.time ? &found->second : nullptr;
}

void Lowering::remember_frame(const Slice& elements, const Slice& wire, const Slice& origin) {
  frames_.insert_or_assign(key_of(elements), Frame{wire, origin, now_});
}

void Lowering::mark_changed(const Slice& elements) {
  const auto [slot, begin, end] = key_of(elements);
  changed_[static_cast<size_t>(slot)].assign(begin, end, ++now_);
}

Lowering::Key Lowering::key_of(const Slice& elements) const {
  const Slice memory = map_.canonical(elements);
  return {memory.slot, memory.offset, memory.offset + memory.length};
}

}  // namespace

Schedule lower_codec(const Schedule& schedule, const Shape& shape, int rank, bool split) {
  return Lowering(schedule, shape, rank, split).finish();
}

}  // namespace uzip
