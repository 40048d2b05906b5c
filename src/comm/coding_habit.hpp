// Whether the next frame of a call is worth an attempt to code it. Finding out that data do not compress costs a sample of
// each frame, which on a fast network is too much for nothing; so after some frames in a row that did not, some go as they
// are, untried. Used by Round, one for each request.
#pragma once

#include <algorithm>

namespace uzip {

class CodingHabit {
 public:
  /// To be asked once for each frame, in the order in which they are coded: true, send it as it is.
  bool skips() {
    if (to_skip_ == 0) return false;
    --to_skip_;
    return true;
  }

  /// An attempt ended. After 2, 3, 4 and more in a row that were in vain, 1, 3, 7 frames are skipped before the next.
  void tried(bool in_vain) {
    in_vain_ = in_vain ? std::min(in_vain_ + 1, kMostInVain) : 0;
    to_skip_ = in_vain_ > 0 ? (1 << (in_vain_ - 1)) - 1 : 0;
  }

 private:
  static constexpr int kMostInVain = 4;
  int in_vain_ = 0;  ///< attempts in a row
  int to_skip_ = 0;
};

}  // namespace uzip
