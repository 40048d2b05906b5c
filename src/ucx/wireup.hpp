// What each process tells all others, out of band, before they can talk over UCX. Used by
// UcxTransport.
#pragma once

#include "base/status.hpp"
#include "ucx/local_queue.hpp"
#include "ucx/peer_memory.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace uzip {

/// Equal for processes that can share memory and see one another by process id.
struct HostIdentity {
  std::array<std::byte, 16> boot{};  ///< this start of this kernel
  uint64_t pid_namespace = 0;
  uint64_t ipc_namespace = 0;
  uint64_t user_namespace = 0;

  bool operator==(const HostIdentity&) const = default;
};

/// Of this process. What can't be found out is random, so that it is equal to nobody's.
HostIdentity host_identity();

/// One process as the others know it.
struct WireupRecord {
  HostIdentity host;
  PeerMemory memory;
  InboxAddress inbox;
  bool peer_read = false;          ///< it reads others' memory, if it may
  bool shared_memory = false;      ///< it may talk over shared memory
  std::vector<std::byte> address;  ///< of its UCX worker
};

std::vector<std::byte> pack_wireup(const WireupRecord& record);

/// `process` is whose record it should be, for messages.
Result<WireupRecord> unpack_wireup(std::span<const std::byte> bytes, int process);

}  // namespace uzip
