// One call in execution (what a user's request stands for): its plan, its buffers, and the rounds in flight.
#pragma once

#include "comm/coding_habit.hpp"
#include "comm/coll_args.hpp"
#include "comm/direct_exchange.hpp"
#include "comm/direct_message.hpp"
#include "comm/gpu_offer.hpp"
#include "comm/gpu_peers.hpp"
#include "comm/gpu_vote.hpp"
#include "comm/message_head.hpp"
#include "comm/plan.hpp"
#include "comm/round.hpp"
#include "comm/schedule_cache.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace uzip {

class Communicator;
class Engine;
class Executor;
struct GpuDevice;

class Request {
 public:
  explicit Request(Engine& engine);
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  /// Binds the call and starts its first rounds. `stamp` is what goes into every frame of it. A point to point
  /// receive does not start before bind_sender().
  void begin(Communicator& comm, CollArgs&& args, std::shared_ptr<PreparedPlan> prepared, const CallStamp& stamp);

  /// Works on the memory that these buffers are in; before begin() and reserve().
  Status use_memory_of(const CollArgs& args);
  /// Whether the ranks vote on the call (GpuPeers::vote()); before follow_stream().
  void prepare_vote(Ballot mine, int size) { vote_.prepare(mine, size); }
  /// Whether a message is offered to its receiver's GPU; before begin().
  void prepare_offer(bool offers) { offer_.prepare(offers); }
  /// The call starts when all is done that is on its stream now; before begin(). Of the host's memory: at once.
  Status follow_stream(const CollArgs& args);

  /// Makes room for calls of this plan, whose schedules must all be there: they will allocate nothing. Until
  /// unreserve(), the request is used for no others.
  Status reserve(const std::shared_ptr<PreparedPlan>& prepared);
  void unreserve();

  /// A receive has been matched: `sequence` is the sender's number of the message. `offered`: an offer comes next.
  void bind_sender(uint32_t sequence, bool offered);
  /// The same, where the message has been taken already.
  void set_sender(uint32_t sequence);

  /// A message of this call. kLater: its round has not started yet, offer it again; kRefused: there is no
  /// receive for it.
  enum class Answer { kTaken, kLater, kRefused };
  Answer on_message(Incoming& incoming, const FrameHeader& frame, int source, uint32_t round,
                    uint32_t message);
  /// A message about the call, not of it. True if its body was taken.
  bool on_aside(Incoming& incoming, int source, uint32_t number);

  /// Ends the call with an error: nothing is started any more. With `tell_others` the other ranks are told.
  void fail(const Status& status, bool tell_others = true);
  /// The communicator goes away: fails if unfinished, and forgets it.
  void detach();

  /// Finished or failed; the caller's buffers are no longer touched, or can't be waited for any longer.
  bool done() const;
  const Status& status() const { return status_; }
  bool failed() const { return !status_.ok(); }
  /// Begun, and neither finished nor failed.
  bool in_flight() const { return comm_ && !ended(); }
  /// Finished or failed; takes no more messages.
  bool ended() const { return finished_ || failed(); }
  /// Worth moving forward while nobody waits for it.
  bool is_long() const;
  /// No transport request refers to this object any more: it may be reused.
  bool drained() const;

  /// "allreduce of 1000 bf16 (sum)"
  std::string describe() const;
  /// Ranks whose messages, or whose acceptance of ours, are missing.
  std::vector<int> waits_for() const;
  /// Shows these ranks what is called here: one that called something else, and is done with it, will say so.
  void inquire();

