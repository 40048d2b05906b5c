// How the ranks of one call agree whether their GPUs carry it out among themselves (GpuPeers). A rank that can't, or has
// its buffers elsewhere, goes on at once and says no to whoever votes; those that vote wait until all others have answered,
// and come to the same end. docs/MESSAGES.md. Used by Request.
#pragma once

#include "base/transport.hpp"
#include "gpu/peer_plugin.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace uzip {

class Request;

/// What a rank says. The number of the message; 0 is an inquiry, which has the same place.
enum class Ballot : uint8_t {
  kNone = 0,
  kNo = 1,
  kReady = 2,   ///< all have opened the others' memory
  kOffer = 3,   ///< not yet, as far as is known here; the body is the handle of this rank's own
  kOpened = 4,  ///< after all have offered: it is open to this rank
  kFailed = 5,  ///< or can't be
  kPlain = 6,   ///< kReady, and the call is not to be coded: calls like it have not shrunk at this rank
};

class GpuVote {
 public:
  explicit GpuVote(Request& request) : request_(request) {}
  GpuVote(const GpuVote&) = delete;
  GpuVote& operator=(const GpuVote&) = delete;

  /// Begins anew, with what this rank says of the next call to `size` ranks.
  void prepare(Ballot mine, int size);
  /// Whether this rank votes: it said something else than no.
  bool votes() const { return mine_ > Ballot::kNo; }
  /// Of a vote that ended with yes: some rank wants the call not to be coded. The same on all ranks.
  bool wants_plain() const { return wants_plain_; }
  /// Tells the others. Request::on_voted() is called, perhaps at once, when it is decided.
  void start();
  /// A message about the call, which has been compared with it already. True if its body was taken.
  bool on_message(Incoming& incoming, int source, uint32_t number);
  /// Gives up; what is pending stays pending.
  void abandon() { decided_ = true; }
  bool active() const { return votes() && !decided_; }
  uint32_t pending() const { return pending_; }
  void waits_for(std::vector<bool>& ranks) const;

 private:
  struct Voter {
    Completion handle_here;  ///< its first member
    GpuVote* vote = nullptr;
    Ballot first = Ballot::kNone, second = Ballot::kNone;  ///< the second: kOpened or kFailed
    bool arriving = false;                                 ///< the handle
  };
  static void on_handle(Completion* self, const Status& status);
  bool take_handle(Incoming& incoming, int source);
  void tell_all(Ballot ballot);
  void decide();
  void end(bool yes);

  Request& request_;
  Ballot mine_ = Ballot::kNo;
  bool decided_ = true;
  bool wants_plain_ = false;
  uint32_t pending_ = 0;
  std::vector<Voter> voters_;  ///< by rank
  std::vector<gpu::PeerHandle> handles_;
};

}  // namespace uzip
