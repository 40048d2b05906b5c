// The verifier's first part: what can be seen by looking at one step, or at the two ends of one
// message.
#include "algos/verify_parts.hpp"

#include <algorithm>
#include <optional>

namespace uzip {
namespace {

bool overlap(const Slice& a, const Slice& b) {
  return a.slot == b.slot && a.offset < b.offset + b.length && b.offset < a.offset + a.length;
}

bool contains(const Slice& outer, const Slice& inner) {
  return outer.slot == inner.slot && outer.offset <= inner.offset &&
         inner.offset + inner.length <= outer.offset + outer.length;
}

// One rank's steps, looked at in order. Each function answers with what is wrong, or nullptr.
class StructureCheck {
 public:
  StructureCheck(const Ensemble& ensemble, int rank)
      : ensemble_(ensemble),
        rank_(rank),
        schedule_(ensemble.schedules[rank]),
        map_(ensemble.maps[rank]),
        places_(schedule_.wire_elements.size()) {}

  const char* check(uint32_t number);

 private:
  const char* check_dependencies(uint32_t number) const;
  const char* check_fields(const Step& step) const;
  const char* check_pieces(const Step& step) const;
  const char* check_write(const Slice& slice) const;
  const char* check_elements(const Slice& slice) const;
  const char* check_wire(const Slice& slice) const;
  const char* check_part(const Slice& wire, Part part);
  const char* check_reduce(const Step& step) const;
  const char* check_message(const Step& step);
  const char* check_codec(const Step& step);

