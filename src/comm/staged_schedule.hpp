// The pass for buffers that the transport can't reach: elements leave and arrive by way of wire places.
#pragma once

#include "algos/schedule.hpp"

namespace uzip {

/// Gives every message of elements that is not in a wire place yet a place of its own, with an encode step in front of
/// a send and a decode step behind a receive; their frames are raw. The new places follow those that were there.
Schedule stage_messages(const Schedule& schedule, const Shape& shape, int rank);

}  // namespace uzip
