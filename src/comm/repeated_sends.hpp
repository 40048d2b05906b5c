// Which sends of a schedule have the same body, so that a transport may make one copy of it for all. Used by the schedule cache.
#pragma once

#include "algos/schedule.hpp"

#include <cstdint>
#include <vector>

namespace uzip {

/// By step: of a send, SendHints::receivers. Sends share a body if they follow each other, read the same place and wait for the
/// same steps: they start together then, in their order, and no step that writes to the place comes between.
std::vector<uint32_t> count_receivers(const Schedule& schedule);

}  // namespace uzip
