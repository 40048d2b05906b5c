// A small all-reduce without a schedule in execution: everybody sends its elements to everybody and reduces them in
// rank order. It replaces the whole schedule of the algorithm one_shot, message by message and bit by bit (so ranks
// may mix the two); what it saves is the bookkeeping of steps, which costs more than the elements do.
#pragma once

#include "base/transport.hpp"
#include "codec/frame.hpp"
#include "comm/plan.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace uzip {

class Request;

class DirectExchange {
 public:
  explicit DirectExchange(Request& request) : request_(request) {}
  DirectExchange(const DirectExchange&) = delete;
  DirectExchange& operator=(const DirectExchange&) = delete;

  /// Whether a plan's calls can be done so.
  static bool suits(const Plan& plan);

  /// Makes room for so many ranks; start() does it as well.
  void reserve(size_t size);

  /// Sends this rank's elements. The result is complete, and Request::on_exchanged() called, when all have come.
  void start();
  bool active() const { return missing_ > 0; }

  /// True if taken; false if it is not expected. The message has been compared with the call already.
  bool on_message(Incoming& incoming, const FrameHeader& frame, int source);

  /// Gives up; what is pending stays pending.
  void abandon() { missing_ = 0; }
  uint32_t pending() const { return pending_; }
  void waits_for(std::vector<bool>& ranks) const;

 private:
  struct Operand {
    Completion completion;
    DirectExchange* exchange = nullptr;
    bool arrived = false;
  };

  void finish();
  std::byte* operand(size_t rank) { return memory_.data() + rank * bytes_; }
  static void on_completion(Completion* self, const Status& status);

  Request& request_;
  std::vector<std::byte> memory_;     ///< the operands of all ranks
  std::vector<Operand> sends_, receives_;
  std::vector<const void*> sources_;
  size_t bytes_ = 0;                  ///< of one operand
  uint32_t missing_ = 0;              ///< operands, and sends, that are not done
  uint32_t pending_ = 0;
};

}  // namespace uzip
