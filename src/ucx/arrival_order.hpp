// Puts the messages of one process into the order of sending: UCX may let a small one overtake a
// large one that it sends in pieces. Used by UcxTransport only.
#pragma once

#include "ucx/operation.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace uzip {

class ArrivalOrder {
 public:
  enum class Place : uint8_t {
    kNext,   ///< its turn has come; the next number is expected from now on
    kEarly,  ///< others are still missing: to be put aside with keep()
    kPast,   ///< its number was there before
  };

  explicit ArrivalOrder(uint32_t first = 0) : next_(first) {}

  Place place_of(uint32_t sequence) {
    // Numbers wrap. The difference of two that are under way at the same time is small.
    const auto ahead = static_cast<int32_t>(sequence - next_);
    if (ahead == 0) {
      ++next_;
      return Place::kNext;
    }
    return ahead > 0 ? Place::kEarly : Place::kPast;
  }

  /// The number that is expected next.
  uint32_t next() const { return next_; }

  void keep(Arrival* arrival) { early_.push_back(arrival); }

  /// A message that was put aside and whose turn has come, or null.
  Arrival* take_next() {
    const auto found = std::find_if(early_.begin(), early_.end(), [this](const Arrival* arrival) {
      return arrival->sequence == next_;
    });
    if (found == early_.end()) return nullptr;
    Arrival* arrival = *found;
    early_.erase(found);
    ++next_;
    return arrival;
  }

  bool anything_early() const { return !early_.empty(); }
  /// Whether no message has come yet.
  bool at_start() const { return next_ == 0 && early_.empty(); }

 private:
  uint32_t next_;
  std::vector<Arrival*> early_;
};

}  // namespace uzip
