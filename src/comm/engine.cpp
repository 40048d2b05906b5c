#include "comm/engine.hpp"

#include "base/copy.hpp"
#include "base/log.hpp"
#include "comm/communicator.hpp"
#include "comm/cpu_executor.hpp"
#include "comm/threaded_executor.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>

namespace uzip {
namespace {

using Clock = std::chrono::steady_clock;

/// A communicator's number is its place and how often the place was used before, so that late messages to a
/// freed communicator are told from those to its successor.
constexpr uint32_t kPlaceBits = 20;
constexpr uint32_t kPlaceMask = (1u << kPlaceBits) - 1;
constexpr uint32_t kGenerationMask = (1u << (32 - kPlaceBits)) - 1;

/// The lock is held meanwhile: another thread's call on a communicator of the same job may have to wait for so long.
constexpr std::chrono::milliseconds kLongestSleep{10};
/// Between two looks at a GPU that has been at work for UZIP_SPIN seconds.
constexpr std::chrono::microseconds kGpuNap{50};
constexpr int kTurnsPerClock = 32;
/// A deadline passes also while other calls keep this rank busy.
constexpr int kMovesPerClock = 1024;
/// Idle turns before the first yield when there is a core for every rank: some ten microseconds. A yield costs as much
/// as a message over shared memory, and more when it comes just before the message.
constexpr int kTurnsWithoutYield = 200;
/// Looks for a short message that is expected between two turns of everything else, where a core waits for nothing else.
constexpr int kPollsPerTurn = 16;
constexpr size_t kMostControlText = 512;

/// Copies of bodies that are kept for the next ones: as many as short messages are early at a time, and no long ones.
constexpr size_t kMostIdleBodies = 64;
/// Long steps that usually wait at a time, at most.
constexpr size_t kUsualWork = 256;
constexpr size_t kMostIdleBodyBytes = 16 * 1024;

/// Its body was copied out of the transport: Incoming::head_bytes is 0 for these, as for no other.
/// Each look at memory that another core is about to write takes it away from there: not more often than necessary.
void pause_a_moment() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

bool is_preserved(const Incoming& incoming) { return incoming.head_bytes == 0; }

/// While it lives the progress thread leaves the work to the call that waits.
class Waiting {
 public:
  explicit Waiting(std::atomic<int>& count) : count_(count) { count_.fetch_add(1, std::memory_order_relaxed); }
  ~Waiting() { count_.fetch_sub(1, std::memory_order_relaxed); }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  std::atomic<int>& count_;
};

}  // namespace

Result<std::shared_ptr<Engine>> Engine::create(const Config& config, std::unique_ptr<Transport> transport) {
  std::shared_ptr<Engine> engine(new Engine(config));
  UZIP_RETURN_IF_ERROR(engine->read_default_options());
  UZIP_ASSIGN_OR_RETURN(engine->locations_, pretended_locations(config, transport->size()));
  engine->codec_threads_ = choose_codec_threads(config.codec_threads, transport->info().processes_here);
  if (engine->codec_threads_ > 0) engine->executor_ = std::make_unique<ThreadedExecutor>(engine->codec_threads_);
  else engine->executor_ = std::make_unique<CpuExecutor>();
  engine->idle_bodies_.reserve(kMostIdleBodies);
  engine->work_.reserve(kUsualWork);
  transport->set_sink(engine.get());
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  engine->turns_without_yield_ = transport->info().processes_here <= cores ? kTurnsWithoutYield : 0;
  engine->polls_per_turn_ = engine->turns_without_yield_ > 0 ? kPollsPerTurn : 1;
  engine->transport_ = std::move(transport);
  return engine;
}

Engine::~Engine() {
  // Threads first: what they work on belongs to the rest.
  progress_thread_.reset();
  executor_.reset();
}

/// The settings' algorithm ("ring", or "allreduce:ring,allgather:two_shot"), codec and chunk size.
Status Engine::read_default_options() {
  const Result<CodecChoice> parsed = parse_codec_choice(config_.codec);
  if (!parsed.ok()) return error(UZIP_ERR_CONFIG, "UZIP_CODEC: %s", parsed.status().message().c_str());
  const CodecChoice codec = *parsed;
  for (int c = 0; c < kCollCount; ++c) {
    defaults_[c].codec = codec;
    defaults_[c].chunk_bytes = config_.chunk_bytes;
    defaults_[c].split_send = config_.split_send;
  }
  const std::string& list = config_.algorithm;
  for (size_t begin = 0; begin < list.size() && list != "auto";) {
    const size_t end = std::min(list.find(',', begin), list.size());
    const std::string item = list.substr(begin, end - begin);
    const size_t colon = item.find(':');
    const std::string name = colon == std::string::npos ? item : item.substr(colon + 1);
    bool found = false;
    for (int c = 0; c < kCollCount; ++c) {
      const Coll coll = static_cast<Coll>(c);
      if (colon != std::string::npos && item.substr(0, colon) != coll_name(coll)) continue;
      const Algorithm* algorithm = find_algorithm(coll, name);
      found |= algorithm || name == "auto";
      if (algorithm) defaults_[c].algorithm = algorithm;
    }
    if (!found)
      return error(UZIP_ERR_CONFIG, "UZIP_ALGORITHM: there is no algorithm '%.64s'; 'uzip_info -a' lists them",
                   item.c_str());
    begin = end + 1;
  }
  return Status();
}

LinkFacts Engine::link_facts(std::span<const int> processes) const {
  const TransportInfo& info = transport_->info();
  const auto all_equal = [&](auto number_of) {
    return std::all_of(processes.begin(), processes.end(),
                       [&](int process) { return number_of(process) == number_of(processes[0]); });
  };
  const bool share_memory = info.hosts.empty() ? info.all_same_host
                                               : all_equal([&](int process) { return info.hosts[static_cast<size_t>(process)]; });
  // Hosts may be pretended.
  LinkFacts facts = uzip::link_facts(share_memory && all_equal([&](int process) { return host_of(process); }), tuning_.get());
  facts.peer_reads = transport_->info().peer_reads;
  facts.gpus = job_uses_gpus_;
  return facts;
}

int Engine::host_of(int process) const {
  if (config_.ranks_per_host > 0) return process / config_.ranks_per_host;
  const std::vector<int>& hosts = transport_->info().hosts;
  return hosts.empty() ? 0 : hosts[static_cast<size_t>(process)];
}

void Engine::set_locations(std::vector<RankLocation> locations) {
  if (config_.topology == "auto") locations_ = std::move(locations);
}

std::vector<int> Engine::sockets_of(std::span<const int> processes) const {
  std::vector<RankLocation> locations;
  std::vector<int> hosts;
  for (int process : processes) {
    if (!locations_.empty()) locations.push_back(locations_[static_cast<size_t>(process)]);
    hosts.push_back(host_of(process));
  }
  return group_by_node(locations, hosts);
}

// ---- Progress and waiting --------------------------------------------------------------------------------

bool Engine::progress() {
  bool moved = transport_->progress();
  moved |= executor_->progress();
  moved |= gpus_.progress();
  moved |= run_one_step();
  return moved;
}

void Engine::progress_in_background() {
  if (codec_threads_ == 0) return;
  if (!progress_thread_) {
    progress_thread_ = std::make_unique<ProgressThread>([this] {
      if (waiting_.load(std::memory_order_relaxed) > 0) return ProgressThread::Outcome::kIdle;
      const std::lock_guard lock(mutex_);
      if (progress()) return ProgressThread::Outcome::kMoved;
      return any_in_flight() ? ProgressThread::Outcome::kIdle : ProgressThread::Outcome::kNothing;
    });
  }
  progress_thread_->wake();
}

bool Engine::any_in_flight() const {
  return std::any_of(requests_.begin(), requests_.end(), [](const auto& request) { return request->in_flight(); });
}

bool Engine::run_one_step() {
  while (work_head_ < work_.size()) {
    Round* round = work_[work_head_++];
    if (2 * work_head_ >= work_.size()) {
      // Not only when it is empty, which it may not be for as long as calls keep coming.
      work_.erase(work_.begin(), work_.begin() + static_cast<ptrdiff_t>(work_head_));
      work_head_ = 0;
    }
    if (round->run_one()) return true;
  }
  return false;
}

/// What a wait does while nothing moves. First it looks again at once, if the peers have cores of their own; then it
/// yields, since with more ranks than cores the peer needs this one; after UZIP_SPIN seconds it sleeps until the
/// network has something. The clock is looked at only now and then: a short wait costs no call for it.
class Engine::Patience {
 public:
  Patience(Engine& engine, double limit) : engine_(engine), limit_(limit) {}

