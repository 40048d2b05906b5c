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

/// Pieces of a message that become frames of their own, at most: each is two messages, numbered with 12 bits. Both ends
/// know how many there are.
constexpr size_t kMostPieces = 2048;

std::vector<Slice> pieces_of(const Slice& whole, const std::vector<size_t>& lengths) {
  if (lengths.empty() || lengths.size() > kMostPieces) return {whole};
  std::vector<Slice> pieces;
  for (size_t offset = whole.offset; size_t length : lengths) {
    pieces.push_back({whole.slot, offset, length});
    offset += length;
  }
  return pieces;
}

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
  void copy(const Step& step);
  void send(const Slice& elements, int peer);
  void receive(int peer, const Slice& elements);
  const Frame* find_frame(const Slice& elements);
  bool origin_stands(const Frame& frame);
  void remember_frame(const Slice& elements, const Slice& wire, const Slice& origin);
  void mark_changed(const Slice& elements);
  uint32_t last_change(const Key& key);
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
      for (const Slice& piece : pieces_of(step.src, step.pieces)) send(piece, step.peer);
      return;
    case Verb::kRecv:
      if (step.dst.length == 0) return builder_.await_signal(step.peer);
      if (shape_.share_host(rank_, step.peer)) {
        builder_.recv(step.peer, step.dst);
        return mark_changed(step.dst);
      }
      for (const Slice& piece : pieces_of(step.dst, step.pieces)) receive(step.peer, piece);
      return;
    case Verb::kCopy:
      return copy(step);
    case Verb::kReduce:
      builder_.reduce(step.sources, step.dst, step.average);
      return mark_changed(step.dst);
    case Verb::kEncode:
    case Verb::kDecode:
    case Verb::kDecodeReduce:
      assert(!"the schedule is lowered already");
  }
}

// The frame of the source is one of the destination, too, unless the copy has written over what it was encoded from.
void Lowering::copy(const Step& step) {
  const Frame* known = find_frame(step.src);
  const Frame frame = known != nullptr ? *known : Frame();
  builder_.copy(step.src, step.dst);
  mark_changed(step.dst);
  if (known != nullptr && origin_stands(frame)) remember_frame(step.dst, frame.wire, frame.origin);
}

void Lowering::send(const Slice& elements, int peer) {
  const Frame* known = find_frame(elements);
  const bool fresh = known == nullptr;
  if (fresh) {
    remember_frame(elements, builder_.wire(elements.length), elements);
    known = find_frame(elements);
  }
  const Frame frame = *known;
  // The plain part leaves while the coded one is still being made, hence one part after the other.
  for (Part part : split_ ? std::vector{Part::kPlain, Part::kCoded} : std::vector{Part::kWhole}) {
    if (fresh) builder_.encode(elements, frame.wire, part);
    builder_.send_wire(frame.wire, part, peer, frame.origin);
  }
}

void Lowering::receive(int peer, const Slice& elements) {
  const Slice wire = builder_.wire(elements.length);
  if (split_) {
    builder_.recv_wire(peer, wire, Part::kPlain);
    builder_.recv_wire(peer, wire, Part::kCoded);
  } else {
    builder_.recv_wire(peer, wire, Part::kWhole);
  }
  builder_.decode(wire, elements);
  mark_changed(elements);
  remember_frame(elements, wire, {});
}

const Lowering::Frame* Lowering::find_frame(const Slice& elements) {
  const auto found = frames_.find(key_of(elements));
  if (found == frames_.end()) return nullptr;
  const Frame& frame = found->second;
  return last_change(found->first) <= frame.time && origin_stands(frame) ? &frame : nullptr;
}

// A raw frame is sent from the elements that it was encoded from, which may be others since a copy.
bool Lowering::origin_stands(const Frame& frame) {
  return frame.origin.length == 0 || last_change(key_of(frame.origin)) <= frame.time;
}

uint32_t Lowering::last_change(const Key& key) {
  const auto [slot, begin, end] = key;
  uint32_t last = 0;
  changed_[static_cast<size_t>(slot)].for_each(begin, end, [&](uint32_t time) { last = std::max(last, time); });
  return last;
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
  return drop_unread(Lowering(schedule, shape, rank, split).finish(), shape, rank);
}

}  // namespace uzip
