#include "ucx/peer_memory.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>

#include <sys/random.h>
#include <sys/uio.h>

namespace uzip {
namespace {

// The kernel moves at most 2 GiB less a page in one call.
constexpr size_t kMaxBytesPerCall = size_t{1} << 30;
// Longer reads don't feel the token, and may take so long that an earlier proof no longer holds at their end.
constexpr size_t kMostWithoutToken = size_t{64} << 10;

ReadOutcome outcome_of(int error_number) {
  switch (error_number) {
    case ESRCH:
      return ReadOutcome::kGone;
    case EFAULT:
      return ReadOutcome::kUnreadable;
    default:  // EPERM, ENOSYS (not built in, or a seccomp filter), EINVAL, ENOMEM
      return ReadOutcome::kForbidden;
  }
}

}  // namespace

MemoryToken make_memory_token() {
  MemoryToken token;
  if (getrandom(token.data(), token.size(), 0) == static_cast<ssize_t>(token.size())) return token;
  std::random_device device;
  for (std::byte& b : token) b = static_cast<std::byte>(device());
  return token;
}

ReadOutcome read_peer_memory(const PeerMemory& peer, uint64_t address,
                             std::span<std::byte> destination) {
  if (peer.pid <= 0) return ReadOutcome::kForbidden;
  if (destination.size() > UINTPTR_MAX - address) return ReadOutcome::kUnreadable;
  do {
    const size_t bytes = std::min(destination.size(), kMaxBytesPerCall);
    MemoryToken token{};
    iovec local[2] = {{token.data(), token.size()}, {destination.data(), bytes}};
    iovec remote[2] = {{reinterpret_cast<void*>(peer.token_address), token.size()},
                       {reinterpret_cast<void*>(address), bytes}};
    const ssize_t moved = process_vm_readv(peer.pid, local, 2, remote, 2, 0);
    if (moved < 0) {
      if (errno == EINTR) continue;
      return outcome_of(errno);
    }
    // A short answer ends where a page can't be read; if the token isn't there it is another
    // process.
    if (static_cast<size_t>(moved) < token.size() || token != peer.token) return ReadOutcome::kGone;
    const size_t copied = static_cast<size_t>(moved) - token.size();
    if (copied == 0 && bytes > 0) return ReadOutcome::kUnreadable;
    destination = destination.subspan(copied);
    address += copied;
  } while (!destination.empty());
  return ReadOutcome::kDone;
}

ReadOutcome PeerReader::read(const PeerMemory& peer, uint64_t address, std::span<std::byte> destination) {
  constexpr std::chrono::microseconds kProofHolds{200};
  const Clock::time_point begin = Clock::now();
  if (begin - proven_ < kProofHolds && destination.size() <= kMostWithoutToken) {
    const iovec local = {destination.data(), destination.size()};
    const iovec remote = {reinterpret_cast<void*>(address), destination.size()};
    const ssize_t moved = process_vm_readv(peer.pid, &local, 1, &remote, 1, 0);
    const bool complete = moved >= 0 && static_cast<size_t>(moved) == destination.size();
    if (complete && Clock::now() - proven_ < kProofHolds) return ReadOutcome::kDone;
  }
  const ReadOutcome outcome = read_peer_memory(peer, address, destination);
  if (outcome == ReadOutcome::kDone) proven_ = begin;
  return outcome;
}

}  // namespace uzip
