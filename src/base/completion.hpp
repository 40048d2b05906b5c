// How operations that may take longer than their call report back. Shared by the transport and the executor.
#pragma once

#include "base/status.hpp"

#include <cstdint>

namespace uzip {

/// Called, from inside progress(), when an operation that did not finish at once has finished. Embedded in the
/// caller's own state; must stay at its address until it was called.
struct Completion {
  void (*done)(Completion* self, const Status& status) = nullptr;
};

/// Whether an operation finished before its call returned (its Completion is then not called).
enum class Progress : uint8_t { kDone, kPending };

}  // namespace uzip
