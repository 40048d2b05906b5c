// An ordered group of ranks: numbers calls, plans them, and brings messages to the calls they belong to.
#pragma once

#include "base/config.hpp"
#include "base/status.hpp"
#include "comm/calibration.hpp"
#include "comm/coll_args.hpp"
#include "comm/gpu_peers.hpp"
#include "comm/message_head.hpp"
#include "comm/request.hpp"
#include "comm/plan.hpp"
#include "comm/recent_calls.hpp"
#include "comm/schedule_cache.hpp"
#include "comm/selector.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace uzip {

class Engine;

/// One rank's part in finding out whether all ranks wait for a large call.
struct CalibrationVote {
  std::byte mine{}, least{};  ///< 1: waits; of all ranks, when the request is done
  Request* request = nullptr;
};

class Communicator {
 public:
  /// `processes[r]` is rank r's number in the engine's transport, `numbers[r]` its own number of this
  /// communicator (see Envelope::comm).
  Communicator(Engine& engine, int rank, std::vector<int> processes, std::vector<uint32_t> numbers);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(processes_.size()); }
  int process(int rank) const { return processes_[static_cast<size_t>(rank)]; }
  Engine& engine() { return engine_; }
  ScheduleCache& schedules() { return schedules_; }
  RecentCalls& recent_calls() { return recent_calls_; }
  CallContext context() const;

  /// How such a call is carried out: the same plan for all that differ in buffers, peers and operations only.
  Result<std::shared_ptr<PreparedPlan>> plan_for(const CollArgs& args);
  /// For a call that is started now, of a plan that may be older than the calibration: the plan that it would get now.
  /// Collectives start in the same order on all ranks, and the calibration has its place among them, so all choose alike.
  Result<std::shared_ptr<PreparedPlan>> plan_of_today(const std::shared_ptr<PreparedPlan>& plan);
  /// Starts a call. The request belongs to the engine; give it back with Engine::release().
  Result<Request*> start(CollArgs&& args);
  Result<Request*> start(CollArgs&& args, std::shared_ptr<PreparedPlan> plan);
  /// The same in a request of the caller's that is not in flight. An error: nothing has been started.
  Status start(Request& request, CollArgs&& args, std::shared_ptr<PreparedPlan> plan);
  /// Lets calls of this plan in this request allocate nothing from now on, until Request::unreserve().
  Status reserve(Request& request, const CollArgs& args, const std::shared_ptr<PreparedPlan>& plan);

  /// The ranks' GPUs, if they share a host and may carry calls out among themselves; else null.
  GpuPeers* peers() { return peers_.get(); }

  // Calibration. The large collectives of a communicator are the same on all ranks, and in the same order; so all come to
  // the same answer, and vote at the same time: before the first, second, fourth, ... until there is a calibration.
  /// To be asked once for each call before it is started: whether the ranks vote now.
  bool calibration_due(const CollArgs& args);
  /// The vote belongs to the communicator, which frees votes that are done when the next one starts.
  Result<const CalibrationVote*> start_vote(bool waits);
  /// To be called when a vote failed and the call that it was for isn't started.
  void give_vote_up() { ++voted_; }
  const std::shared_ptr<const Calibration>& calibration() const { return selector_.calibration(); }
  /// From now on for all collectives that this rank plans. At the same place among its calls on all ranks.
  void set_calibration(std::shared_ptr<const Calibration> calibration) {
    selector_.set_calibration(std::move(calibration));
    recent_calls_.forget();
  }
  /// By rank, if some share a host and others don't; else empty.
  const std::vector<int>& hosts() const { return selector_.hosts(); }

  /// Why no call can succeed any more (a process died), or success.
  const Status& health() const { return health_; }

  // For Engine.
  /// True if the message was taken or is kept.
  bool on_message(Incoming& incoming, const MessageHead& head);
  void on_process_failed(int process, const Status& why, bool tell_others);
  /// A control message and its text, both from another rank.
  void on_control(const MessageHead& head, const std::string& text);

  // For Request.
  Result<Progress> send(int peer, MessageIndex index, uint32_t tag, const FrameHeader& frame,
                        std::span<const std::byte> body, Completion* completion, const SendHints& hints);
  /// The same with a sealed head, which is readdressed.
  Result<Progress> send(int peer, MessageHead& head, std::span<const std::byte> body, Completion* completion, const SendHints& hints);
  /// Takes the next message from a rank if it has this head, which is readdressed, and a body of this length.
  bool take_expected(int peer, MessageHead& head, std::span<std::byte> body);
  /// The same for a receive, which it is matched with if it is the next in its turn: with this head but for its number.
  bool take_next(Request& receive, MessageHead& head, std::span<std::byte> body);
  void offer_held(Request& request, uint32_t round);
  void tell_call_failed(const Request& request);
  /// About a call, not of it; see MessageIndex::kInquiryRound. Number 0 is an inquiry.
  void send_aside(int peer, const CallStamp& stamp, uint32_t number, const std::string& body = "");
  void send_ballot(int peer, const CallStamp& stamp, Ballot ballot);
  void say_of_message(int peer, const CallStamp& stamp, uint32_t tag, OfferNumber number, const std::string& body = "");
  void on_request_ended(Request& request);

 private:
  friend class CommunicatorInspector;  // tests
  struct PastCall {
    CallStamp stamp;
    bool failed = false;
    std::shared_ptr<const PairBlocks> pairs;
    std::shared_ptr<PreparedPlan> neighbors;  ///< the plan of a call with neighbours

    /// What had to stand in such a message: an inquiry shows what its sender expects from this rank.
    CallStamp expected(const MessageHead& head) const;
  };

  Result<std::shared_ptr<PreparedPlan>> make_plan(const CallShape& shape, bool staged);
  void start_collective(Request& request, CollArgs&& args, std::shared_ptr<PreparedPlan> plan, CallStamp stamp);
  void on_bad_frame(const MessageHead& head, const Status& why);
  CallStamp stamp_for(const Request& request, const MessageHead& head) const;
  Status check_stamp(const Request& request, const MessageHead& head) const;
  Request* find_collective(uint32_t sequence);
  bool on_collective(Incoming& incoming, const MessageHead& head);
  bool on_past_call(const MessageHead& head);
  void on_call_failed(uint32_t sequence, const Status& why);
  void tell_call_failed(uint32_t sequence, const Status& status);
  bool on_point_to_point(Incoming& incoming, const MessageHead& head);
  Request* find_receive(uint32_t source, uint32_t sequence);
  bool waits_for_receive(uint32_t source, uint32_t sequence) const;
  bool match_first(Incoming& incoming, const MessageHead& head);
  bool deliver(Request& request, Incoming& incoming, const MessageHead& head);
  void send_aside(int peer, MessageHead& head, const std::string& body);
  bool on_answer(Incoming& incoming, const MessageHead& head);
  void decline_offer(const MessageHead& head);
  void decline_vote(const MessageHead& head);
  void discard(HeldMessage& message);
  void hold(Incoming& incoming, const MessageHead& head);
  void drop_held_of_ended_calls();
  void release_early(uint32_t source);
  bool release_held(uint32_t source);
  void bind_held(Request& receive);
  Request* find_unbound(uint32_t source, uint32_t tag);
  bool is_lost(uint32_t source, uint32_t sequence) const;
  bool release_lost(uint32_t source);
  void on_message_lost(uint32_t source, uint32_t sequence, uint32_t tag, const Status& why);
  void send_control(int peer, ControlKind kind, uint32_t sequence, const Status& status, uint32_t tag = 0);

  Engine& engine_;
  int rank_;
  std::vector<int> processes_;
  std::vector<uint32_t> numbers_;
  CallOptions defaults_[kCollCount];
  Selector selector_;
  uint64_t large_calls_ = 0;  ///< since there has been need for a calibration
  std::vector<std::unique_ptr<CalibrationVote>> votes_;
  /// Votes so far; part of every collective's stamp. Ranks of which only some took part in a vote, after which their calls
  /// are numbered differently, never take one another's calls for the same.
  uint16_t voted_ = 0;
  ScheduleCache schedules_;
  std::vector<std::shared_ptr<PreparedPlan>> plans_;  ///< of the last shapes of calls
  size_t next_plan_ = 0;                              ///< to be replaced next
  size_t last_plan_ = 0;                              ///< used last
  RecentCalls recent_calls_;
  Status health_;
  std::unique_ptr<GpuPeers> peers_;

  uint32_t next_sequence_ = 0;
  std::vector<Request*> collectives_;        ///< in flight, by sequence modulo size (a power of two)
  std::vector<PastCall> past_;                 ///< the last calls, by sequence modulo size
  std::vector<HeldMessage> held_;
  struct FailedAhead {
    uint32_t sequence;
    Status status;
  };
  std::vector<FailedAhead> failed_ahead_;      ///< calls that others gave up before they were called here

  std::vector<uint32_t> next_sent_;            ///< [rank] number of the next point to point message to it
  std::vector<uint32_t> next_arrival_;         ///< [rank] number of the next message expected from it
  std::vector<Request*> receives_;           ///< in flight, in order of posting
  std::vector<Request*> sends_;              ///< in flight
  struct LostMessage {
    uint32_t source, sequence, tag;
    Status why;
  };
  std::vector<LostMessage> lost_;              ///< given up by their senders; no receive has come to them yet
};

}  // namespace uzip
