// Notices the end of other processes of this host at once, through pidfds. Used by UcxTransport.
//
// UCX finds a dead peer of shared memory only among those that it has an endpoint to, only by and
// by, and not as long as the peer's parent has not collected its exit status.
#pragma once

#include "ucx/peer_memory.hpp"

#include <utility>
#include <vector>

namespace uzip {

class PeerWatch {
 public:
  PeerWatch() = default;
  ~PeerWatch();
  PeerWatch(const PeerWatch&) = delete;
  PeerWatch& operator=(const PeerWatch&) = delete;

  /// Watches the process if it is certainly the one that `memory` describes: it must be readable.
  /// The outcome is that of reading it. Where the kernel has no pidfds, or too many files are open,
  /// nothing is watched.
  ReadOutcome add(int peer, const PeerMemory& memory);

  /// Readable once a watched process has ended; -1 if nothing is watched.
  int descriptor() const { return epoll_; }

  /// The peers that have ended since the last call; they are not watched any more.
  std::vector<int> ended();

 private:
  int epoll_ = -1;
  std::vector<std::pair<int, int>> watched_;  ///< peer, pidfd
};

}  // namespace uzip
