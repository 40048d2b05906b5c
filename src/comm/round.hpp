// One round of an request in execution: a prepared schedule bound to buffers. Starts steps when their
// dependencies are done and retires them; knows frames, but neither matching nor deadlines.
#pragma once

#include "base/executor.hpp"
#include "base/transport.hpp"
#include "comm/message_head.hpp"
#include "comm/round_memory.hpp"
#include "comm/schedule_cache.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace uzip {

class Request;

class Round {
 public:
  explicit Round(Request& request) : request_(request) {}
  Round(const Round&) = delete;
  Round& operator=(const Round&) = delete;

  /// Makes room for this schedule, too, until unreserve(): starting it will allocate nothing.
  Status reserve(const PreparedSchedule& schedule);
  void unreserve();

  /// Binds the schedule to the request's buffers and starts all steps that can start. When it returns the
  /// round may have finished (Request::on_round_finished was called) or failed (Request::fail was).
  void start(std::shared_ptr<const PreparedSchedule> schedule, uint32_t number);

  /// A message of this round from `source`. True: taken or kept; false: there is no receive for it.
  bool on_message(Incoming& incoming, const FrameHeader& frame, int source, uint32_t message);

  /// Executes one of the steps that are too long for inside a callback. False if there are none.
  bool run_one();

  /// Gives up: nothing is started any more, kept messages are discarded.
  void abandon();

  /// Whether it has memory for this schedule already.
  bool has_memory_for(const PreparedSchedule& schedule) const { return memory_.suffices(schedule); }
  bool active() const { return schedule_ != nullptr; }
  uint32_t number() const { return number_; }
  /// Operations of transport and executor that have not completed yet: their memory must stay.
  uint32_t pending() const { return pending_; }
  /// Ranks that this round waits for: a message has not come, or has not been taken.
  void waits_for(std::vector<bool>& ranks) const;

 private:
  struct StepState {
    Completion completion;
    Round* round = nullptr;
    uint32_t step = 0;
    uint32_t waiting = 0;      ///< dependencies not done
    bool started = false;
    bool done = false;
    bool has_message = false;  ///< `incoming` and `frame` hold the message of this receive
    bool copied = false;       ///< a copy that the transport made while it sent the same elements
    bool lent = false;         ///< a receive that is over, whose message a reduction will read and end
    Incoming incoming;
    FrameHeader frame;
  };
  struct WireState {
    FrameHeader header;
    const std::byte* raw = nullptr;  ///< encoding was abandoned: the frame's body is the elements here
    bool untried = false;            ///< it was not even tried
    bool has_part = false;           ///< received: one of two parts, whose plain_bytes are in the header
    bool decoded = false;            ///< received: raw, and taken to where its elements belong
    int peer = -1;                   ///< received: from whom
  };

  void put_memory();
  void make_ready(uint32_t step);
  void drain();
  void execute(uint32_t step);
  void finish(uint32_t step);
  void retire(uint32_t step);
  void settle(uint32_t step, const Result<Progress>& result);
  void fail(uint32_t step, const Status& status);
  static void on_completion(Completion* self, const Status& status);

  Result<Progress> send(const Step& step, StepState& state);
  StepState* copy_to_be_made(const StepState& send);
  Result<Progress> receive(const Step& step, StepState& state);
  std::byte* destination_of_raw(const Step& step, const StepState& state) const;
  bool may_lend(const StepState& state) const;
  bool goes_past_caches(const StepState& state) const;
  Result<Progress> encode(const Step& step, StepState& state);
  void on_encoded(const Step& step);
  Result<Progress> decode(const Step& step, StepState& state);
  Result<Progress> copy(const Step& step, StepState& state);
  Result<Progress> reduce(const Step& step, StepState& state);
  void end_loans(uint32_t reduction);
  Result<Progress> decode_reduce(const Step& step, StepState& state);
  /// The frame at a wire place, to be decoded anywhere.
  DecodeTask frame_at(size_t place) const;
  Status check_frame(const Step& step, const FrameHeader& frame, size_t body_bytes) const;

  std::byte* address(const Slice& slice) const;
  std::span<const std::byte> bytes_at(const Slice& slice) const;
  std::byte* wire_memory(size_t place, Part part) const;
  DevicePlace device_place(size_t place) const;

  Request& request_;
  std::shared_ptr<const PreparedSchedule> schedule_;
  uint32_t number_ = 0;
  std::byte* input_ = nullptr;   ///< of this round's part of the caller's buffer; null if that is in blocks
  std::byte* output_ = nullptr;
  RoundMemory memory_;           ///< kept between rounds if reserved_
  bool reserved_ = false;
  std::vector<StepState> steps_;
  std::vector<WireState> wires_;
  std::vector<uint32_t> ready_;   ///< stack of steps to be started now
  std::vector<uint32_t> queue_;   ///< long steps, first in first out from queue_head_
  size_t queue_head_ = 0;
  std::vector<const void*> source_pointers_;
  uint32_t left_ = 0;
  uint32_t pending_ = 0;
  bool draining_ = false;
  bool dead_ = false;
};

}  // namespace uzip
