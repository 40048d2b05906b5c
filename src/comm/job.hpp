// Making and ending communicators: the first one of a job creates its engine, the others share it.
#pragma once

#include "comm/bootstrap.hpp"
#include "comm/communicator.hpp"
#include "comm/engine.hpp"

#include <memory>
#include <mutex>

namespace uzip {

/// What a communicator handle stands for. The engine lives as long as one of its communicators, or a request.
struct CommunicatorHandle {
  std::shared_ptr<Engine> engine;
  std::unique_ptr<Communicator> comm;
  uint32_t number = 0;
};

/// A communicator with all processes of `bootstrap`, over UCX. Collective.
Result<CommunicatorHandle> create_world(Bootstrap& bootstrap, const Config& config);

/// The same over any transport (tests).
Result<CommunicatorHandle> create_world(std::shared_ptr<Engine> engine);

/// Partition of a communicator: this process's part, or one without `comm` for color < 0. Collective.
Result<CommunicatorHandle> split(CommunicatorHandle& parent, int color, int key);

/// A collective of the library's own on bytes; and how one is run to its end, in `limit` seconds at most (0: no limit).
uzip_coll_args_t internal_call(uzip_coll_t coll, const void* src, void* dst, size_t bytes);
Status run_internal(CommunicatorHandle& handle, const uzip_coll_args_t& call, double limit);

/// Leaves: waits for the others (unless one failed), then frees. Collective.
void leave(CommunicatorHandle& handle);

}  // namespace uzip
