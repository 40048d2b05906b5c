// Which reductions may take an operand from where the transport has it, instead of from a copy in scratch. Used by the
// schedule cache and by rounds.
#pragma once

#include "algos/schedule.hpp"

#include <cstdint>
#include <vector>

namespace uzip {

inline constexpr uint32_t kNoLender = UINT32_MAX;

struct LentOperands {
  std::vector<bool> lends;  ///< by step: a receive whose elements one reduction reads, and no other step. Empty: none
  std::vector<std::vector<uint32_t>> lenders;  ///< by step: for each source of a reduction such a receive, or kNoLender;
                                               ///< empty where there is none
};

/// Looks through a schedule whose messages are elements, not frames.
LentOperands find_lent_operands(const Schedule& schedule);

}  // namespace uzip