  const Ensemble& ensemble_;
  int rank_;
  const Schedule& schedule_;
  const MemoryMap& map_;
  // What the steps so far have done with a wire place.
  struct Place {
    std::optional<Slice> origin;   // the elements of the frame, if it was encoded here
    std::optional<bool> in_parts;  // the frame comes whole, or in two parts
  };
  std::vector<Place> places_;
};

const char* StructureCheck::check(uint32_t number) {
  const Step& step = schedule_.steps[number];
  if (const char* fault = check_dependencies(number)) return fault;
  if (const char* fault = check_fields(step)) return fault;
  switch (step.verb) {
    case Verb::kSend:
    case Verb::kRecv:
      return check_message(step);
    case Verb::kCopy:
      if (step.src.length != step.dst.length) return "source and destination differ in length";
      if (overlap(map_.canonical(step.src), map_.canonical(step.dst))) {
        return "source and destination overlap";
      }
      if (const char* fault = check_elements(step.src)) return fault;
      return check_write(step.dst);
    case Verb::kReduce:
    case Verb::kDecodeReduce:
      return check_reduce(step);
    case Verb::kEncode:
    case Verb::kDecode:
      return check_codec(step);
  }
  return "unknown verb";
}

const char* StructureCheck::check_dependencies(uint32_t number) const {
  const std::vector<uint32_t>& earlier = schedule_.steps[number].depends_on;
  for (size_t i = 0; i < earlier.size(); ++i) {
    if (earlier[i] >= number) return "depends on itself or a later step";
    if (i > 0 && earlier[i] <= earlier[i - 1]) return "dependencies are not ascending";
  }
  uint32_t previous = number;
  for (uint32_t later : schedule_.dependents[number]) {
    if (later <= previous) return "dependents are not ascending";
    previous = later;
    if (later >= schedule_.steps.size()) return "a dependent does not exist";
    const std::vector<uint32_t>& back = schedule_.steps[later].depends_on;
    if (!std::binary_search(back.begin(), back.end(), number))
      return "a dependent does not depend on it";
  }
  return nullptr;
}

// Fields that a verb does not use are empty, so that nobody can be misled by them.
const char* StructureCheck::check_fields(const Step& step) const {
  const bool message = step.verb == Verb::kSend || step.verb == Verb::kRecv;
  const bool on_wire = step.verb == Verb::kEncode ||
                       (step.verb == Verb::kSend && step.src.slot == Slot::kWire) ||
                       (step.verb == Verb::kRecv && step.dst.slot == Slot::kWire);
  if (!message && step.peer != -1) return "has a peer";
  if (step.part != Part::kWhole && !on_wire) return "only frames have parts";
  const bool reduces = step.verb == Verb::kReduce || step.verb == Verb::kDecodeReduce;
  if (step.average && !reduces) return "only a reduction can be the last one";
  if (!step.sources.empty() && !reduces)
    return "only a reduction has several sources";
  if (step.src.length > 0 && (reduces || step.verb == Verb::kRecv))
    return "has a source";
  if (step.dst.length > 0 && step.verb == Verb::kSend) return "has a destination";
  if (step.origin.length > 0 && !(step.verb == Verb::kSend && step.src.slot == Slot::kWire)) {
    return "only a frame that is sent has an origin";
  }
  return step.pieces.empty() ? nullptr : check_pieces(step);
}

const char* StructureCheck::check_pieces(const Step& step) const {
  const Slice& body = step.verb == Verb::kSend ? step.src : step.dst;
  if ((step.verb != Verb::kSend && step.verb != Verb::kRecv) || body.slot == Slot::kWire)
    return "only messages of elements have pieces";
  size_t left = body.length;
  for (size_t length : step.pieces) {
    if (length == 0 || length > left) return "pieces that do not make up the slice";
    left -= length;
  }
  return left > 0 || step.pieces.size() == 1 ? "pieces that do not make up the slice" : nullptr;
}

const char* StructureCheck::check_elements(const Slice& slice) const {
  if (slice.slot == Slot::kWire) return "a wire place instead of elements";
  if (slice.length == 0) return "an empty slice";
  if (!contains(ensemble_.whole(slice.slot, rank_), slice)) return "a slice outside its buffer";
  if (slice.slot == Slot::kScratch ||
      ensemble_.shape.layout(slice.slot, rank_) != Layout::kBlocks) {
    return nullptr;
  }
  size_t end = 0;
  for (size_t count : ensemble_.shape_of(rank_).counts_of(slice.slot)) {
    end += count;
    if (slice.offset >= end) continue;
    if (slice.offset + slice.length <= end) return nullptr;
    return "a slice across two blocks, which need not be adjacent";
  }
  return nullptr;
}

const char* StructureCheck::check_wire(const Slice& slice) const {
  if (slice.slot != Slot::kWire) return "elements instead of a wire place";
  if (slice.offset >= schedule_.wire_elements.size()) return "a wire place that does not exist";
  if (slice.length != schedule_.wire_elements[slice.offset])
    return "a frame of another length than its place";
  return nullptr;
}

const char* StructureCheck::check_part(const Slice& wire, Part part) {
  std::optional<bool>& in_parts = places_[wire.offset].in_parts;
  const bool is_part = part != Part::kWhole;
  if (in_parts.value_or(is_part) != is_part) return "a frame is whole or in two parts, not both";
  in_parts = is_part;
  return nullptr;
}

const char* StructureCheck::check_write(const Slice& slice) const {
  if (const char* fault = check_elements(slice)) return fault;
  const Slice output = map_.canonical(ensemble_.whole(Slot::kOutput, rank_));
  if (slice.slot == Slot::kInput && !contains(output, map_.canonical(slice)))
    return "writes to the input";
  return nullptr;
}

const char* StructureCheck::check_reduce(const Step& step) const {
  if (step.sources.empty()) return "reduces nothing";
  if (const char* fault = check_write(step.dst)) return fault;
  const Slice dst = map_.canonical(step.dst);
  int same = 0;
  int frames = 0;
  for (const Slice& source : step.sources) {
    const bool is_frame = step.verb == Verb::kDecodeReduce && source.slot == Slot::kWire;
    frames += is_frame;
    if (const char* fault = is_frame ? check_wire(source) : check_elements(source)) return fault;
    if (source.length != step.dst.length) return "sources and destination differ in length";
    if (map_.canonical(source) == dst) {
      if (++same > 1) return "several sources are the destination";
    } else if (overlap(map_.canonical(source), dst)) {
      return "a source overlaps the destination without being it";
    }
  }
  if (step.verb == Verb::kDecodeReduce && frames != 1) return "decodes not one frame, but another number of them";
  return nullptr;
}

const char* StructureCheck::check_message(const Step& step) {
  if (step.peer < 0 || step.peer >= ensemble_.size() || step.peer == rank_) return "no such peer";
  const bool sends = step.verb == Verb::kSend;
  const Slice& body = sends ? step.src : step.dst;
  if (body.length == 0) return nullptr;  // a signal
  if (body.slot != Slot::kWire) return sends ? check_elements(body) : check_write(body);
  if (const char* fault = check_wire(body)) return fault;
  if (const char* fault = check_part(body, step.part)) return fault;
  std::optional<Slice>& origin = places_[body.offset].origin;
  if (!sends) {
    origin.reset();
  } else if (origin ? !(map_.canonical(*origin) == map_.canonical(step.origin))
                    : step.origin.length > 0) {
    return "the origin is not what the frame was encoded from";
  }
  return nullptr;
}

const char* StructureCheck::check_codec(const Step& step) {
  const bool encodes = step.verb == Verb::kEncode;
  if (step.src.length != step.dst.length) return "source and destination differ in length";
  if (const char* fault = encodes ? check_elements(step.src) : check_write(step.dst)) return fault;
  if (const char* fault = check_wire(encodes ? step.dst : step.src)) return fault;
  if (!encodes) return nullptr;
  if (const char* fault = check_part(step.dst, step.part)) return fault;
  std::optional<Slice>& origin = places_[step.dst.offset].origin;
  if (step.part == Part::kCoded &&
      (!origin || map_.canonical(*origin) != map_.canonical(step.src))) {
    return "the plain part is of other elements";
  }
  origin = step.src;
  return nullptr;
}

}  // namespace

Status check_structure(const Ensemble& ensemble, int rank) {
  const Schedule& schedule = ensemble.schedules[rank];
  size_t edges = 0;
  size_t edges_back = 0;
  if (schedule.dependents.size() != schedule.steps.size()) {
    return error(UZIP_ERR_INTERNAL, "rank %d: dependents are missing", rank);
  }
  StructureCheck structure(ensemble, rank);
  for (uint32_t number = 0; number < schedule.steps.size(); ++number) {
    if (const char* what = structure.check(number)) return ensemble.fault({rank, number}, what);
    edges += schedule.steps[number].depends_on.size();
    edges_back += schedule.dependents[number].size();
  }
  if (edges != edges_back) {
    return error(UZIP_ERR_INTERNAL, "rank %d: dependents do not mirror the dependencies", rank);
  }
  return Status();
}

}  // namespace uzip
