// The simulation: events in the order of their times, until all ranks have finished all rounds.
#include "algos/simulate.hpp"

#include "algos/simulated_programs.hpp"

#include <algorithm>
#include <deque>
#include <memory>
#include <queue>

namespace uzip {
namespace {

/// A step of a round on a rank.
struct At {
  uint32_t rank;
  uint32_t round;
  uint32_t step;
};

struct Event {
  enum class Kind : uint8_t {
    kCoreDone,   ///< the core has done its part of the step
    kThreadDone,  ///< a codec thread has done the step
    kSent,       ///< the last byte has left: the send is done
    kAnnounced,  ///< the receiver knows of a body that it has to ask for
    kArrived,    ///< the last byte is there
  };
  double time;
  uint64_t number;  // of those at the same time the one that was made first comes first
  Kind kind;
  At at;

  bool operator<(const Event& other) const {
    return time != other.time ? time > other.time : number > other.number;
  }
};

class Engine {
 public:
  Engine(const CallModel& call, const MachineModel& machine, const SimulatedPrograms& programs,
         std::vector<TraceEvent>* trace);
  Result<Prediction> run();

 private:
  /// A round on one rank, from the first that is heard of it to its end.
  struct Round {
    std::vector<uint32_t> waits_for;  // by step
    std::vector<bool> ready;          // receives: may be filled now
    std::vector<bool> there;          // receives: announced or arrived
    uint32_t left = 0;
  };
  struct Rank {
    std::deque<At> messages;  // work for the core, which comes first
    std::deque<At> work;      // and second
    bool busy = false;        // has a core, or waits for one
    int coding = 0;           // codec threads that are at work
    uint32_t next_round = 0;
  };
  struct Host {
    double free_cores;
    double used_cores = 0;
    std::deque<uint32_t> waiting = {};  // ranks
  };
  /// Both directions of a port: when each has sent what it has been given.
  struct Port {
    double out_free = 0;
    double in_free = 0;
  };

  const SimulatedStep& step(At at) const {
    return programs_.kinds[call_.rounds[at.round]][at.rank].steps[at.step];
  }
  const LinkModel& link(At at) const { return machine_.link(step(at).distance); }
  bool is_fetched(At at) const { return link(at).fetch > 0 && step(at).bytes >= link(at).fetch; }
  At partner(At at) const { return {step(at).partner_rank, at.round, step(at).partner_step}; }
  Round& round(At at);
  Port& port(At at, uint32_t rank);

  void post(double time, Event::Kind kind, At at) { events_.push({time, ++made_, kind, at}); }
  void start_round(uint32_t rank);
  void make_ready(At at);
  Host& host_of(uint32_t rank) { return hosts_[rank / static_cast<uint32_t>(programs_.host)]; }
  void give_core(uint32_t rank);
  void give_to_threads(uint32_t rank);
  void release_core(Host& host);
  void start_work(uint32_t rank, double after);
  double duration_of(At at);
  void handle(const Event& event);
  double time_in_port(At recv);
  void core_done(At at);
  void step_done(At at);
  void fetch(At recv);
  double leave(At send, double from);
  void arrive(At recv, double first_byte);
  template <class Action>
  void for_each_receive(At send, Action action);
  void finish(At at);
  void record(TraceEvent::Lane lane, At at, double begin, double end);

