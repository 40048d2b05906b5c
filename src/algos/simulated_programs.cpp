#include "algos/simulated_programs.hpp"

#include "algos/rank_sample.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>

namespace uzip {
namespace {

/// Few ranks are all simulated: their shares may differ, and nobody has to trust in a symmetry.
constexpr int kAlwaysAll = 32;
/// More steps than this, over all ranks, take too much time and memory.
constexpr double kMostSteps = 2e7;
/// A sample has at least so many groups of hosts, or it would tell too little.
constexpr int kFewestGroups = 8;
/// Envelope and header in front of every message's body.
constexpr double kHeadBytes = 80;
/// Which part of an encoding's time its first stage takes.
constexpr double kPlainStage = 0.5;

// One rank's receives, by who sends and by number.
using Receives = std::unordered_map<uint64_t, uint32_t>;
uint64_t receive_key(int peer, uint32_t message) {
  return static_cast<uint64_t>(static_cast<uint32_t>(peer)) << 32 | message;
}

class Compiler {
 public:
  Compiler(const CallModel& call, const MachineModel& machine, Symmetry symmetry, const RankSample& sample, int unit,
           double slowdown)
      : call_(call),
        machine_(machine),
        symmetry_(symmetry),
        sample_(sample),
        unit_(unit),
        slowdown_(slowdown) {}

  Result<std::vector<SimulatedProgram>> compile(const CallModel::Kind& kind);

 private:
  SimulatedProgram translate(const Schedule& schedule, int rank, size_t place);
  double message_bytes(const Step& step) const;
  double slowdown(const Step& step) const;
  double core_time(const Step& step, Distance distance) const;
  Status connect(std::vector<SimulatedProgram>& programs);
  Status connect_sample(std::vector<SimulatedProgram>& programs);
  static void join(std::vector<SimulatedProgram>& programs, uint32_t sender, uint32_t send_step, uint32_t receiver,
                   uint32_t recv_step);

