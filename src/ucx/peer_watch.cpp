#include "ucx/peer_watch.hpp"

#include <algorithm>
#include <iterator>

#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace uzip {
namespace {

int open_pidfd(pid_t pid) {
#ifdef SYS_pidfd_open
  return static_cast<int>(syscall(SYS_pidfd_open, pid, 0));  // closed on exec
#else
  (void)pid;
  return -1;
#endif
}

}  // namespace

PeerWatch::~PeerWatch() {
  for (const auto& [peer, pidfd] : watched_) close(pidfd);
  if (epoll_ >= 0) close(epoll_);
}

ReadOutcome PeerWatch::add(int peer, const PeerMemory& memory) {
  if (epoll_ < 0) epoll_ = epoll_create1(EPOLL_CLOEXEC);
  // First the descriptor, then the proof: if the process has this id now it is the one that the
  // descriptor means.
  const int pidfd = open_pidfd(memory.pid);
  const ReadOutcome outcome = read_peer_memory(memory, memory.token_address, {});
  if (pidfd < 0) return outcome;
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.fd = peer;
  if (epoll_ < 0 || outcome != ReadOutcome::kDone ||
      epoll_ctl(epoll_, EPOLL_CTL_ADD, pidfd, &event) != 0) {
    close(pidfd);
    return outcome;
  }
  watched_.emplace_back(peer, pidfd);
  return outcome;
}

std::vector<int> PeerWatch::ended() {
  std::vector<int> peers;
  epoll_event events[16];
  int count = 0;
  while (epoll_ >= 0 && (count = epoll_wait(epoll_, events, std::size(events), 0)) > 0) {
    for (int i = 0; i < count; ++i) {
      const int peer = events[i].data.fd;
      const auto entry = std::find_if(watched_.begin(), watched_.end(),
                                      [&](const auto& known) { return known.first == peer; });
      if (entry == watched_.end()) continue;
      // Closing alone would not do: a forked child may have the descriptor as well.
      epoll_ctl(epoll_, EPOLL_CTL_DEL, entry->second, nullptr);
      close(entry->second);
      watched_.erase(entry);
      peers.push_back(peer);
    }
  }
  return peers;
}

}  // namespace uzip
