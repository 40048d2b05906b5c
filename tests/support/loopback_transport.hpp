// A transport between ranks of one process, for tests of what stands above it: the same seed and
// the same calls give the same run. It delays, reorders, damages and fails on request, and poisons
// memory that its users should not look at.
//
// Usage: one LoopbackFabric, one connect() for each rank, then progress() of the ranks in turn from
// one thread (or each from its own thread; the run is not repeatable then).
#pragma once

#include "base/transport.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace uzip {

struct LoopbackOptions {
  uint64_t seed = 1;

  /// A message is announced after a random number of the receiver's progress() calls, at most this.
  int longest_delay = 0;
  /// Messages of different senders may overtake one another.
  bool reorder_senders = false;
  /// Also messages of one sender: this breaks the contract, for receivers that number their
  /// messages.
  bool reorder_messages = false;

  /// Bodies up to this size are copied by send(), which is done then; others stay with the sender
  /// until received.
  size_t eager_limit = SIZE_MAX;
  /// Incoming::body of copied bodies: whole, or null.
  bool expose_bodies = true;
  /// receive() returns kPending: the body arrives in a later progress(), and the destination is
  /// garbage until then.
  bool slow_receives = false;
  /// send() of copied bodies returns kPending as well, and completes in a later progress().
  bool slow_sends = false;
  /// send() makes the second copy that is wanted (SendHints).
  bool second_copies = false;
  /// Draws the five above (eager if it fits) for each message anew.
  bool random_modes = false;
  /// Transport::take_expected() takes copied bodies that are due, if messages of one sender keep their order.
  bool take_expected = true;

  /// Called for each message that is sent, with copies that it may change: shorten, lengthen, flip
  /// bits.
  std::function<void(int from, int to, std::vector<std::byte>& head, std::vector<std::byte>& body)>
      tamper = nullptr;

  /// A death is noticed after this number of a survivor's progress() calls.
  int notice_delay = 0;
  /// Receives that have started when the sender dies stay pending for ever.
  bool park_receives_of_dead = false;

  bool all_same_host = true;
  std::vector<int> hosts{};
};

class LoopbackFabric {
 public:
  explicit LoopbackFabric(int size, LoopbackOptions options = {});
  ~LoopbackFabric();

  /// The endpoint of `rank`; once for each. It keeps what it needs of the fabric alive.
  std::unique_ptr<Transport> connect(int rank);

  /// The process dies: what it sent and was not yet announced may be lost, the others are told.
  void kill(int rank);
  /// The same when the fabric's steps() reach `step`.
  void kill_at(int rank, uint64_t step);
  /// The n-th send (from 0, counted from now) from one rank to another returns `failure`.
  void fail_send(int from, int to, uint64_t n, Status failure);

  /// Calls of progress() of all ranks so far.
  uint64_t steps() const;
  /// Messages that were sent and neither received nor discarded.
  size_t unfinished() const;

  struct Core;

 private:
  std::shared_ptr<Core> core_;
};

}  // namespace uzip
