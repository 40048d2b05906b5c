// Derives dependencies while an algorithm writes its steps, drops redundant ones and numbers the
// messages.
#include "algos/schedule_builder.hpp"

#include "algos/access_history.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>

namespace uzip {

namespace {

// Redundant dependencies are looked for among this many edges, plus some for each dependency:
// enough to see through an encoding in two stages, and few enough to keep the cost of a step
// constant.
constexpr size_t kPruneEdges = 64;

// Adjacent slices as one, and the lengths of those that are not empty.
std::pair<Slice, std::vector<size_t>> join(std::span<const Slice> pieces) {
  Slice whole;
  std::vector<size_t> lengths;
  for (const Slice& piece : pieces) {
    if (piece.length == 0) continue;
    if (lengths.empty()) whole = {piece.slot, piece.offset, 0};
    assert(piece.slot == whole.slot && piece.offset == whole.offset + whole.length);
    whole.length += piece.length;
    lengths.push_back(piece.length);
  }
  return {whole, std::move(lengths)};
}

}  // namespace

struct ScheduleBuilder::State {
  State(const Shape& shape, int rank);

  uint32_t add(Step step);
  uint32_t add_message(Step step);
  void prune(std::vector<uint32_t>& depends_on);

  Slice block(Slot slot, int of_rank) const;

  // The caller's buffer, in blocks.
  struct Blocks {
    Layout layout;
    std::vector<size_t> counts;
    std::vector<size_t> offsets;
  };
  static Blocks blocks_of(const Shape& shape, Slot slot, int rank);

