#include "support/loopback_transport.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <list>
#include <map>
#include <mutex>
#include <random>
#include <thread>

namespace uzip {
namespace {

constexpr std::byte kPoison{0xdb};

struct Message {
  int from = -1;
  int to = -1;
  uint64_t number = 0;  // in the order of sending, over the whole fabric
  uint64_t due = 0;     // progress() call of the receiver that announces it
  bool exposed = false;
  bool slow_receive = false;
  bool owns_body = false;
  std::vector<std::byte> head;
  std::vector<std::byte> copy;        // the body, if owns_body
  const std::byte* source = nullptr;  // else where the sender keeps it
  size_t bytes = 0;
  Completion* send = nullptr;  // the sender waits for the receiver

  std::span<const std::byte> body() const {
    return owns_body ? std::span<const std::byte>(copy) : std::span(source, bytes);
  }
};

struct SlowReceive {
  std::unique_ptr<Message> message;
  std::span<std::byte> dst;
  Completion* completion = nullptr;
};

struct FailedSend {
  int from;
  int to;
  uint64_t number;
  Status failure;
};

}  // namespace

struct LoopbackFabric::Core {
  struct Rank {
    TransportSink* sink = nullptr;
    bool dead = false;
    uint64_t died_at = 0;              // the others notice some calls later
    uint64_t calls = 0;                // of progress()
    std::vector<bool> reported;        // deaths that the sink knows
    std::vector<uint64_t> noticed_at;  // own call that will report the death, 0: not seen yet
    std::list<std::unique_ptr<Message>> inbox;  // not yet announced, in the order of sending
    std::map<Message*, std::unique_ptr<Message>> held;  // announced, neither received nor discarded
    std::deque<SlowReceive> receives;
    std::vector<std::pair<Completion*, Status>> finished;  // to be called in the next progress()
  };

  Core(int size, LoopbackOptions given)
      : options(std::move(given)),
        random(options.seed),
        ranks(static_cast<size_t>(size)),
        sends(static_cast<size_t>(size) * static_cast<size_t>(size)) {
    for (Rank& rank : ranks) {
      rank.reported.resize(ranks.size());
      rank.noticed_at.resize(ranks.size());
    }
  }

  Rank& at(int rank) { return ranks[static_cast<size_t>(rank)]; }
  bool chance() { return (random() & 1) != 0; }
  uint64_t& sends_between(int from, int to) {
    return sends[static_cast<size_t>(from) * ranks.size() + static_cast<size_t>(to)];
  }

  LoopbackOptions options;
  std::mt19937_64 random;
  std::recursive_mutex mutex;  // a sink sends and receives from within progress()
  std::vector<Rank> ranks;
  std::vector<uint64_t> sends;
  std::vector<FailedSend> failures;
  std::vector<std::pair<int, uint64_t>> deaths;
  uint64_t steps = 0;
  uint64_t next_number = 0;
};

namespace {

using Core = LoopbackFabric::Core;

Status death_of(int rank) { return error(UZIP_ERR_PEER, "process %d has died", rank); }

class LoopbackTransport final : public Transport {
 public:
  LoopbackTransport(std::shared_ptr<Core> core, int rank) : core_(std::move(core)), rank_(rank) {
    info_.description = "loopback";
    info_.all_same_host = core_->options.all_same_host;
    info_.hosts = core_->options.hosts;
    info_.peer_reads = true;
    info_.processes_here = info_.all_same_host ? size() : 1;
  }
  ~LoopbackTransport() override;

  void set_sink(TransportSink* sink) override { me().sink = sink; }
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(core_->ranks.size()); }
  const TransportInfo& info() const override { return info_; }

  Result<Progress> send(int peer, std::span<const std::byte> head, std::span<const std::byte> body,
                        Completion* completion, const SendHints& hints) override;
  Result<Progress> receive(Incoming& message, std::span<std::byte> dst,
                           Completion* completion) override;
  void discard(Incoming& message) override;
  bool take_expected(int peer, std::span<const std::byte> head, std::span<std::byte> body) override;
  bool progress() override;
  void wait(std::chrono::milliseconds) override { std::this_thread::yield(); }
  bool flushed() override;

