// Failures of some ranks that must end all of them alike.
#pragma once

#include "failure.hpp"
#include "world.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace perf {

/// Does something that may fail on some ranks only, and lets all of them throw SharedFailure if one
/// does. Collective.
template <typename Action>
void do_together(const World& world, Action&& action) {
  std::string message;
  uint64_t status[] = {0};
  try {
    action();
  } catch (const Failure& failure) {
    message = failure.what();
    status[0] = static_cast<uint64_t>(failure.exit_status());
  }
  const std::vector<uint64_t> statuses = world.gather(status);
  const auto failed = std::ranges::find_if(statuses, [](uint64_t s) { return s != 0; });
  const std::vector<std::string> messages = world.gather(message);
  if (failed == statuses.end()) return;
  const auto rank = static_cast<size_t>(failed - statuses.begin());
  throw SharedFailure(static_cast<int>(*failed),
                      (rank == 0 ? "" : "rank " + std::to_string(rank) + ": ") + messages[rank]);
}

}  // namespace perf
