// The verifier's last part: all ranks run together on symbolic values, in random legal orders and
// without any buffering of messages, and the outputs are compared with what the collective
// promises.
#include "algos/symbols.hpp"
#include "algos/verify_parts.hpp"

#include <array>
#include <random>

namespace uzip {
namespace {

// One run of all ranks.
class Simulation {
 public:
  Simulation(const Ensemble& ensemble, Expressions& expressions, uint32_t seed);
  Status run();

 private:
  // A wire place holds what was encoded, for each part that is there.
  using Place = std::array<Symbols, 2>;
  struct Memory {
    std::array<SymbolicMemory, 3> slots;  // by canonical slot
    std::vector<Place> wire;
  };
  // How far one rank has come.
  struct Progress {
    std::vector<uint32_t> waiting_for;     // by step: dependencies that have not finished
    std::vector<bool> ready;               // by step
    std::vector<std::vector<bool>> heard;  // by step, of a barrier: the ranks known to have begun
  };

  void start(int rank);
  void make_ready(StepId id);
  void finish(StepId id);
  Status execute(StepId id);
  Status transfer(StepId send, StepId receive);
  Status take_frame(StepId id, const Slice& wire, Symbols* value) const;
  Status read(StepId id, const Slice& slice, Symbols* value) const;
  void write(int rank, const Slice& slice, const Symbols& value);
  Status reduce(StepId id);
  Status encode(StepId id);
  void listen(StepId id);

  Status deadlock() const;
  Status check_outputs();
  Status check_barrier(int rank) const;