 private:
  using Guard = std::lock_guard<std::recursive_mutex>;

  Core::Rank& me() const { return core_->at(rank_); }
  std::unique_ptr<Message> release(Incoming& message);
  void sender_is_done(Message& message, const Status& status);
  bool announce_due();
  bool finish_receives();
  bool report_deaths();
  void bury(int peer);

  std::shared_ptr<Core> core_;
  int rank_;
  TransportInfo info_;
};

LoopbackTransport::~LoopbackTransport() {
  Guard guard(core_->mutex);
  me().sink = nullptr;
  me().dead = true;
}

// ---- Sending and receiving ----

Result<Progress> LoopbackTransport::send(int peer, std::span<const std::byte> head,
                                         std::span<const std::byte> body, Completion* completion,
                                         const SendHints& hints) {
  Guard guard(core_->mutex);
  if (peer < 0 || peer >= size() || head.size() > kMaxHeadBytes) {
    return error(UZIP_ERR_INTERNAL, "head of %zu bytes to process %d", head.size(), peer);
  }
  if (me().reported[static_cast<size_t>(peer)]) return death_of(peer);
  const uint64_t count = core_->sends_between(rank_, peer)++;
  for (const FailedSend& failure : core_->failures) {
    if (failure.from == rank_ && failure.to == peer && failure.number == count) {
      return failure.failure;
    }
  }

  const LoopbackOptions& options = core_->options;
  const bool drawn = options.random_modes;
  const bool eager = body.size() <= options.eager_limit && (!drawn || core_->chance());
  auto message = std::make_unique<Message>();
  message->from = rank_;
  message->to = peer;
  message->number = core_->next_number++;
  message->exposed = eager && (drawn ? core_->chance() : options.expose_bodies);
  message->slow_receive = drawn ? core_->chance() : options.slow_receives;
  message->head.assign(head.begin(), head.end());
  message->source = body.data();
  message->bytes = body.size();
  if (hints.second && (drawn ? core_->chance() : options.second_copies)) {
    std::copy(body.begin(), body.end(), hints.second->to);
    hints.second->made = true;
  }
  message->owns_body = eager || options.tamper;
  if (message->owns_body) message->copy.assign(body.begin(), body.end());
  if (options.tamper) options.tamper(rank_, peer, message->head, message->copy);
  message->bytes = message->body().size();
  const auto longest = static_cast<uint64_t>(options.longest_delay);
  message->due = core_->at(peer).calls + 1 + (longest > 0 ? core_->random() % (longest + 1) : 0);

  Progress result = Progress::kDone;
  if (!eager) {
    message->send = completion;
    result = Progress::kPending;
  } else if (drawn ? core_->chance() : options.slow_sends) {
    me().finished.emplace_back(completion, Status());
    result = Progress::kPending;
  }
  core_->at(peer).inbox.push_back(std::move(message));
  return result;
}

// Ends the message's life for its holder.
std::unique_ptr<Message> LoopbackTransport::release(Incoming& incoming) {
  auto found = me().held.find(static_cast<Message*>(incoming.handle));
  if (found == me().held.end()) return nullptr;
  std::unique_ptr<Message> message = std::move(found->second);
  me().held.erase(found);
  incoming.handle = nullptr;
  incoming.body = nullptr;
  return message;
}

void LoopbackTransport::sender_is_done(Message& message, const Status& status) {
  if (message.send == nullptr) return;
  Core::Rank& sender = core_->at(message.from);
  if (!sender.dead) sender.finished.emplace_back(message.send, status);
  message.send = nullptr;
}

Result<Progress> LoopbackTransport::receive(Incoming& incoming, std::span<std::byte> dst,
                                            Completion* completion) {
  Guard guard(core_->mutex);
  std::unique_ptr<Message> message = release(incoming);
  if (!message) return error(UZIP_ERR_INTERNAL, "a message was received or discarded twice");
  if (dst.size() < message->bytes) {
    sender_is_done(*message, Status());
    return error(UZIP_ERR_INTERNAL, "%zu bytes of room for a message of %zu", dst.size(),
                 message->bytes);
  }
  dst = dst.first(message->bytes);
  // A body that was not copied has died with its sender.
  if (!message->owns_body && core_->at(message->from).dead) return death_of(message->from);
  if (message->slow_receive) {
    std::fill(dst.begin(), dst.end(), kPoison);
    me().receives.push_back({std::move(message), dst, completion});
    return Progress::kPending;
  }
  if (!dst.empty()) std::memcpy(dst.data(), message->body().data(), dst.size());
  sender_is_done(*message, Status());
  return Progress::kDone;
}

void LoopbackTransport::discard(Incoming& incoming) {
  Guard guard(core_->mutex);
  std::unique_ptr<Message> message = release(incoming);
  if (message) sender_is_done(*message, Status());
}

bool LoopbackTransport::take_expected(int peer, std::span<const std::byte> head, std::span<std::byte> body) {
  Guard guard(core_->mutex);
  if (!core_->options.take_expected || core_->options.reorder_messages || me().dead) return false;
  const auto first = std::find_if(me().inbox.begin(), me().inbox.end(),
                                  [&](const auto& message) { return message->from == peer; });
  if (first == me().inbox.end() || (*first)->due > me().calls + 1) return false;
  Message& message = **first;
  if (!message.owns_body || message.bytes != body.size() || !std::ranges::equal(message.head, head)) return false;
  std::ranges::copy(message.copy, body.begin());
  sender_is_done(message, Status());
  me().inbox.erase(first);
  return true;
}

bool LoopbackTransport::flushed() {
  Guard guard(core_->mutex);
  for (const Core::Rank& rank : core_->ranks) {
    if (rank.dead) continue;
    for (const auto& message : rank.inbox) {
      if (message->from == rank_) return false;
    }
    for (const auto& [key, message] : rank.held) {
      if (message->from == rank_ && message->send != nullptr) return false;
    }
  }
  return me().finished.empty();
}

// ---- Progress ----

bool LoopbackTransport::progress() {
  Guard guard(core_->mutex);
  ++core_->steps;
  for (const auto& [victim, step] : core_->deaths) {
    if (core_->steps >= step) core_->at(victim).dead = true;
  }
  if (me().dead) return false;
  ++me().calls;
  bool moved = false;
  for (const auto& [completion, status] : std::exchange(me().finished, {})) {
    moved = true;
    if (completion != nullptr) completion->done(completion, status);
  }
  moved |= finish_receives();
  moved |= announce_due();
  moved |= report_deaths();
  return moved;
}

// Announces what is due by now; what arrives meanwhile has to wait.
bool LoopbackTransport::announce_due() {
  const LoopbackOptions& options = core_->options;
  std::vector<Message*> due;
  std::vector<bool> blocked(core_->ranks.size());
  for (const auto& message : me().inbox) {
    const auto from = static_cast<size_t>(message->from);
    if (message->due > me().calls) blocked[from] = !options.reorder_messages;
    if (message->due <= me().calls && !blocked[from]) due.push_back(message.get());
  }
  if (options.reorder_messages) {
    std::shuffle(due.begin(), due.end(), core_->random);
  } else if (options.reorder_senders) {
    // A random merge: for each place draw whose next message comes.
    std::vector<Message*> order = due;
    std::shuffle(order.begin(), order.end(), core_->random);
    std::map<int, std::deque<Message*>> by_sender;
    for (Message* message : due) by_sender[message->from].push_back(message);
    for (size_t i = 0; i < due.size(); ++i) {
      auto& queue = by_sender[order[i]->from];
      due[i] = queue.front();
      queue.pop_front();
    }
  }

  for (Message* message : due) {
    const auto place = std::find_if(me().inbox.begin(), me().inbox.end(),
                                    [&](const auto& other) { return other.get() == message; });
    me().held[message] = std::move(*place);
    me().inbox.erase(place);
    std::vector<std::byte> head = message->head;  // goes away after the call, as in real life
    Incoming incoming;
    incoming.peer = message->from;
    incoming.head_bytes = static_cast<uint32_t>(head.size());
    incoming.body_bytes = message->bytes;
    incoming.head = head.data();
    incoming.body = message->exposed ? message->copy.data() : nullptr;
    incoming.handle = message;
    const bool kept = me().sink->on_message(incoming);
    std::fill(head.begin(), head.end(), kPoison);
    if (!kept) discard(incoming);
  }
  return !due.empty();
}

bool LoopbackTransport::finish_receives() {
  bool moved = false;
  std::deque<SlowReceive> started = std::exchange(me().receives, {});
  for (SlowReceive& receive : started) {
    Message& message = *receive.message;
    if (core_->at(message.from).dead && !message.owns_body) {
      me().receives.push_back(std::move(receive));  // until its death is noticed
      continue;
    }
    if (!receive.dst.empty()) {
      std::memcpy(receive.dst.data(), message.body().data(), receive.dst.size());
    }
    sender_is_done(message, Status());
    moved = true;
    if (receive.completion != nullptr) receive.completion->done(receive.completion, Status());
  }
  return moved;
}

bool LoopbackTransport::report_deaths() {
  bool moved = false;
  for (size_t peer = 0; peer < core_->ranks.size(); ++peer) {
    if (!core_->ranks[peer].dead || me().reported[peer]) continue;
    uint64_t& when = me().noticed_at[peer];
    if (when == 0) when = me().calls + static_cast<uint64_t>(core_->options.notice_delay);
    if (me().calls < when) continue;
    me().reported[peer] = true;
    bury(static_cast<int>(peer));
    moved = true;
  }
  return moved;
}

// Ends everything that was pending with a dead peer, then tells the sink.
void LoopbackTransport::bury(int peer) {
  const Status death = death_of(peer);
  me().inbox.remove_if([&](const auto& message) { return message->from == peer; });
  std::vector<Completion*> failed;
  Core::Rank& dead = core_->at(peer);
  const auto collect = [&](Message& message) {
    if (message.from == rank_ && message.send != nullptr) failed.push_back(message.send);
    if (message.from == rank_) message.send = nullptr;
  };
  for (const auto& message : dead.inbox) collect(*message);
  for (const auto& [key, message] : dead.held) collect(*message);
  for (const SlowReceive& receive : dead.receives) collect(*receive.message);
  if (!core_->options.park_receives_of_dead) {
    std::erase_if(me().receives, [&](SlowReceive& receive) {
      if (receive.message->from != peer) return false;
      failed.push_back(receive.completion);
      return true;
    });
  }
  for (Completion* completion : failed) {
    if (completion != nullptr) completion->done(completion, death);
  }
  me().sink->on_peer_failed(peer, death);
}

}  // namespace