  const CallModel& call_;
  const MachineModel& machine_;
  Symmetry symmetry_;
  const RankSample& sample_;
  int unit_;  // ranks that are carried together by the symmetry
  double slowdown_;  // of what a core does to the caller's buffers
  int size_ = 0;
  std::vector<std::vector<std::pair<int, uint32_t>>> ends_;  // of messages: peer and number
  std::vector<Receives> receives_;                           // by place among the simulated ranks, as ends_
};

double Compiler::message_bytes(const Step& step) const {
  const Slice& body = step.verb == Verb::kSend ? step.src : step.dst;
  const double plain = static_cast<double>(body.length * datatype_size(call_.type));
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

// How much longer than in cache a core takes for a step's bytes: of its slices only those of the
// caller's buffers may have left the cache, scratch and wire places are used again and again.
double Compiler::slowdown(const Step& step) const {
  double slices = 0, callers = 0;
  const auto count = [&](const Slice& slice) {
    if (slice.length == 0) return;
    ++slices;
    callers += slice.slot == Slot::kInput || slice.slot == Slot::kOutput;
  };
  count(step.src);
  count(step.dst);
  for (const Slice& source : step.sources) count(source);
  if (step.verb == Verb::kRecv && step.dst.slot != Slot::kWire) count({Slot::kInput, 0, 1});
  return slices > 0 ? 1 + (slowdown_ - 1) * callers / slices : 1;
}

double Compiler::core_time(const Step& step, Distance distance) const {
  const double slower = slowdown(step);
  const auto bytes = [&](const Slice& slice) {
    return slower * static_cast<double>(slice.length * datatype_size(call_.type));
  };
  switch (step.verb) {
    case Verb::kSend:
    case Verb::kRecv: {
      const LinkModel& link = machine_.link(distance);
      const double body = message_bytes(step);
      const bool fetched = link.fetch > 0 && body >= link.fetch;
      if (fetched && link.carrier == Carrier::kReceiver)
        return link.message +
               (step.verb == Verb::kRecv ? std::max(slower * body / link.bandwidth, body * link.byte_cpu) : 0);
      return link.message + body * link.byte_cpu;
    }
    case Verb::kCopy:
      return machine_.step + bytes(step.dst) / machine_.copy;
    case Verb::kReduce:
      return machine_.step +
             static_cast<double>(step.sources.size()) * bytes(step.dst) / machine_.reduce;
    case Verb::kEncode: {
      const double part = step.part == Part::kWhole   ? 1
                          : step.part == Part::kPlain ? kPlainStage
                                                      : 1 - kPlainStage;
      return machine_.step + part * bytes(step.src) / call_.codec->encode;
    }
    case Verb::kDecode:
      return machine_.step + bytes(step.dst) / call_.codec->decode;
    case Verb::kDecodeReduce:
      return machine_.step + bytes(step.dst) / call_.codec->decode +
             static_cast<double>(step.sources.size()) * bytes(step.dst) / machine_.reduce;
  }
  return 0;
}

SimulatedProgram Compiler::translate(const Schedule& schedule, int rank, size_t place) {
  SimulatedProgram program;
  program.steps.reserve(schedule.steps.size());
  std::vector<std::pair<int, uint32_t>>& ends = ends_[place];
  Receives& receives = receives_[place];
  for (uint32_t i = 0; i < schedule.steps.size(); ++i) {
    const Step& step = schedule.steps[i];
    const bool message = step.peer >= 0;
    SimulatedStep made{};
    made.verb = step.verb;
    made.distance = message ? machine_.distance(rank, step.peer) : Distance::kLocal;
    made.partner_rank = made.next_rank = kNobody;
    made.waits_for = static_cast<uint32_t>(step.depends_on.size());
    made.dependents_begin = static_cast<uint32_t>(program.dependents.size());
    program.dependents.insert(program.dependents.end(), schedule.dependents[i].begin(),
                              schedule.dependents[i].end());
    made.dependents_end = static_cast<uint32_t>(program.dependents.size());
    made.core = core_time(step, made.distance);
    made.bytes = message ? message_bytes(step) : 0;
    if (step.verb == Verb::kRecv) receives.emplace(receive_key(step.peer, step.message), i);
    ends.emplace_back(step.peer, step.message);
    program.steps.push_back(made);
  }
  return program;
}

void Compiler::join(std::vector<SimulatedProgram>& programs, uint32_t sender, uint32_t send_step, uint32_t receiver,
                    uint32_t recv_step) {
  SimulatedStep& send = programs[sender].steps[send_step];
  SimulatedStep& recv = programs[receiver].steps[recv_step];
  recv.partner_rank = sender;
  recv.partner_step = send_step;
  recv.twin = send.partner_rank != kNobody;
  recv.next_rank = send.partner_rank;
  recv.next_step = send.partner_step;
  if (recv.twin) {  // behind the first
    SimulatedStep& first = programs[send.partner_rank].steps[send.partner_step];
    recv.next_rank = first.next_rank;
    recv.next_step = first.next_step;
    first.next_rank = receiver;
    first.next_step = recv_step;
    return;
  }
  send.partner_rank = receiver;
  send.partner_step = recv_step;
}

// Every send finds its receive.
Status Compiler::connect(std::vector<SimulatedProgram>& programs) {
  for (uint32_t place = 0; place < programs.size(); ++place) {
    for (uint32_t i = 0; i < programs[place].steps.size(); ++i) {
      if (programs[place].steps[i].verb != Verb::kSend) continue;
      const auto [peer, message] = ends_[place][i];
      const uint32_t there = sample_.standing[static_cast<size_t>(peer)];
      const int here = carried(symmetry_, sample_.ranks[place], peer, unit_, size_);
      const auto found = receives_[there].find(receive_key(here, message));
      if (found == receives_[there].end())
        return error(UZIP_ERR_INTERNAL, "rank %d step %u: nobody receives message %u to rank %d", sample_.ranks[place],
                     i, message, peer);
      join(programs, place, i, there, found->second);
    }
  }
  return Status();
}

// The sends from one group of ranks to another are as many as the receives. Of a sample each send meets the receive that
// comes at the same part of the receiver's program; the root, which is alone in its group, sends to many of whom one is
// simulated, and receives from many.
Status Compiler::connect_sample(std::vector<SimulatedProgram>& programs) {
  const uint64_t places = programs.size();
  std::unordered_map<uint64_t, std::vector<uint32_t>> sends, receives;  // by sender and receiver
  for (uint32_t place = 0; place < places; ++place) {
    for (uint32_t i = 0; i < programs[place].steps.size(); ++i) {
      const Verb verb = programs[place].steps[i].verb;
      if (verb != Verb::kSend && verb != Verb::kRecv) continue;
      const uint32_t peer = sample_.standing[static_cast<size_t>(ends_[place][i].first)];
      if (verb == Verb::kSend) sends[place * places + peer].push_back(i);
      else receives[peer * places + place].push_back(i);
    }
  }
  const double slack = static_cast<double>(datatype_size(call_.type)) + 0.5;  // shares may differ by an element
  for (const auto& [ends, steps] : receives) {
    const auto sender = static_cast<uint32_t>(ends / places), receiver = static_cast<uint32_t>(ends % places);
    const std::vector<uint32_t>& from = sends[ends];
    for (size_t i = 0; i < steps.size(); ++i) {
      const uint32_t send = from.empty() ? 0 : from[i * from.size() / steps.size()];
      const double bytes = programs[receiver].steps[steps[i]].bytes;
      if (from.empty() || std::abs(programs[sender].steps[send].bytes - bytes) > slack)
        return error(UZIP_ERR_UNSUPPORTED, "%s on %d ranks: neighbours are not alike enough for a sample, and all are too many",
                     call_.algorithm->name, size_);
      join(programs, sender, send, receiver, steps[i]);
    }
  }
  return Status();
}

Result<std::vector<SimulatedProgram>> Compiler::compile(const CallModel::Kind& kind) {
  size_ = kind.shape.size;
  ends_.assign(sample_.ranks.size(), {});
  receives_.assign(sample_.ranks.size(), {});
  std::vector<SimulatedProgram> programs;
  for (size_t place = 0; place < sample_.ranks.size(); ++place) {
    const int rank = sample_.ranks[place];
    programs.push_back(translate(build_schedule(*call_.algorithm, kind.shape, kind.form, rank), rank, place));
  }
  const bool all_known = symmetry_ != Symmetry::kNone || static_cast<int>(sample_.ranks.size()) == size_;
  UZIP_RETURN_IF_ERROR(all_known ? connect(programs) : connect_sample(programs));
  return programs;
}

// Whether all kinds of rounds look alike from every host.
Symmetry common_symmetry(const CallModel& call, int host) {
  Symmetry common = Symmetry::kNone;
  for (size_t i = 0; i < call.kinds.size(); ++i) {
    const Symmetry one = find_symmetry(*call.algorithm, call.kinds[i].shape, host);
    if (one == Symmetry::kNone || (i > 0 && one != common)) return Symmetry::kNone;
    common = one;
  }
  return common;
}

// Shares that differ by one element are made equal, so that the ranks are alike: of thousands of
// ranks one element is nothing.
void even_out(Shape& shape) {
  const auto [least, most] = std::minmax_element(shape.counts.begin(), shape.counts.end());
  if (shape.counts.empty() || *most - *least > 1) return;
  shape.counts.assign(shape.counts.size(), *most);
}

size_t buffer_elements(const Shape& shape, Slot slot, int rank) {
  const Shape known = shape.of_rank(rank);
  const std::vector<size_t>& counts = known.counts_of(slot);
  switch (known.layout(slot, rank)) {
    case Layout::kNothing:
      return 0;
    case Layout::kOwnBlock:
      return counts[static_cast<size_t>(rank)];
    case Layout::kVector:
    case Layout::kBlocks:
      return std::accumulate(counts.begin(), counts.end(), size_t{0});
  }
  return 0;
}

// How many times longer a core takes for a byte of the caller's buffers on the average, since those
// of all ranks of a host do not fit its cache.
double memory_slowdown(const CallModel& call, const MachineModel& machine, int host) {
  if (machine.cache == 0) return 1;
  std::vector<double> elements;  // by kind, of the first host
  for (const CallModel::Kind& kind : call.kinds) {
    double sum = 0;
    for (int rank = 0; rank < host; ++rank) {
      const double input = static_cast<double>(buffer_elements(kind.shape, Slot::kInput, rank));
      const double output = static_cast<double>(buffer_elements(kind.shape, Slot::kOutput, rank));
      sum += kind.shape.in_place ? std::max(input, output) : input + output;
    }
    elements.push_back(sum);
  }
  double bytes = 0;
  for (uint32_t kind : call.rounds)
    bytes += elements[kind] * static_cast<double>(datatype_size(call.type));
  // Who walks again and again through more than fits loses what he will need next, so that twice
  // the cache is as bad as any more.
  const double missing = std::clamp(bytes / machine.cache - 1, 0.0, 1.0);
  return 1 + (machine.beyond - 1) * missing;
}

Status compile_all(const CallModel& call, const MachineModel& machine, Symmetry symmetry, const RankSample& sample,
                   int unit, SimulatedPrograms& programs) {
  programs.ranks = sample.ranks;
  programs.kinds.clear();
  const double slowdown = memory_slowdown(call, machine, programs.host);
  for (const CallModel::Kind& kind : call.kinds) {
    Compiler compiler(call, machine, symmetry, sample, unit, slowdown);
    UZIP_ASSIGN_OR_RETURN(std::vector<SimulatedProgram> compiled, compiler.compile(kind));
    programs.kinds.push_back(std::move(compiled));
  }
  return Status();
}

}  // namespace

Result<SimulatedPrograms> make_programs(const CallModel& original, const MachineModel& machine) {
  CallModel call = original;
  const int size = call.kinds[0].shape.size;
  if (size > kAlwaysAll) {
    for (CallModel::Kind& kind : call.kinds) even_out(kind.shape);
  }
  SimulatedPrograms programs;
  programs.host = std::min(size, static_cast<int>(machine.ranks_per_host));
  double steps = 0;  // of a rank, at most
  for (const CallModel::Kind& kind : call.kinds) {
    if (!call.algorithm->supports(kind.shape))
      return error(UZIP_ERR_UNSUPPORTED, "%s does not support %d ranks with these counts",
                   call.algorithm->name, size);
    if (kind.form != Form::kPlain && call.codec == nullptr)
      return error(UZIP_ERR_INVALID, "frames need a codec, and the model has none for this type");
    const Schedule typical = build_schedule(*call.algorithm, kind.shape, Form::kPlain, size / 2);
    steps = std::max(steps, static_cast<double>(typical.steps.size()));
  }
  const bool free_to_choose = size > kAlwaysAll && !call.every_rank;
  // The ranks of a single host that have ports and cores of their own are like hosts.
  const bool apart = programs.host == size && machine.cores_per_host == 0 && machine.ranks_per_socket == 0 &&
                     machine.local.port == PortOwner::kRank;
  const int unit = apart ? 1 : programs.host;
  const Symmetry symmetry = free_to_choose ? common_symmetry(call, unit) : Symmetry::kNone;
  // Each talks to each: then there are as many steps as ranks, and a part of the ranks tells the same.
  const bool too_many = steps * size > kMostSteps;
  if (symmetry == Symmetry::kNone && free_to_choose && steps >= size && steps * size > call.most_steps) {
    const double groups = call.most_steps / steps / unit;
    const RankSample spread = spread_ranks(size, unit, call.kinds[0].shape.root,
                                           std::max(static_cast<int>(groups), kFewestGroups));
    Status compiled = compile_all(call, machine, symmetry, spread, unit, programs);
    if (compiled.ok() || too_many) return compiled.ok() ? Result<SimulatedPrograms>(std::move(programs)) : compiled;
  }
  if (symmetry == Symmetry::kNone && too_many)
    return error(UZIP_ERR_UNSUPPORTED,
                 "%s on %d ranks has %.0f steps a rank, and the ranks are not alike: too many",
                 call.algorithm->name, size, steps);
  const RankSample sample = symmetry == Symmetry::kNone ? all_ranks(size) : first_host(size, unit);
  UZIP_RETURN_IF_ERROR(compile_all(call, machine, symmetry, sample, unit, programs));
  return programs;
}

}  // namespace uzip