  const CallModel& call_;
  const MachineModel& machine_;
  const SimulatedPrograms& programs_;
  std::vector<TraceEvent>* trace_;
  std::vector<Rank> ranks_;
  std::vector<Host> hosts_;
  std::vector<Port> ports_[kDistanceCount];
  std::vector<std::unique_ptr<Round>> rounds_;  // by round and rank
  std::priority_queue<Event> events_;
  uint64_t made_ = 0;
  uint64_t handled_ = 0;
  size_t unfinished_ = 0;  // rounds of all ranks
  double now_ = 0;
  Prediction prediction_;
};

Engine::Engine(const CallModel& call, const MachineModel& machine,
               const SimulatedPrograms& programs, std::vector<TraceEvent>* trace)
    : call_(call), machine_(machine), programs_(programs), trace_(trace) {
  const size_t ranks = programs.ranks.size();
  const size_t host = static_cast<size_t>(programs.host);
  ranks_.resize(ranks);
  hosts_.assign((ranks + host - 1) / host,
                {machine.cores_per_host > 0 ? machine.cores_per_host : 1e9});
  for (std::vector<Port>& ports : ports_) ports.resize(ranks);
  rounds_.resize(ranks * call.rounds.size());
  unfinished_ = ranks * call.rounds.size();
  prediction_.ranks = call.kinds[0].shape.size;
  prediction_.simulated = programs.ranks;
  prediction_.loads.resize(ranks);
}

Engine::Round& Engine::round(At at) {
  std::unique_ptr<Round>& place = rounds_[at.round * ranks_.size() + at.rank];
  if (place) return *place;
  place = std::make_unique<Round>();
  const SimulatedProgram& program = programs_.kinds[call_.rounds[at.round]][at.rank];
  place->left = static_cast<uint32_t>(program.steps.size());
  place->ready.resize(program.steps.size());
  place->there.resize(program.steps.size());
  for (const SimulatedStep& one : program.steps) place->waits_for.push_back(one.waits_for);
  return *place;
}

Engine::Port& Engine::port(At at, uint32_t rank) {
  // A port that is shared is that of the first rank.
  const auto host = static_cast<uint32_t>(machine_.ranks_per_host), socket = static_cast<uint32_t>(machine_.ranks_per_socket);
  const PortOwner owner = link(at).port;
  if (owner == PortOwner::kHost) rank -= rank % host;
  if (owner == PortOwner::kSocket) rank -= socket > 0 ? rank % host % socket : rank % host;
  return ports_[static_cast<size_t>(step(at).distance)][rank];
}

void Engine::record(TraceEvent::Lane lane, At at, double begin, double end) {
  if (trace_ != nullptr)
    trace_->push_back(
        {programs_.ranks[at.rank], lane, at.round, call_.rounds[at.round], at.step, begin, end});
}

void Engine::start_round(uint32_t rank) {
  if (ranks_[rank].next_round == call_.rounds.size()) return;
  const At at{rank, ranks_[rank].next_round++, 0};
  Round& started = round(at);
  if (started.left == 0) {  // a round of nothing
    --unfinished_;
    return start_round(rank);
  }
  // A copy: what becomes ready may finish steps.
  std::vector<uint32_t> first;
  for (uint32_t i = 0; i < started.waits_for.size(); ++i) {
    if (started.waits_for[i] == 0) first.push_back(i);
  }
  for (uint32_t i : first) make_ready({rank, at.round, i});
  give_core(rank);
}

// Queues the step. All that are ready at the same time are queued before the core takes one.
void Engine::make_ready(At at) {
  Rank& rank = ranks_[at.rank];
  const Verb verb = step(at).verb;
  if (verb == Verb::kRecv) {
    Round& in = round(at);
    in.ready[at.step] = true;
    if (!in.there[at.step]) return;
    if (is_fetched(at)) return fetch(at);
  }
  const bool message = verb == Verb::kRecv || verb == Verb::kSend;
  (message ? rank.messages : rank.work).push_back(at);
}

// The rank has something to do: it takes a core, or queues for one.
void Engine::give_core(uint32_t number) {
  Rank& rank = ranks_[number];
  if (machine_.codec_threads > 0) give_to_threads(number);
  if (rank.busy || (rank.messages.empty() && rank.work.empty())) return;
  rank.busy = true;
  Host& host = host_of(number);
  if (host.free_cores < 1) return host.waiting.push_back(number);
  --host.free_cores;
  ++host.used_cores;
  // Where ranks share cores, this one has waited for its turn to see that there is something to do.
  start_work(number, machine_.cores_per_host > 0 && programs_.host > machine_.cores_per_host ? machine_.change : 0);
}

// Long pieces are coded by the rank's threads, as long as there are threads and cores for it.
void Engine::give_to_threads(uint32_t number) {
  Rank& rank = ranks_[number];
  Host& host = host_of(number);
  for (auto it = rank.work.begin(); it != rank.work.end();) {
    if (rank.coding >= machine_.codec_threads || host.free_cores < 1) return;
    if (!step(*it).for_threads) {
      ++it;
      continue;
    }
    const At at = *it;
    it = rank.work.erase(it);
    ++rank.coding;
    --host.free_cores;
    ++host.used_cores;
    const double duration = duration_of(at);
    prediction_.loads[number].core += duration;
    post(now_ + duration, Event::Kind::kThreadDone, at);
  }
}

void Engine::release_core(Host& host) {
  if (host.waiting.empty()) {
    ++host.free_cores;
    --host.used_cores;
    return;
  }
  const uint32_t next = host.waiting.front();
  host.waiting.pop_front();
  start_work(next, machine_.change);
}

// Bytes in memory take longer the more cores of the host are at work.
double Engine::duration_of(At at) {
  const double cores = std::min<double>(machine_.cores_per_host > 0 ? machine_.cores_per_host : 1e9, programs_.host);
  const double others = cores > 1 ? std::min((host_of(at.rank).used_cores - 1) / (cores - 1), 1.0) : 0;
  return step(at).core + step(at).memory * (1 + (machine_.crowd - 1) * others);
}

void Engine::start_work(uint32_t number, double after) {
  Rank& rank = ranks_[number];
  std::deque<At>& queue = rank.messages.empty() ? rank.work : rank.messages;
  const At at = queue.front();
  queue.pop_front();
  const double duration = after + std::max(duration_of(at), time_in_port(at));
  prediction_.loads[number].core += duration;
  if (duration > 0) record(TraceEvent::Lane::kCore, at, now_, now_ + duration);
  post(now_ + duration, Event::Kind::kCoreDone, at);
}

// A body that the receiver's core reads through a port that it shares: how long until the port has passed it.
double Engine::time_in_port(At recv) {
  const LinkModel& wire = link(recv);
  if (step(recv).verb != Verb::kRecv || !is_fetched(recv) || wire.carrier != Carrier::kReceiver || wire.port == PortOwner::kRank)
    return 0;
  Port mine;  // a twin's body comes out of the port of a rank that is not simulated
  Port& out = step(recv).twin ? mine : port(recv, partner(recv).rank);
  Port& in = port(recv, recv.rank);
  const double begin = std::max({now_, out.out_free, in.in_free});
  out.out_free = in.in_free = begin + step(recv).bytes / wire.bandwidth;
  return in.in_free - now_;
}

// A rank keeps its core for as long as it has something to do: it yields only when nothing moves.
void Engine::core_done(At at) {
  Rank& rank = ranks_[at.rank];
  step_done(at);
  if (machine_.codec_threads > 0) give_to_threads(at.rank);
  if (!rank.messages.empty() || !rank.work.empty()) return start_work(at.rank, 0);
  rank.busy = false;
  release_core(host_of(at.rank));
}

void Engine::step_done(At at) {
  const double latency = link(at).latency;
  if (step(at).verb != Verb::kSend) {
    const bool read = step(at).verb == Verb::kRecv && is_fetched(at) && link(at).carrier == Carrier::kReceiver;
    if (read && !step(at).twin) post(now_ + latency, Event::Kind::kSent, partner(at));
    finish(at);
  } else if (!is_fetched(at)) {
    const double begin = leave(at, now_);
    for_each_receive(at, [&](At recv) { arrive(recv, begin + latency); });
  } else if (step(at).partner_rank == kNobody) {  // it would be asked for at once
    leave(at, now_ + 2 * latency);
  } else {
    for_each_receive(at, [&](At recv) { post(now_ + latency, Event::Kind::kAnnounced, recv); });
  }
}

template <class Action>
void Engine::for_each_receive(At send, Action action) {
  for (At recv = partner(send); recv.rank != kNobody; recv = {step(recv).next_rank, send.round, step(recv).next_step})
    action(recv);
}

// A receive that is ready asks for its body. The body of a twin comes from elsewhere, at the same time.
void Engine::fetch(At recv) {
  if (link(recv).carrier == Carrier::kReceiver) return ranks_[recv.rank].work.push_back(recv);
  const double asked = now_ + link(recv).latency;
  arrive(recv, (step(recv).twin ? asked : leave(partner(recv), asked)) + link(recv).latency);
}

// The send's body goes through its port; when its first byte does.
double Engine::leave(At send, double from) {
  Port& out = port(send, send.rank);
  const double duration = step(send).bytes / link(send).bandwidth;
  const double begin = std::max(from, out.out_free);
  out.out_free = begin + duration;
  record(TraceEvent::Lane::kOut, send, begin, begin + duration);
  post(begin + duration, Event::Kind::kSent, send);
  return begin;
}

void Engine::arrive(At recv, double first_byte) {
  Port& in = port(recv, recv.rank);
  const double duration = step(recv).bytes / link(recv).bandwidth;
  const double begin = std::max(first_byte, in.in_free);
  in.in_free = begin + duration;
  record(TraceEvent::Lane::kIn, recv, begin, begin + duration);
  post(begin + duration, Event::Kind::kArrived, recv);
}

void Engine::finish(At at) {
  const SimulatedStep& done = step(at);
  if (done.verb == Verb::kSend) {
    prediction_.loads[at.rank].sent += done.bytes;
    ++prediction_.loads[at.rank].messages;
  } else if (done.verb == Verb::kRecv) {
    prediction_.loads[at.rank].received += done.bytes;
  }
  const SimulatedProgram& program = programs_.kinds[call_.rounds[at.round]][at.rank];
  Round& in = round(at);
  for (uint32_t i = done.dependents_begin; i < done.dependents_end; ++i) {
    const uint32_t later = program.dependents[i];
    if (--in.waits_for[later] == 0) make_ready({at.rank, at.round, later});
  }
  if (--in.left > 0) return;
  rounds_[at.round * ranks_.size() + at.rank] = nullptr;
  --unfinished_;
  start_round(at.rank);
}

void Engine::handle(const Event& event) {
  const At at = event.at;
  switch (event.kind) {
    case Event::Kind::kCoreDone:
      core_done(at);
      break;
    case Event::Kind::kThreadDone:
      --ranks_[at.rank].coding;
      release_core(host_of(at.rank));
      finish(at);
      break;
    case Event::Kind::kSent:
      finish(at);
      break;
    case Event::Kind::kAnnounced: {
      Round& in = round(at);
      in.there[at.step] = true;
      if (in.ready[at.step]) fetch(at);
      break;
    }
    case Event::Kind::kArrived: {
      Round& in = round(at);
      in.there[at.step] = true;
      if (in.ready[at.step]) ranks_[at.rank].messages.push_back(at);
      break;
    }
  }
  give_core(at.rank);
}

Result<Prediction> Engine::run() {
  const size_t in_flight = std::min<size_t>(call_.window, call_.rounds.size());
  for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    for (size_t i = 0; i < in_flight; ++i) start_round(rank);
  }
  while (!events_.empty()) {
    const Event event = events_.top();
    events_.pop();
    now_ = event.time;
    ++handled_;
    handle(event);
  }
  if (unfinished_ > 0) {
    return error(UZIP_ERR_INTERNAL, "deadlock: %zu rounds of %zu ranks never end", unfinished_,
                 ranks_.size());
  }
  prediction_.seconds = now_ + machine_.call;
  prediction_.events = handled_;
  return std::move(prediction_);
}

}  // namespace

CallModel one_round(const Algorithm& algorithm, const Shape& shape, Form form, DataType type,
                    const CodecModel* codec) {
  CallModel call;
  call.algorithm = &algorithm;
  call.kinds = {{shape, form}};
  call.rounds = {0};
  call.type = type;
  call.codec = codec;
  return call;
}

Result<Prediction> simulate(const CallModel& call, const MachineModel& machine,
                            std::vector<TraceEvent>* trace) {
  if (call.rounds.empty()) {
    Prediction nothing;
    nothing.seconds = machine.call;
    return nothing;
  }
  UZIP_ASSIGN_OR_RETURN(const SimulatedPrograms programs, make_programs(call, machine));
  return Engine(call, machine, programs, trace).run();
}

}  // namespace uzip
