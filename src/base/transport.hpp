// The transport contract: messages between the processes of one job. Implemented by src/ucx and by the
// in-process loopback of the tests; used by src/comm only. A transport knows bytes and processes, nothing of
// ranks of sub-communicators, collectives or frames.
//
// A message is a small fixed head, delivered with the announcement, and a body of any length (also zero) that
// the receiver takes into a buffer of its choice after having looked at the head. So nothing is written
// before the receiver has checked what arrives, and matching is the receiver's own business.
#pragma once

#include "base/completion.hpp"
#include "base/status.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace uzip {

/// Largest head of a message in bytes.
inline constexpr size_t kMaxHeadBytes = 128;

/// A message that has been announced and not yet received or discarded. Movable by plain copy; whoever
/// holds it owes the transport exactly one receive() or discard().
struct Incoming {
  int peer = -1;                      ///< the process that sent it
  uint32_t head_bytes = 0;            ///< <= kMaxHeadBytes
  size_t body_bytes = 0;              ///< as announced by the sender: not trusted, compare before use
  const std::byte* head = nullptr;    ///< valid during on_message() only
  const std::byte* body = nullptr;    ///< the whole body if it is already in this process's memory, else null;
                                      ///< valid until receive() or discard(), if `handle` is set,
                                      ///< else during on_message() only
  void* handle = nullptr;             ///< the transport's
};

/// Where a transport delivers. Called from inside Transport::progress() only.
class TransportSink {
 public:
  /// A message has arrived. Returns true if it keeps it: it then owes a receive() or discard() (which it may
  /// also do during the call). False: it is dropped.
  virtual bool on_message(Incoming& message) = 0;
  /// `peer` died or became unreachable; called once for each. Pending operations with it complete with an
  /// error, except those that can't be cancelled safely (their buffers stay in use until the transport ends).
  virtual void on_peer_failed(int peer, const Status& why) = 0;

 protected:
  ~TransportSink() = default;
};

/// Facts for choosing algorithms; equal on all ranks unless said otherwise.
struct TransportInfo {
  std::string description;  ///< for people: "ucx 1.13.1: posix, cma, tcp"
  bool all_same_host = false;  ///< every pair of processes shares memory, and uses it
  std::vector<int> hosts;      ///< by process; equal numbers: the two share memory, and use it. Empty: not known
  bool peer_reads = false;     ///< processes of one host read long bodies from each other's memory
  int processes_here = 1;      ///< processes of the job on this host; may differ between hosts
};

/// What becomes of a body where it arrives: a hint for choosing its way.
enum class BodyUse : uint8_t {
  kAny,
  kMoved,  ///< it goes to where it belongs, and reading the sender's memory is likely to be the cheapest way
};

/// Where a sender wants its body, too, in memory of this process that overlaps neither the body nor other bodies. A transport that
/// copies the body while it sends may write there at the same time, so that it is read once.
struct SecondCopy {
  std::byte* to = nullptr;
  bool streams = false;  ///< past the caches: see copy_past_caches()
  bool made = false;     ///< set by the transport before send() returns; else the sender copies by itself
};

/// What a transport may make use of when it chooses a body's way.
struct SendHints {
  BodyUse use = BodyUse::kAny;
  /// Processes that this very body is sent to, one after the other, with nothing written to it in between; 0: one of
  /// these sends, but not the first.
  uint32_t receivers = 1;
  SecondCopy* second = nullptr;  ///< null: none is wanted
};

class Transport {
 public:
  virtual ~Transport() = default;

  /// Where messages go; set once, before the first progress(). Borrowed.
  virtual void set_sink(TransportSink* sink) = 0;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const TransportInfo& info() const = 0;

  /// Sends head and body to `peer`. The head is copied before the call returns; the body must stay valid and
  /// unchanged until the operation has completed (kDone, or the Completion). A completed send need not have
  /// been received. Messages of one process to another are announced in the order of sending.
  virtual Result<Progress> send(int peer, std::span<const std::byte> head,
                                std::span<const std::byte> body, Completion* completion,
                                const SendHints& hints) = 0;

  /// Takes the body of an announced message into `dst` (dst.size() >= message.body_bytes, checked) and ends
  /// the message's life, also on error.
  virtual Result<Progress> receive(Incoming& message, std::span<std::byte> dst,
                                   Completion* completion) = 0;

  /// Ends the message's life without taking its body; the sender's send completes all the same.
  virtual void discard(Incoming& message) = 0;

  /// Takes the next message from `peer`, without announcing it, if it is here already and has just this head and a
  /// body of body.size() bytes, which is copied into `body`. False: nothing was taken or written; the message, if there
  /// is one, is announced as usual. A transport need not be able to.
  virtual bool take_expected(int /*peer*/, std::span<const std::byte> /*head*/, std::span<std::byte> /*body*/) {
    return false;
  }

  /// Moves everything forward that can move without waiting; true if anything did.
  virtual bool progress() = 0;

  /// Sleeps until there may be something to progress, or for `limit` at most. May return early.
  virtual void wait(std::chrono::milliseconds limit) = 0;

  /// True when every peer that has not failed has received all that was sent to it (as far as the network
  /// can tell). Nonblocking: call with progress() in between. For leaving without harming the others.
  virtual bool flushed() = 0;
};

}  // namespace uzip
