#include "algos/simulated_programs.hpp"

#include "algos/rank_sample.hpp"
#include "algos/step_costs.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace uzip {
namespace {

/// Few ranks are all simulated: their shares may differ, and nobody has to trust in a symmetry.
constexpr int kAlwaysAll = 32;
/// More steps than this, over all ranks, take too much time and memory.
constexpr double kMostSteps = 2e7;
/// A sample has at least so many groups of hosts, or it would tell too little.
constexpr int kFewestGroups = 8;

// One rank's receives, by who sends and by number.
using Receives = std::unordered_map<uint64_t, uint32_t>;
uint64_t receive_key(int peer, uint32_t message) {
  return static_cast<uint64_t>(static_cast<uint32_t>(peer)) << 32 | message;
}

class Compiler {
 public:
  Compiler(const CallModel& call, const MachineModel& machine, Symmetry symmetry, const RankSample& sample, int unit,
           int host)
      : call_(call),
        machine_(machine),
        symmetry_(symmetry),
        sample_(sample),
        unit_(unit),
        costs_(call, machine, host) {}

  Result<std::vector<SimulatedProgram>> compile(const CallModel::Kind& kind);

 private:
  SimulatedProgram translate(const Schedule& schedule, const Shape& shape, int rank, size_t place);
  Status connect(std::vector<SimulatedProgram>& programs);
  Status connect_sample(std::vector<SimulatedProgram>& programs);
  void join(std::vector<SimulatedProgram>& programs, uint32_t sender, uint32_t send_step, uint32_t receiver,
                   uint32_t recv_step) const;

  const CallModel& call_;
  const MachineModel& machine_;
  Symmetry symmetry_;
  const RankSample& sample_;
  int unit_;  // ranks that are carried together by the symmetry
  StepCosts costs_;
  int size_ = 0;
  std::vector<std::vector<std::pair<int, uint32_t>>> ends_;  // of messages: peer and number
  std::vector<Receives> receives_;                           // by place among the simulated ranks, as ends_
  std::vector<std::vector<SourceCost>> sources_;             // where what is sent lies
};

SimulatedProgram Compiler::translate(const Schedule& schedule, const Shape& shape, int rank, size_t place) {
  SimulatedProgram program;
  program.steps.reserve(schedule.steps.size());
  std::vector<std::pair<int, uint32_t>>& ends = ends_[place];
  Receives& receives = receives_[place];
  std::vector<SourceCost>& sources = sources_[place];
  costs_.enter(schedule, shape, rank);
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
    const StepCost cost = costs_.of(step, made.distance);
    made.core = cost.core;
    made.memory = cost.memory;
    made.bytes = cost.bytes;
    made.for_threads = costs_.for_threads(step);
    sources.push_back(step.verb == Verb::kSend ? costs_.source_of(step, made.distance) : SourceCost());
    if (step.verb == Verb::kRecv) receives.emplace(receive_key(step.peer, step.message), i);
    ends.emplace_back(step.peer, step.message);
    program.steps.push_back(made);
  }
  return program;
}

void Compiler::join(std::vector<SimulatedProgram>& programs, uint32_t sender, uint32_t send_step, uint32_t receiver,
                    uint32_t recv_step) const {
  SimulatedStep& send = programs[sender].steps[send_step];
  SimulatedStep& recv = programs[receiver].steps[recv_step];
  const SourceCost& source = sources_[sender][send_step];
  recv.core += recv.bytes * source.core;
  recv.memory += recv.bytes * source.memory;
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
  sources_.assign(sample_.ranks.size(), {});
  std::vector<SimulatedProgram> programs;
  for (size_t place = 0; place < sample_.ranks.size(); ++place) {
    const int rank = sample_.ranks[place];
    programs.push_back(translate(build_schedule(*call_.algorithm, kind.shape, kind.form, rank), kind.shape, rank, place));
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

Status compile_all(const CallModel& call, const MachineModel& machine, Symmetry symmetry, const RankSample& sample,
                   int unit, SimulatedPrograms& programs) {
  programs.ranks = sample.ranks;
  programs.kinds.clear();
  for (const CallModel::Kind& kind : call.kinds) {
    Compiler compiler(call, machine, symmetry, sample, unit, programs.host);
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
