// Which elements a rank sends and copies to another place of its own as well, so that a transport may do both at once. Used by the
// schedule cache and by rounds.
#pragma once

#include "algos/schedule.hpp"

#include <cstdint>
#include <vector>

namespace uzip {

inline constexpr uint32_t kNoCopy = UINT32_MAX;

/// By step: of a send, the copy of the very same elements, or kNoCopy. Empty if there is none. Whether the copy may be made when
/// the send starts is for their dependencies to say.
std::vector<uint32_t> find_copies_of_bodies(const Schedule& schedule);

}  // namespace uzip