  /// Either is true now and then, when it is time to look at the deadlines.
  bool moved() {
    turns_ = 0;
    if (++moves_ % kMovesPerClock != 0) return false;
    look_at_clock();
    return true;
  }
  bool idle(std::unique_lock<std::mutex>& lock) {
    if (++turns_ <= engine_.turns_without_yield_) return false;
    lock.unlock();
    sched_yield();
    lock.lock();
    if (turns_ % kTurnsPerClock != 0) return false;
    look_at_clock();
    if (turns_ < engine_.turns_without_yield_ + 2 * kTurnsPerClock) idle_since_ = now_;
    if (std::chrono::duration<double>(now_ - idle_since_).count() > engine_.config_.spin)
      engine_.sleep();
    return true;
  }

  /// Seconds since the wait began, at the last look at the clock.
  double waited() const { return std::chrono::duration<double>(now_ - begin_).count(); }
  bool warn() {
    const double after = engine_.config_.timeout;
    return after > 0 && !warned_ && waited() > after && (warned_ = true);
  }
  bool expired() const { return limit_ > 0 && waited() > limit_; }

 private:
  void look_at_clock() {
    now_ = Clock::now();
    if (begin_ == Clock::time_point()) begin_ = now_;
  }

  Engine& engine_;
  const double limit_;  ///< seconds, 0: none
  int64_t turns_ = 0;   ///< idle ones in a row
  int64_t moves_ = 0;
  bool warned_ = false;
  Clock::time_point begin_, idle_since_, now_;
};

void Engine::check_deadline(Request& request, Patience& patience) {
  const bool expired = patience.expired();
  if (!expired && !patience.warn()) return;
  std::string ranks;
  for (int rank : request.waits_for()) ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
  if (expired) {
    request.fail(error(UZIP_ERR_TIMEOUT, "still waiting for rank(s) %s after %.1f s (UZIP_TIMEOUT_LIMIT)",
                       ranks.c_str(), patience.waited()));
  } else {
    log(LogLevel::kWarn, "%s has waited %.0f s (UZIP_TIMEOUT) for rank(s) %s", request.describe().c_str(),
        patience.waited(), ranks.c_str());
    request.inquire();
  }
}

void Engine::wait(Request& request, std::unique_lock<std::mutex>& lock) {
  wait(request, lock, config_.timeout_limit);
}

/// What is done in a thread, or by a GPU, wakes nobody. The first ends soon; the second may be the caller's own work.
void Engine::sleep() {
  if (executor_->busy()) return;
  gpus_.busy() ? std::this_thread::sleep_for(kGpuNap) : transport_->wait(kLongestSleep);
}

void Engine::wait(Request& request, std::unique_lock<std::mutex>& lock, double limit) {
  const Waiting waiting(waiting_);
  Patience patience(*this, limit);
  while (!request.done()) {
    bool moved = false;
    for (int i = 0; i < polls_per_turn_ && request.expects() && !(moved = request.poll()); ++i) pause_a_moment();
    if (moved && request.done()) return;
    const bool look = moved || progress() || request.work_while_idle() ? patience.moved() : patience.idle(lock);
    if (look) check_deadline(request, patience);
  }
}

void Engine::flush(std::unique_lock<std::mutex>& lock, std::chrono::seconds limit) {
  const Waiting waiting(waiting_);
  Patience patience(*this, 0);
  while (!transport_->flushed()) {
    const bool look = progress() ? patience.moved() : patience.idle(lock);
    if (look && patience.waited() > static_cast<double>(limit.count())) {
      log(LogLevel::kWarn, "left although not all messages have been received");
      return;
    }
  }
}

// ---- Requests --------------------------------------------------------------------------------------------

Request* Engine::acquire() {
  std::erase_if(draining_, [this](Request* request) {
    if (!request->drained()) return false;
    free_requests_.push_back(request);
    return true;
  });
  if (free_requests_.empty()) {
    requests_.push_back(std::make_unique<Request>(*this));
    return requests_.back().get();
  }
  Request* request = free_requests_.back();
  free_requests_.pop_back();
  return request;
}

void Engine::release(Request* request) {
  (request->drained() ? free_requests_ : draining_).push_back(request);
}

// ---- Communicators ---------------------------------------------------------------------------------------

uint32_t Engine::reserve_number() {
  uint32_t& place = lowest_free_;
  while (place < places_.size() && places_[place].used) ++place;
  if (place == kPlaceMask) return kNoNumber;  // whose place is none
  if (place == places_.size()) places_.emplace_back();
  places_[place].used = true;
  return places_[place].generation << kPlaceBits | place;
}

void Engine::set_communicator(uint32_t number, Communicator* comm) {
  Place& place = places_[number & kPlaceMask];
  place.comm = comm;
  for (const auto& [process, why] : failed_) comm->on_process_failed(process, why, true);
  for (HeldMessage& message : std::exchange(place.early, {}))
    if (!comm->on_message(message.incoming, message.head)) discard(message.incoming);
}

void Engine::free_number(uint32_t number) {
  if (number == kNoNumber) return;
  Place& place = places_[number & kPlaceMask];
  lowest_free_ = std::min(lowest_free_, number & kPlaceMask);
  for (HeldMessage& message : place.early) discard(message.incoming);
  place = {nullptr, (place.generation + 1) & kGenerationMask, false, {}};
}

Engine::Place* Engine::find(uint32_t number) {
  const uint32_t place = number & kPlaceMask;
  if (place >= places_.size() || places_[place].generation != number >> kPlaceBits) return nullptr;
  return places_[place].used ? &places_[place] : nullptr;
}

// ---- Messages --------------------------------------------------------------------------------------------

bool Engine::on_message(Incoming& incoming) {
  MessageHead head;
  if (incoming.head_bytes == sizeof head) std::memcpy(&head, incoming.head, sizeof head);
  if (incoming.head_bytes != sizeof head || !is_intact(head)) {
    // Nobody knows which call it was for, which now waits for ever: nothing with this process can go on.
    log(LogLevel::kError, "a message from process %d has a damaged head", incoming.peer);
    on_process_failed(incoming.peer, error(UZIP_ERR_CORRUPT, "a message from it has a damaged head"), true);
    return false;
  }
  Place* place = find(head.envelope.comm);
  if (!place) return false;  // freed: the rest of a call that failed
  if (place->comm) return place->comm->on_message(incoming, head);
  place->early.push_back({incoming, head});
  preserve(place->early.back().incoming);
  return true;
}

void Engine::on_process_failed(int process, const Status& why, bool tell_others) {
  failed_.emplace(process, why);
  for (size_t i = 0; i < places_.size(); ++i)
    if (places_[i].comm) places_[i].comm->on_process_failed(process, why, tell_others);
}

void Engine::preserve(Incoming& incoming) {
  if (is_preserved(incoming) || incoming.handle || !incoming.body) return;
  const auto large_enough = std::find_if(idle_bodies_.begin(), idle_bodies_.end(), [&](const auto& body) {
    return body->capacity() >= incoming.body_bytes;
  });
  std::unique_ptr<PreservedBody> copy;
  if (large_enough == idle_bodies_.end()) {
    copy = std::make_unique<PreservedBody>();
  } else {
    copy = std::move(*large_enough);
    idle_bodies_.erase(large_enough);
  }
  copy->assign(incoming.body, incoming.body + incoming.body_bytes);
  transport_->discard(incoming);
  incoming = Incoming{incoming.peer, 0, copy->size(), nullptr, copy->data(), copy.get()};
  (void)copy.release();  // discard() has it from here
}

Result<Progress> Engine::take(Incoming& incoming, std::span<std::byte> dst, Completion* completion) {
  if (!is_preserved(incoming)) return transport_->receive(incoming, dst, completion);
  copy_bytes(dst.data(), incoming.body, incoming.body_bytes);
  discard(incoming);
  return Progress::kDone;
}

void Engine::discard(Incoming& incoming) {
  if (!is_preserved(incoming)) return transport_->discard(incoming);
  std::unique_ptr<PreservedBody> copy(static_cast<PreservedBody*>(incoming.handle));
  if (idle_bodies_.size() < kMostIdleBodies && copy->capacity() <= kMostIdleBodyBytes)
    idle_bodies_.push_back(std::move(copy));
}

// ---- Control messages ------------------------------------------------------------------------------------

Engine::Letter* Engine::new_letter(const MessageHead& head, std::string text, bool incoming) {
  auto letter = std::make_unique<Letter>();
  letter->done = [](Completion* self, const Status& status) {
    auto* letter = static_cast<Letter*>(self);
    letter->engine->end_letter(letter, status.ok());
  };
  letter->engine = this;
  letter->incoming = incoming;
  letter->head = head;
  letter->text = std::move(text);
  letters_.push_back(std::move(letter));
  return letters_.back().get();
}

void Engine::end_letter(Letter* letter, bool has_text) {
  const auto place = std::find_if(letters_.begin(), letters_.end(),
                                  [&](const auto& other) { return other.get() == letter; });
  const std::unique_ptr<Letter> ended = std::move(*place);
  letters_.erase(place);
  const Place* to = ended->incoming ? find(ended->head.envelope.comm) : nullptr;
  if (!to || !to->comm) return;  // sent, or freed meanwhile
  if (!has_text) ended->text = "(no text)";
  for (char& c : ended->text)
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) c = '?';
  to->comm->on_control(ended->head, ended->text);
}

void Engine::send_control(int process, const MessageHead& head, const std::string& text) {
  Letter* letter = new_letter(head, text.substr(0, kMostControlText), false);
  const auto sent = transport_->send(process, bytes_of(head), std::as_bytes(std::span(letter->text)), letter, {});
  if (!sent.ok() || *sent == Progress::kDone) end_letter(letter, true);
}

void Engine::take_control(Incoming& incoming, const MessageHead& head) {
  const bool fits = incoming.body_bytes <= kMostControlText;
  Letter* letter = new_letter(head, std::string(fits ? incoming.body_bytes : 0, ' '), true);
  if (!fits) {
    discard(incoming);
    return end_letter(letter, false);
  }
  const auto taken = take(incoming, std::as_writable_bytes(std::span(letter->text)), letter);
  if (!taken.ok() || *taken == Progress::kDone) end_letter(letter, taken.ok());
}

}  // namespace uzip