// ---- The fabric ----

LoopbackFabric::LoopbackFabric(int size, LoopbackOptions options)
    : core_(std::make_shared<Core>(size, std::move(options))) {}

LoopbackFabric::~LoopbackFabric() = default;

std::unique_ptr<Transport> LoopbackFabric::connect(int rank) {
  return std::make_unique<LoopbackTransport>(core_, rank);
}

void LoopbackFabric::kill(int rank) {
  const std::lock_guard<std::recursive_mutex> guard(core_->mutex);
  core_->at(rank).dead = true;
}

void LoopbackFabric::kill_at(int rank, uint64_t step) {
  const std::lock_guard<std::recursive_mutex> guard(core_->mutex);
  core_->deaths.emplace_back(rank, step);
}

void LoopbackFabric::fail_send(int from, int to, uint64_t n, Status failure) {
  const std::lock_guard<std::recursive_mutex> guard(core_->mutex);
  core_->failures.push_back({from, to, core_->sends_between(from, to) + n, std::move(failure)});
}

uint64_t LoopbackFabric::steps() const {
  const std::lock_guard<std::recursive_mutex> guard(core_->mutex);
  return core_->steps;
}

size_t LoopbackFabric::unfinished() const {
  const std::lock_guard<std::recursive_mutex> guard(core_->mutex);
  size_t count = 0;
  for (const Core::Rank& rank : core_->ranks) {
    count += rank.inbox.size() + rank.held.size() + rank.receives.size();
  }
  return count;
}

}  // namespace uzip
