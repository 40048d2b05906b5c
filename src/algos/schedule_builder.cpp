// Derives dependencies while an algorithm writes its steps. Every piece of memory remembers who
// wrote it last and who has read it since, so a step finds its predecessors without looking at all
// earlier steps.
#include "algos/schedule_builder.hpp"

#include "algos/access.hpp"
#include "algos/interval_map.hpp"

#include <algorithm>
#include <array>
#include <cassert>

namespace uzip {

namespace {

constexpr uint32_t kNobody = UINT32_MAX;

// Redundant dependencies are looked for among this many edges, plus some for each dependency:
// enough to see through an encoding in two stages, and few enough to keep the cost of a step
// constant.
constexpr size_t kPruneEdges = 64;

// The history of a piece of memory that matters to the next step on it.
struct Touched {
  uint32_t writer = kNobody;
  std::vector<uint32_t> readers;  // since `writer`, ascending
};

}  // namespace

struct ScheduleBuilder::State {
  State(const Shape& shape, int rank);

  uint32_t add(Step step);
  uint32_t add_message(Step step);
  std::vector<uint32_t> predecessors(const std::vector<Access>& accesses);
  void remember(uint32_t step, const std::vector<Access>& accesses);
  void prune(std::vector<uint32_t>& depends_on);

  Coll coll;
  int size;
  int rank;
  std::vector<size_t> counts;
  std::vector<size_t> offsets;
  MemoryMap map;
  Schedule schedule;
  std::array<IntervalMap<Touched>, 4> memory;  // by slot
  std::vector<uint32_t> sent;                  // messages so far, by peer
  std::vector<uint32_t> received;
  std::vector<uint32_t> receives;  // all steps that receive
  std::vector<Access> accesses;    // of the step being added
  std::vector<uint32_t> reached;   // prune(): the last search that came by, for each step
  std::vector<uint32_t> stack;
  uint32_t searches = 0;
};

ScheduleBuilder::State::State(const Shape& shape, int own_rank)
    : coll(shape.coll),
      size(shape.size),
      rank(own_rank),
      counts(shape.counts),
      map(shape, own_rank) {
  assert(rank >= 0 && rank < size);
  counts.resize(static_cast<size_t>(size));  // a barrier need not give any
  for (size_t offset = 0; size_t count : counts) {
    offsets.push_back(offset);
    offset += count;
  }
  sent.resize(counts.size());
  received.resize(counts.size());
}

uint32_t ScheduleBuilder::State::add(Step step) {
  accesses.clear();
  for_each_access(map, step, [&](const Access& access) { accesses.push_back(access); });
  std::vector<uint32_t> found = predecessors(accesses);
  step.depends_on.insert(step.depends_on.end(), found.begin(), found.end());
  std::sort(step.depends_on.begin(), step.depends_on.end());
  step.depends_on.erase(std::unique(step.depends_on.begin(), step.depends_on.end()),
                        step.depends_on.end());
  prune(step.depends_on);
  const uint32_t index = static_cast<uint32_t>(schedule.steps.size());
  remember(index, accesses);
  schedule.steps.push_back(std::move(step));
  return index;
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

std::vector<uint32_t> ScheduleBuilder::State::predecessors(const std::vector<Access>& of) {
  std::vector<uint32_t> found;
  for (const Access& access : of) {
    memory[static_cast<size_t>(access.memory)].for_each(
        access.begin, access.end, [&](const Touched& touched) {
          if (access.writes && !touched.readers.empty()) {
            // The readers have waited for the writer.
            found.insert(found.end(), touched.readers.begin(), touched.readers.end());
          } else if (touched.writer != kNobody) {
            found.push_back(touched.writer);
          }
        });
  }
  return found;
}

void ScheduleBuilder::State::remember(uint32_t step, const std::vector<Access>& of) {
  for (const Access& access : of) {
    if (access.writes) continue;
    memory[static_cast<size_t>(access.memory)].for_each(
        access.begin, access.end, [&](Touched& touched) {
          if (touched.readers.empty() || touched.readers.back() != step) {
            touched.readers.push_back(step);
          }
        });
  }
  for (const Access& access : of) {
    if (!access.writes) continue;
    memory[static_cast<size_t>(access.memory)].assign(access.begin, access.end, {step, {}});
  }
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

void ScheduleBuilder::copy(Slice src, Slice dst) {
  assert(src.length == dst.length);
  if (src.length == 0 || state_->map.canonical(src) == state_->map.canonical(dst)) return;
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

void ScheduleBuilder::send_wire(Slice wire, Part part, int peer, Slice origin) {
  assert(wire.slot == Slot::kWire && (origin.length == 0 || origin.length == wire.length));
  state_->add_message(
      {.verb = Verb::kSend, .part = part, .peer = peer, .src = wire, .origin = origin});
}

void ScheduleBuilder::recv_wire(int peer, Slice wire, Part part) {
  assert(wire.slot == Slot::kWire);
  state_->add_message({.verb = Verb::kRecv, .part = part, .peer = peer, .dst = wire});
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

Slice ScheduleBuilder::input_block(int rank) const {
  const size_t block = static_cast<size_t>(rank);
  if (state_->coll != Coll::kAllgather) {
    return {Slot::kInput, state_->offsets[block], state_->counts[block]};
  }
  assert(rank == state_->rank);
  return {Slot::kInput, 0, state_->counts[block]};
}

Slice ScheduleBuilder::output_block(int rank) const {
  const size_t block = static_cast<size_t>(rank);
  if (state_->coll != Coll::kReduceScatter) {
    return {Slot::kOutput, state_->offsets[block], state_->counts[block]};
  }
  assert(rank == state_->rank);
  return {Slot::kOutput, 0, state_->counts[block]};
}

Schedule ScheduleBuilder::finish() {
  link_dependents(state_->schedule);
  return std::move(state_->schedule);
}

}  // namespace uzip