  const Ensemble& ensemble_;
  Expressions& expressions_;
  std::minstd_rand random_;
  std::vector<Memory> memory_;      // by rank
  std::vector<Progress> progress_;  // by rank
  std::vector<StepId> runnable_;    // local steps, and sends whose receive is ready too
  size_t unfinished_ = 0;
};

Simulation::Simulation(const Ensemble& ensemble, Expressions& expressions, uint32_t seed)
    : ensemble_(ensemble), expressions_(expressions), random_(seed) {
  memory_.resize(ensemble.schedules.size());
  progress_.resize(ensemble.schedules.size());
  for (int rank = 0; rank < ensemble.size(); ++rank) start(rank);
}

void Simulation::start(int rank) {
  const Schedule& schedule = ensemble_.schedules[rank];
  memory_[rank].wire.resize(schedule.wire_elements.size());
  const Slice input = ensemble_.whole(Slot::kInput, rank);
  if (input.length > 0) {
    const bool own = ensemble_.shape.layout(Slot::kInput, rank) == Layout::kOwnBlock;
    const size_t index = own ? ensemble_.offsets[rank] : 0;
    write(rank, input, {{input.length, static_cast<uint32_t>(rank), index}});
  }
  Progress& progress = progress_[rank];
  progress.ready.resize(schedule.steps.size());
  if (ensemble_.shape.coll == Coll::kBarrier) progress.heard.resize(schedule.steps.size());
  for (const Step& step : schedule.steps) {
    progress.waiting_for.push_back(static_cast<uint32_t>(step.depends_on.size()));
  }
  unfinished_ += schedule.steps.size();
}

Status Simulation::run() {
  for (int rank = 0; rank < ensemble_.size(); ++rank) {
    for (uint32_t step = 0; step < progress_[rank].waiting_for.size(); ++step) {
      if (progress_[rank].waiting_for[step] == 0) make_ready({rank, step});
    }
  }
  while (!runnable_.empty()) {
    std::swap(runnable_[random_() % runnable_.size()], runnable_.back());
    const StepId id = runnable_.back();
    runnable_.pop_back();
    if (ensemble_.step(id).verb == Verb::kSend) {
      UZIP_RETURN_IF_ERROR(transfer(id, ensemble_.partner(id)));
    } else {
      UZIP_RETURN_IF_ERROR(execute(id));
    }
  }
  if (unfinished_ > 0) return deadlock();
  return check_outputs();
}

void Simulation::make_ready(StepId id) {
  progress_[id.rank].ready[id.step] = true;
  const Verb verb = ensemble_.step(id).verb;
  if (verb != Verb::kSend && verb != Verb::kRecv) return runnable_.push_back(id);
  const StepId partner = ensemble_.partner(id);
  if (progress_[partner.rank].ready[partner.step])
    runnable_.push_back(verb == Verb::kSend ? id : partner);
}

void Simulation::finish(StepId id) {
  --unfinished_;
  for (uint32_t later : ensemble_.schedules[id.rank].dependents[id.step]) {
    if (--progress_[id.rank].waiting_for[later] == 0) make_ready({id.rank, later});
  }
}

Status Simulation::execute(StepId id) {
  const Step& step = ensemble_.step(id);
  Symbols value;
  switch (step.verb) {
    case Verb::kCopy:
      UZIP_RETURN_IF_ERROR(read(id, step.src, &value));
      write(id.rank, step.dst, value);
      break;
    case Verb::kReduce:
    case Verb::kDecodeReduce:
      UZIP_RETURN_IF_ERROR(reduce(id));
      break;
    case Verb::kEncode:
      UZIP_RETURN_IF_ERROR(encode(id));
      break;
    case Verb::kDecode:
      UZIP_RETURN_IF_ERROR(take_frame(id, step.src, &value));
      write(id.rank, step.dst, value);
      break;
    case Verb::kSend:
    case Verb::kRecv:
      break;
  }
  finish(id);
  return Status();
}

Status Simulation::transfer(StepId send, StepId receive) {
  const Step& from = ensemble_.step(send);
  const Step& to = ensemble_.step(receive);
  Symbols value;
  if (from.src.slot == Slot::kWire) {
    UZIP_RETURN_IF_ERROR(take_frame(send, from.src, &value));
    Place& place = memory_[receive.rank].wire[to.dst.offset];
    if (to.part != Part::kCoded) place[0] = value;
    if (to.part != Part::kPlain) place[1] = value;
  } else {
    UZIP_RETURN_IF_ERROR(read(send, from.src, &value));
    write(receive.rank, to.dst, value);
  }
  if (ensemble_.shape.coll == Coll::kBarrier) {
    listen(send);
    progress_[receive.rank].heard[receive.step] = progress_[send.rank].heard[send.step];
    listen(receive);
  }
  finish(send);
  finish(receive);
  return Status();
}

// The value of the frame that a send or a decoding step is about. For a send from here, the elements must
// still be what they were when they were encoded.
Status Simulation::take_frame(StepId id, const Slice& wire, Symbols* value) const {
  const Step& step = ensemble_.step(id);
  const Place& place = memory_[id.rank].wire[wire.offset];
  const bool needs_plain = step.part != Part::kCoded;
  const bool needs_coded = step.part != Part::kPlain;
  if (needs_plain && place[0].empty()) return ensemble_.fault(id, "the plain part is not there");
  if (needs_coded && place[1].empty()) return ensemble_.fault(id, "the coded part is not there");
  if (needs_plain && needs_coded && place[0] != place[1]) {
    return ensemble_.fault(id, "the two parts are of different frames");
  }
  *value = place[needs_plain ? 0 : 1];
  if (step.verb == Verb::kSend && step.origin.length > 0) {
    Symbols now;
    UZIP_RETURN_IF_ERROR(read(id, step.origin, &now));
    if (now != *value)
      return ensemble_.fault(id, "the elements have changed since they were encoded");
  }
  return Status();
}

Status Simulation::read(StepId id, const Slice& slice, Symbols* value) const {
  if (slice.length == 0) return Status();
  const Slice at = ensemble_.maps[id.rank].canonical(slice);
  if (memory_[id.rank].slots[static_cast<size_t>(at.slot)].read(at.offset, at.length, value))
    return Status();
  return ensemble_.fault(id, "reads elements that have never been written");
}

void Simulation::write(int rank, const Slice& slice, const Symbols& value) {
  const Slice at = ensemble_.maps[rank].canonical(slice);
  memory_[rank].slots[static_cast<size_t>(at.slot)].write(at.offset, value);
}

Status Simulation::reduce(StepId id) {
  const Step& step = ensemble_.step(id);
  std::vector<Symbols> operands(step.sources.size());
  for (size_t i = 0; i < operands.size(); ++i) {
    const Slice& source = step.sources[i];
    UZIP_RETURN_IF_ERROR(source.slot == Slot::kWire ? take_frame(id, source, &operands[i])
                                                    : read(id, source, &operands[i]));
  }
  const Result<Symbols> result = reduce_symbols(expressions_, operands, step.average);
  if (!result.ok()) return ensemble_.fault(id, result.status().message());
  write(id.rank, step.dst, *result);
  return Status();
}

Status Simulation::encode(StepId id) {
  const Step& step = ensemble_.step(id);
  Symbols value;
  UZIP_RETURN_IF_ERROR(read(id, step.src, &value));
  Place& place = memory_[id.rank].wire[step.dst.offset];
  if (step.part == Part::kCoded && place[0] != value) {
    return ensemble_.fault(id, "the plain part is not of these elements");
  }
  if (step.part == Part::kPlain) place[1].clear();
  if (step.part != Part::kCoded) place[0] = value;
  if (step.part != Part::kPlain) place[1] = std::move(value);
  return Status();
}

// What a step of a barrier knows: its own rank, and what the steps before it know.
void Simulation::listen(StepId id) {
  auto& heard = progress_[id.rank].heard;
  heard[id.step].resize(ensemble_.schedules.size());
  heard[id.step][id.rank] = true;
  for (uint32_t earlier : ensemble_.step(id).depends_on) {
    for (size_t rank = 0; rank < heard[earlier].size(); ++rank) {
      if (heard[earlier][rank]) heard[id.step][rank] = true;
    }
  }
}

// Some send or receive is ready and its partner is not, since dependencies within a rank have no
// cycle.
Status Simulation::deadlock() const {
  for (int rank = 0; rank < ensemble_.size(); ++rank) {
    for (uint32_t number = 0; number < progress_[rank].ready.size(); ++number) {
      const StepId id{rank, number};
      const StepId partner = ensemble_.partner(id);
      if (!progress_[rank].ready[number] || partner.rank < 0) continue;
      const Progress& other = progress_[partner.rank];
      if (other.ready[partner.step]) continue;
      std::string what = "deadlock: waits for " + ensemble_.name(partner);
      for (uint32_t earlier : ensemble_.step(partner).depends_on) {
        const StepId before = ensemble_.partner({partner.rank, earlier});
        const bool done =
            other.ready[earlier] && (before.rank < 0 || progress_[before.rank].ready[before.step]);
        if (!done)
          return ensemble_.fault(id,
                                 what + ", which waits for its step " + std::to_string(earlier));
      }
      return ensemble_.fault(id, what);
    }
  }
  return error(UZIP_ERR_INTERNAL, "deadlock");
}

Status Simulation::check_outputs() {
  Symbols first;  // of the first rank that has an output
  for (int rank = 0; rank < ensemble_.size(); ++rank) {
    if (ensemble_.shape.coll == Coll::kBarrier) {
      UZIP_RETURN_IF_ERROR(check_barrier(rank));
      continue;
    }
    const Slice whole = ensemble_.maps[rank].canonical(ensemble_.whole(Slot::kOutput, rank));
    if (whole.length == 0) continue;
    Symbols output;
    if (!memory_[rank].slots[static_cast<size_t>(whole.slot)].read(whole.offset, whole.length,
                                                                   &output)) {
      return error(UZIP_ERR_INTERNAL, "rank %d: a part of the output is never written", rank);
    }
    if (first.empty()) first = output;
    UZIP_RETURN_IF_ERROR(check_result(ensemble_, expressions_, rank, output, first));
  }
  return Status();
}

Status Simulation::check_barrier(int rank) const {
  std::vector<bool> heard(ensemble_.schedules.size());
  heard[rank] = true;
  for (const std::vector<bool>& ranks : progress_[rank].heard) {
    for (size_t other = 0; other < ranks.size(); ++other) {
      if (ranks[other]) heard[other] = true;
    }
  }
  for (size_t other = 0; other < heard.size(); ++other) {
    if (!heard[other]) {
      return error(UZIP_ERR_INTERNAL, "rank %d leaves the barrier without knowing of rank %zu",
                   rank, other);
    }
  }
  return Status();
}

}  // namespace

Status run_symbolically(const Ensemble& ensemble, int orders, uint32_t seed) {
  Expressions expressions(ensemble.size(), !ensemble.in_rank_order);
  for (int order = 0; order < orders; ++order) {
    Simulation simulation(ensemble, expressions, seed + static_cast<uint32_t>(order));
    UZIP_RETURN_IF_ERROR(simulation.run());
  }
  return Status();
}

}  // namespace uzip
