// Reading the memory of another process of this host with process_vm_readv(2). Used by
// UcxTransport.
//
// Nothing about the other process is assumed: reads also fetch a token that the other process keeps
// at an address it has told us. So a process id that means somebody else here (another pid namespace,
// another host, a process that has ended and its id been given away) is found out before any byte is
// believed.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

#include <sys/types.h>

namespace uzip {

/// A random number that says "it is still me".
using MemoryToken = std::array<std::byte, 16>;

/// A token that no other process has.
MemoryToken make_memory_token();

struct PeerMemory {
  pid_t pid = -1;
  uint64_t token_address = 0;
  MemoryToken token{};
};

enum class ReadOutcome : uint8_t {
  kDone,        ///< all bytes are there
  kGone,        ///< no such process, or another one by now
  kForbidden,   ///< the kernel doesn't let us read that process, or doesn't know how
  kUnreadable,  ///< that range can't be read, or the destination not be written
};

/// Copies destination.size() bytes from `address` in the other process. Blocks while the bytes are
/// copied. Unless kDone the destination's contents are unspecified.
ReadOutcome read_peer_memory(const PeerMemory& peer, uint64_t address,
                             std::span<std::byte> destination);

/// Reads the memory of one other process again and again. The token costs as much as 4 KiB, and is left out of short reads where
/// it was there less than 0.2 milliseconds before the read has ended: in that time no process ends, and its id goes around all
/// others and is given to a new one.
class PeerReader {
 public:
  /// As read_peer_memory(), always with the same `peer`.
  ReadOutcome read(const PeerMemory& peer, uint64_t address, std::span<std::byte> destination);

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point proven_{};  ///< before the last read with the token
};

}  // namespace uzip
