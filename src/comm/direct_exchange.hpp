// A small collective of one hop without a schedule in execution: everybody sends its elements to all who need them and, if it
// is a reduction, reduces what came in rank order. It replaces the whole schedule of an algorithm, message by message and bit
// by bit (so ranks may mix the two); what it saves is the bookkeeping of steps, which costs more than the elements do.
#pragma once

#include "base/transport.hpp"
#include "codec/frame.hpp"
#include "comm/message_head.hpp"
#include "comm/plan.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace uzip {

class Request;

/// Messages that Transport::take_expected() is worth being asked for.
inline constexpr size_t kMostPolledBytes = 16 * 1024;

class DirectExchange {
 public:
  explicit DirectExchange(Request& request) : request_(request) {}
  DirectExchange(const DirectExchange&) = delete;
  DirectExchange& operator=(const DirectExchange&) = delete;

  /// Whether a plan's calls can be done so: those of an algorithm of one hop, and a barrier between two.
  static bool suits(const Plan& plan);

  /// Makes room for calls of this plan; start() does it as well.
  void reserve(const Plan& plan);

  /// Sends this rank's elements. The result is complete, and Request::on_exchanged() called, when all have come.
  void start();
  /// Whether poll() may find something: what is longer comes by other ways.
  bool expects() const { return missing_ > 0 && bytes_ <= kMostPolledBytes; }

  /// Called when nothing has moved: does what need not be done earlier. False if there is nothing.
  bool work_while_idle();

  /// Takes what has come already and is just what the call expects, without the way through on_message(). True if
  /// there was something.
  bool poll();

  /// True if taken; false if it is not expected. The message has been compared with the call already.
  bool on_message(Incoming& incoming, const FrameHeader& frame, int source);

  /// Gives up; what is pending stays pending.
  void abandon() { missing_ = 0; }
  uint32_t pending() const { return pending_; }
  void waits_for(std::vector<bool>& ranks) const;

 private:
  /// What tells one collective from another.
  struct Way {
    bool reduces = false;   ///< else messages go to their places in the result
    bool scatters = false;  ///< each rank gets another part of the source
    bool gathers = false;   ///< what comes from each rank has a place of its own
    bool from_root = false, to_root = false;  ///< only the root sends, or receives
  };
  static Way way_of(CallKind kind);

  struct Operand {
    Completion completion;
    DirectExchange* exchange = nullptr;
    bool over = false;  ///< sent, or on its way to where it belongs; or there is no such message
  };

  void make_room(size_t ranks, size_t bytes);
  bool sends_to(size_t rank) const;
  bool receives_from(size_t rank) const;
  Status send_all();
  void copy_own();
  void finish();
  /// What goes to a rank, and where what comes from it belongs; of this rank itself, its own part of both.
  const std::byte* sent_to(size_t rank) const;
  std::byte* place_of(size_t rank);
  static void on_completion(Completion* self, const Status& status);

  Request& request_;
  std::vector<std::byte> memory_;     ///< the others' operands of a reduction, by rank
  std::vector<Operand> sends_, receives_;
  std::vector<const void*> sources_;
  MessageHead head_;                  ///< of the messages of the call, to be readdressed
  size_t bytes_ = 0;                  ///< of one message
  size_t ranks_ = 0, rank_ = 0, root_ = 0;
  Way way_;
  bool copied_ = false;               ///< this rank's elements are where they belong
  int idle_turns_ = 0;                ///< since the call began
  uint32_t missing_ = 0;              ///< operands, and sends, that are not done
  uint32_t pending_ = 0;
};

}  // namespace uzip