  // For Round.
  Engine& engine() { return engine_; }
  GpuDevice* device() const { return device_; }  ///< null: the buffers are in host memory
  Executor& executor();
  const Plan& plan() const { return prepared_->plan; }
  DataType type() const { return args_.type; }
  /// Executes a reduction of the call: of its operation, or the user's.
  Result<Progress> reduce(void* dst, std::span<const void* const> sources, size_t count, size_t average_over,
                          Completion* completion);
  /// Executes a reduction of one of the library's operations straight from a frame. Fills in the operation.
  Result<Progress> decode_reduce(DecodeReduceTask& task, Completion* completion);
  int size() const { return plan().shape.size; }
  int rank() const;
  size_t peer_index(int rank) const {
    return static_cast<size_t>(plan().point_to_point() ? kPeerInSchedule : rank);
  }
  int peer_rank(int peer) const { return plan().point_to_point() ? args_.peer : peer; }
  /// Where a round's part of the caller's buffer begins; null if the slot is in blocks, each with its own address.
  std::byte* base(Slot slot, uint32_t round) const;
  std::byte* block_address(const Slice& slice, const PreparedSchedule& schedule, uint32_t round) const;
  Result<Progress> send(int peer, MessageIndex index, FrameHeader frame, size_t elements,
                        std::span<const std::byte> body, Completion* completion, uint32_t receivers, SecondCopy* second);
  // For DirectExchange and DirectMessage: messages that differ in their ends and bodies only.
  /// The head of such, not addressed yet.
  MessageHead sealed_head(MessageIndex index, FrameHeader frame) const;
  Result<Progress> send(int peer, MessageHead& head, size_t elements, std::span<const std::byte> body,
                        Completion* completion, uint32_t receivers);
  /// Takes the message from `peer` with this head and a body of this length if it is the next from there.
  bool take_expected(int peer, MessageHead& head, std::span<std::byte> body);
  CodingHabit& coding_habit() { return coding_habit_; }
  void on_round_finished();
  void on_exchanged() { args_.result_moves ? move_result() : finish(); }
  /// Takes what is there and expected; true if anything was. See DirectExchange::poll() and DirectMessage::poll().
  bool expects() const { return exchange_.expects() || message_.expects(); }
  bool poll() { return message_.expects() ? message_.poll() : exchange_.poll(); }
  bool work_while_idle() { return exchange_.work_while_idle(); }
  void on_drained();

  // For GpuVote, GpuOffer and GpuPeers.
  /// Whether the ranks' GPUs carry the call out among themselves; else it goes on in rounds.
  void on_voted(bool at_peers);
  void start_vote() { vote_.start(); }
  void start_at_peers();
  /// The same of a message.
  void on_answered(bool at_peers);
  /// This rank is about to say that they do; on_answered() follows.
  void on_accepted() { may_be_at_peers_ = true; }

  // For Communicator.
  const CallStamp& stamp() const { return stamp_; }
  /// What the frames to a rank carry, and those from it must: pairs of ranks may have counts of their own.
  CallStamp sent_stamp(int rank) const;
  CallStamp expected_stamp(int rank) const;
  const CollArgs& args() const { return args_; }
  const std::shared_ptr<PreparedPlan>& prepared() const { return prepared_; }
  Communicator* comm() const { return comm_; }
  bool bound() const { return bound_; }

 private:
  /// Something that the whole call waits for.
  struct Hook : Completion {
    Request* request = nullptr;
    void (Request::*then)() = nullptr;
  };
  static void on_hook(Completion* self, const Status& status);
  bool has_room(const Round& round, const PreparedSchedule& schedule) const;
  Status watch_stream(void* stream);
  void start_direct();
  void start_rounds();
  void advance();
  void on_peers_done();
  void on_stream_reached();
  void move_result();
  void finish();

  Engine& engine_;
  Communicator* comm_ = nullptr;
  CollArgs args_;
  std::shared_ptr<PreparedPlan> prepared_;
  CallStamp stamp_;
  std::vector<std::unique_ptr<Round>> rounds_;  ///< round k runs in rounds_[k % window]
  DirectExchange exchange_;                     ///< instead of rounds, for small collectives
  DirectMessage message_;                       ///< the same for short messages
  GpuVote vote_;                                ///< before rounds, or instead of them
  GpuOffer offer_;                              ///< the same of a message
  GpuDevice* device_ = nullptr;
  Hook stream_reached_, result_moved_, peers_done_;
  uint32_t hooks_ = 0;           ///< that are pending
  bool may_be_at_peers_ = false;  ///< the others may have begun the call between the GPUs, or begin it yet
  bool at_peers_ = false;         ///< it is carried out there
  GpuPeers::Way way_;             ///< and how
  bool follows_stream_ = false;  ///< the work on its stream is not done yet
  CodingHabit coding_habit_;
  uint32_t next_round_ = 0;
  bool bound_ = false;
  bool finished_ = false;
  bool advancing_ = false;
  Status status_;
  std::chrono::steady_clock::time_point failed_at_;
  uint64_t payload_bytes_ = 0;
  uint64_t wire_bytes_ = 0;
};

/// A call's stamp in the messages to (`sent`) or from a rank: neighbours compare what they have in common.
CallStamp stamp_between(CallStamp stamp, const Plan& plan, int rank, bool sent);

/// "allreduce of 1000 elements (sum)", for a stamp that came from another rank.
std::string describe_call(const CallStamp& stamp);

}  // namespace uzip