  Blocks input;
  Blocks output;
  int size;
  int rank;
  AccessHistory history;
  Schedule schedule;
  std::vector<uint32_t> sent;  // messages so far, by peer
  std::vector<uint32_t> received;
  std::vector<uint32_t> receives;  // all steps that receive
  std::vector<uint32_t> reached;   // prune(): the last search that came by, for each step
  std::vector<uint32_t> stack;
  uint32_t searches = 0;
};

ScheduleBuilder::State::State(const Shape& shape, int own_rank)
    : input(blocks_of(shape, Slot::kInput, own_rank)),
      output(blocks_of(shape, Slot::kOutput, own_rank)),
      size(shape.size),
      rank(own_rank),
      history(shape, own_rank) {
  assert(rank >= 0 && rank < size);
  sent.resize(static_cast<size_t>(size));
  received.resize(static_cast<size_t>(size));
}

ScheduleBuilder::State::Blocks ScheduleBuilder::State::blocks_of(const Shape& shape, Slot slot,
                                                                 int rank) {
  Blocks blocks{shape.layout(slot, rank), shape.counts_of(slot), {}};
  for (size_t offset = 0; size_t count : blocks.counts) {
    blocks.offsets.push_back(offset);
    offset += count;
  }
  return blocks;
}

uint32_t ScheduleBuilder::State::add(Step step) {
  const uint32_t number = static_cast<uint32_t>(schedule.steps.size());
  const std::vector<uint32_t>& hazards = history.follow(step, number);
  std::vector<uint32_t> all;  // with those that the step had before
  std::set_union(step.depends_on.begin(), step.depends_on.end(), hazards.begin(), hazards.end(),
                 std::back_inserter(all));
  prune(all);
  step.depends_on = std::move(all);
  schedule.steps.push_back(std::move(step));
  return number;
}

uint32_t ScheduleBuilder::State::add_message(Step step) {
  assert(step.peer >= 0 && step.peer < size && step.peer != rank);
  const size_t peer = static_cast<size_t>(step.peer);
  if (step.verb == Verb::kSend) {
    step.message = sent[peer]++;
    return add(std::move(step));
  }
  step.message = received[peer]++;
  const uint32_t index = add(std::move(step));
  receives.push_back(index);
  return index;
}

// Drops dependencies that another one implies. A search that runs out of edges leaves some in,
// which costs the engine a counter and nothing else.
void ScheduleBuilder::State::prune(std::vector<uint32_t>& depends_on) {
  if (depends_on.size() < 2) return;
  const uint32_t oldest = depends_on.front();
  size_t edges = kPruneEdges + 2 * depends_on.size();
  reached.resize(schedule.steps.size());
  ++searches;
  stack = depends_on;
  while (!stack.empty() && edges > 0) {
    const uint32_t step = stack.back();
    stack.pop_back();
    for (uint32_t earlier : schedule.steps[step].depends_on) {
      if (edges == 0) break;
      --edges;
      if (earlier < oldest || reached[earlier] == searches) continue;
      reached[earlier] = searches;
      stack.push_back(earlier);
    }
  }
  std::erase_if(depends_on, [&](uint32_t step) { return reached[step] == searches; });
}

ScheduleBuilder::ScheduleBuilder(const Shape& shape, int rank)
    : state_(std::make_unique<State>(shape, rank)) {}

ScheduleBuilder::~ScheduleBuilder() = default;

void ScheduleBuilder::send(Slice src, int peer) {
  if (src.length > 0) state_->add_message({.verb = Verb::kSend, .peer = peer, .src = src});
}

void ScheduleBuilder::recv(int peer, Slice dst) {
  if (dst.length > 0) state_->add_message({.verb = Verb::kRecv, .peer = peer, .dst = dst});
}

void ScheduleBuilder::send(std::span<const Slice> pieces, int peer) {
  auto [whole, lengths] = join(pieces);
  if (lengths.size() < 2) return send(whole, peer);
  state_->add_message({.verb = Verb::kSend, .peer = peer, .src = whole, .pieces = std::move(lengths)});
}

void ScheduleBuilder::recv(int peer, std::span<const Slice> pieces) {
  auto [whole, lengths] = join(pieces);
  if (lengths.size() < 2) return recv(peer, whole);
  state_->add_message({.verb = Verb::kRecv, .peer = peer, .dst = whole, .pieces = std::move(lengths)});
}

void ScheduleBuilder::copy(Slice src, Slice dst) {
  assert(src.length == dst.length);
  if (src.length == 0 ||
      state_->history.map().canonical(src) == state_->history.map().canonical(dst))
    return;
  state_->add({.verb = Verb::kCopy, .src = src, .dst = dst});
}

void ScheduleBuilder::reduce(std::span<const Slice> sources, Slice dst, bool last) {
  assert(!sources.empty());
  if (dst.length == 0) return;
  if (sources.size() == 1 && state_->size == 1) return copy(sources[0], dst);
  state_->add({.verb = Verb::kReduce,
               .average = last,
               .dst = dst,
               .sources = std::vector<Slice>(sources.begin(), sources.end())});
}

void ScheduleBuilder::signal(int peer) {
  state_->add_message({.verb = Verb::kSend, .peer = peer, .depends_on = state_->receives});
}

void ScheduleBuilder::await_signal(int peer) {
  state_->add_message({.verb = Verb::kRecv, .peer = peer});
}

void ScheduleBuilder::encode(Slice src, Slice wire, Part part) {
  assert(wire.slot == Slot::kWire && src.length == wire.length && src.length > 0);
  state_->add({.verb = Verb::kEncode, .part = part, .src = src, .dst = wire});
}

void ScheduleBuilder::decode(Slice wire, Slice dst) {
  assert(wire.slot == Slot::kWire && dst.length == wire.length && dst.length > 0);
  state_->add({.verb = Verb::kDecode, .src = wire, .dst = dst});
}

void ScheduleBuilder::decode_reduce(std::span<const Slice> sources, Slice dst, bool last) {
  assert(dst.length > 0 && std::count_if(sources.begin(), sources.end(), [](const Slice& source) {
           return source.slot == Slot::kWire;
         }) == 1);
  state_->add({.verb = Verb::kDecodeReduce,
               .average = last,
               .dst = dst,
               .sources = std::vector<Slice>(sources.begin(), sources.end())});
}

void ScheduleBuilder::send_wire(Slice wire, Part part, int peer, Slice origin) {
  assert(wire.slot == Slot::kWire && (origin.length == 0 || origin.length == wire.length));
  state_->add_message(
      {.verb = Verb::kSend, .part = part, .peer = peer, .src = wire, .origin = origin});
}

void ScheduleBuilder::recv_wire(int peer, Slice wire, Part part) {
  assert(wire.slot == Slot::kWire);
  state_->add_message({.verb = Verb::kRecv, .part = part, .peer = peer, .dst = wire});
}

void ScheduleBuilder::add(const Step& step) {
  switch (step.verb) {
    case Verb::kSend:
      if (step.src.length == 0) return signal(step.peer);
      if (step.src.slot == Slot::kWire) return send_wire(step.src, step.part, step.peer, step.origin);
      return send(step.src, step.peer);
    case Verb::kRecv:
      if (step.dst.length == 0) return await_signal(step.peer);
      if (step.dst.slot == Slot::kWire) return recv_wire(step.peer, step.dst, step.part);
      return recv(step.peer, step.dst);
    case Verb::kCopy:
      return copy(step.src, step.dst);
    case Verb::kReduce:
      return reduce(step.sources, step.dst, step.average);
    case Verb::kEncode:
      return encode(step.src, step.dst, step.part);
    case Verb::kDecode:
      return decode(step.src, step.dst);
    case Verb::kDecodeReduce:
      return decode_reduce(step.sources, step.dst, step.average);
  }
}

Slice ScheduleBuilder::scratch(size_t length) {
  const size_t offset = state_->schedule.scratch_elements;
  state_->schedule.scratch_elements += length;
  return {Slot::kScratch, offset, length};
}

Slice ScheduleBuilder::wire(size_t length) {
  assert(length > 0);
  state_->schedule.wire_elements.push_back(length);
  return {Slot::kWire, state_->schedule.wire_elements.size() - 1, length};
}

Slice ScheduleBuilder::State::block(Slot slot, int of_rank) const {
  const Blocks& blocks = slot == Slot::kInput ? input : output;
  const size_t number = static_cast<size_t>(of_rank);
  const bool own = blocks.layout == Layout::kOwnBlock;
  assert(blocks.layout != Layout::kNothing && (!own || of_rank == rank));
  return {slot, own ? 0 : blocks.offsets[number], blocks.counts[number]};
}

Slice ScheduleBuilder::input_block(int rank) const { return state_->block(Slot::kInput, rank); }

Slice ScheduleBuilder::output_block(int rank) const { return state_->block(Slot::kOutput, rank); }

Schedule ScheduleBuilder::finish() {
  link_dependents(state_->schedule);
  return std::move(state_->schedule);
}

}  // namespace uzip
