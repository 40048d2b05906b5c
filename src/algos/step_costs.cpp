#include "algos/step_costs.hpp"

#include <algorithm>
#include <numeric>

namespace uzip {
namespace {

/// Envelope and header in front of every message's body.
constexpr double kHeadBytes = 80;
/// Which part of an encoding's time its first stage takes.
constexpr double kPlainStage = 0.5;
/// What is worth handing to a thread, as src/comm/threaded_executor.cpp has it.
constexpr double kThreadBytes = 64 << 10;

bool is_callers(const Slice& slice) { return slice.slot == Slot::kInput || slice.slot == Slot::kOutput; }

// Which part of `bytes` that are used again and again a cache does not have when they are needed.
double missing_of(double bytes, double cache) {
  return cache > 0 ? std::clamp(bytes / cache - 1, 0.0, 1.0) : 0;
}

double buffer_elements(const Shape& shape, Slot slot, int rank) {
  const Shape known = shape.of_rank(rank);
  const std::vector<size_t>& counts = known.counts_of(slot);
  switch (known.layout(slot, rank)) {
    case Layout::kNothing:
      return 0;
    case Layout::kOwnBlock:
      return static_cast<double>(counts[static_cast<size_t>(rank)]);
    case Layout::kVector:
    case Layout::kBlocks:
      return static_cast<double>(std::accumulate(counts.begin(), counts.end(), size_t{0}));
  }
  return 0;
}

double callers_elements(const Shape& shape, int rank) {
  const double input = buffer_elements(shape, Slot::kInput, rank);
  const double output = buffer_elements(shape, Slot::kOutput, rank);
  return shape.in_place ? std::max(input, output) : input + output;
}

}  // namespace

StepCosts::StepCosts(const CallModel& call, const MachineModel& machine, int host)
    : call_(call),
      machine_(machine),
      element_(static_cast<double>(datatype_size(call.type))),
      ranks_of_core_(machine.cores_per_host > 0 ? std::max(host / machine.cores_per_host, 1.0) : 1),
      ranks_of_host_(host) {
  std::vector<double> elements;  // of the caller's buffers of the first host, by kind
  for (const CallModel::Kind& kind : call.kinds) {
    double sum = 0;
    const bool needed = machine.cache > 0 || machine.core_cache > 0;
    for (int rank = 0; needed && rank < host; ++rank) sum += callers_elements(kind.shape, rank);
    elements.push_back(sum);
  }
  double bytes = 0;
  for (uint32_t kind : call.rounds) bytes += elements[kind] * element_;
  callers_far_ = missing_of(bytes / ranks_of_host_ * ranks_of_core_, machine.core_cache);
  callers_memory_ = missing_of(bytes, machine.cache);
}

void StepCosts::enter(const Schedule& schedule, const Shape& shape, int rank) {
  double frames = 0;
  for (size_t elements : schedule.wire_elements) frames += static_cast<double>(elements);
  const double ratio = call_.codec ? call_.codec->ratio : 1;
  const double rounds = static_cast<double>(std::min<size_t>(call_.window, call_.rounds.size()));
  const double in_flight =
      element_ * rounds * (static_cast<double>(schedule.scratch_elements) + ratio * frames + callers_elements(shape, rank));
  round_far_ = missing_of(in_flight * ranks_of_core_, machine_.core_cache);
  round_memory_ = missing_of(in_flight * ranks_of_host_, machine_.cache);
  readers_.clear();
  const auto count = [&](const Slice& slice) {
    if (slice.length > 0 && is_callers(slice)) ++readers_[{slice.slot, slice.offset}];
  };
  for (const Step& step : schedule.steps) {
    const bool by_adapter = step.verb == Verb::kSend && !takes_core(step, machine_.distance(rank, step.peer));
    if (step.verb != Verb::kRecv && !by_adapter) count(step.src);
    for (const Slice& source : step.sources) count(source);
  }
}

double StepCosts::readers(const Slice& slice) const {
  const auto found = readers_.find({slice.slot, slice.offset});
  return found == readers_.end() ? 1 : std::max(found->second, 1.0);
}

// An output is read after it has been written in the same round.
StepCosts::Penalty StepCosts::penalty(const Slice& slice, Use use) const {
  if (slice.length == 0) return {};
  const bool rests = is_callers(slice) && (use == Use::kWrite || slice.slot == Slot::kInput);
  const double far = rests ? std::max(callers_far_, callers_memory_) : round_far_;
  const double memory = !rests ? round_memory_ : use == Use::kWrite ? callers_memory_ : callers_memory_ / readers(slice);
  return {machine_.far * far, machine_.memory * memory};
}

double StepCosts::elements_bytes(const Slice& slice) const { return element_ * static_cast<double>(slice.length); }

// A frame is smaller than its elements.
double StepCosts::place_bytes(const Slice& slice) const {
  return elements_bytes(slice) * (slice.slot == Slot::kWire && call_.codec ? call_.codec->ratio : 1);
}

double StepCosts::message_bytes(const Step& step) const {
  const Slice& body = step.verb == Verb::kSend ? step.src : step.dst;
  const double plain = elements_bytes(body);
  if (body.slot != Slot::kWire) return kHeadBytes + plain;
  const CodecModel& codec = *call_.codec;
  const double first = std::min(codec.plain, codec.ratio);
  switch (step.part) {
    case Part::kWhole:
      return kHeadBytes + plain * codec.ratio;
    case Part::kPlain:
      return kHeadBytes + plain * first;
    case Part::kCoded:
      return kHeadBytes + plain * (codec.ratio - first);
  }
  return kHeadBytes;
}

bool StepCosts::reads_from_peer(const Step& step, Distance distance) const {
  const LinkModel& link = machine_.link(distance);
  return link.fetch > 0 && message_bytes(step) >= link.fetch && link.carrier == Carrier::kReceiver;
}

// Whether some core touches the message's bytes.
bool StepCosts::takes_core(const Step& step, Distance distance) const {
  return machine_.link(distance).byte_cpu > 0 || reads_from_peer(step, distance);
}

// With all bytes in the core's own cache.
double StepCosts::work(const Step& step, Distance distance) const {
  const double reductions = static_cast<double>(step.sources.size()) * elements_bytes(step.dst) / machine_.reduce;
  switch (step.verb) {
    case Verb::kSend:
    case Verb::kRecv: {
      const LinkModel& link = machine_.link(distance);
      const double body = message_bytes(step);
      if (!reads_from_peer(step, distance)) return link.message + body * link.byte_cpu;
      return link.message + (step.verb == Verb::kRecv ? std::max(body / link.bandwidth, body * link.byte_cpu) : 0);
    }
    case Verb::kCopy:
      return machine_.step + elements_bytes(step.dst) / machine_.copy;
    case Verb::kReduce:
      return machine_.step + reductions;
    case Verb::kEncode: {
      const double part = step.part == Part::kWhole   ? 1
                          : step.part == Part::kPlain ? kPlainStage
                                                      : 1 - kPlainStage;
      return machine_.step + part * elements_bytes(step.src) / call_.codec->encode;
    }
    case Verb::kDecode:
      return machine_.step + elements_bytes(step.dst) / call_.codec->decode;
    case Verb::kDecodeReduce:
      return machine_.step + elements_bytes(step.dst) / call_.codec->decode + reductions;
  }
  return 0;
}

StepCost StepCosts::of(const Step& step, Distance distance) const {
  StepCost cost{work(step, distance), 0, step.peer >= 0 ? message_bytes(step) : 0};
  const auto add = [&](const Slice& slice, Use use) {
    const Penalty one = penalty(slice, use);
    cost.core += place_bytes(slice) * one.core;
    cost.memory += place_bytes(slice) * one.memory;
  };
  if (step.peer >= 0 && !takes_core(step, distance)) return cost;
  if (step.verb != Verb::kRecv && !(step.peer >= 0 && reads_from_peer(step, distance))) add(step.src, Use::kRead);
  if (step.verb != Verb::kSend) add(step.dst, Use::kWrite);
  for (const Slice& source : step.sources) add(source, Use::kRead);
  return cost;
}

bool StepCosts::for_threads(const Step& step) const {
  if (step.verb != Verb::kEncode && step.verb != Verb::kDecode && step.verb != Verb::kDecodeReduce) return false;
  return step.part == Part::kWhole && elements_bytes(step.verb == Verb::kEncode ? step.src : step.dst) >= kThreadBytes;
}

SourceCost StepCosts::source_of(const Step& send, Distance distance) const {
  if (!reads_from_peer(send, distance)) return {};
  const LinkModel& link = machine_.link(distance);
  if (send.src.slot != Slot::kInput) return {link.fresh, link.memory * round_memory_};
  return {0, link.memory * callers_memory_ / readers(send.src)};
}

}  // namespace uzip
