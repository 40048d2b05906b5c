// A short message between two ranks without a schedule in execution: one frame of elements as they are. It replaces the
// schedule of such a message bit by bit, so that its two ends may go about it differently; what it saves is the bookkeeping of
// steps. Used by Request, as DirectExchange is for small collectives.
#pragma once

#include "base/transport.hpp"
#include "codec/frame.hpp"
#include "comm/message_head.hpp"
#include "comm/plan.hpp"

#include <cstddef>
#include <cstdint>

namespace uzip {

class Request;

class DirectMessage {
 public:
  explicit DirectMessage(Request& request);
  DirectMessage(const DirectMessage&) = delete;
  DirectMessage& operator=(const DirectMessage&) = delete;

  /// Whether a plan's calls can be done so.
  static bool suits(const Plan& plan);

  /// Sends, if the call is a send; a receive takes from now on what is delivered to it. Request::on_exchanged() is called at
  /// the end.
  void start();
  /// Whether poll() may find something: the message of a receive has not come, and is short.
  bool expects() const { return state_ == State::kReceives && polls_; }
  /// Takes the message if it has come, is the receive's, and just as the receive expects it, without the way through
  /// on_message().
  bool poll();
  /// True if taken; false if it is not expected. The message has been matched and compared with the call already.
  bool on_message(Incoming& incoming, const FrameHeader& frame);

  /// Gives up; what is pending stays pending.
  void abandon() { state_ = State::kIdle; }
  uint32_t pending() const { return pending_; }

 private:
  enum class State : uint8_t { kIdle, kSends, kReceives, kTakes };
  struct End : Completion {
    DirectMessage* message = nullptr;
  };

  void settle(const Result<Progress>& result);
  void finish();
  static void on_completion(Completion* self, const Status& status);

  Request& request_;
  End end_;
  MessageHead expected_;  ///< of the message that a receive polls for, if it is the sender's next
  State state_ = State::kIdle;
  bool polls_ = false;
  uint32_t pending_ = 0;
};

}  // namespace uzip
