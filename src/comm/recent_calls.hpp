// The last small calls of a communicator as the program made them: who makes one again, with other buffers perhaps, need
// not have it validated and planned again. Used for the blocking calls of the C API.
#pragma once

#include "comm/coll_args.hpp"
#include "comm/schedule_cache.hpp"

#include <uzipcoll/uzipcoll.h>

#include <array>
#include <cstddef>
#include <memory>

namespace uzip {

class RecentCalls {
 public:
  struct Call {
    uzip_coll_args_t user{};  ///< as it was made; its pointers are not followed any more
    CollArgs args;            ///< as it was validated
    std::shared_ptr<PreparedPlan> plan;
    bool one_buffer = false;  ///< the source is in the destination, or there is none; else two that don't overlap
  };

  /// Keeps a call that was valid and has been planned, if another one like it is worth finding: done without a schedule,
  /// without options, on the host.
  void keep(const uzip_coll_args_t& user, const CollArgs& args, const std::shared_ptr<PreparedPlan>& plan);

  /// The call that this one repeats, valid because that one was; null if there is none. Its buffers are this one's own:
  /// see with_buffers_of().
  const Call* find(const uzip_coll_args_t& user) const;
  static CollArgs with_buffers_of(const uzip_coll_args_t& user, const Call& call);

  /// Plans made from now on may differ.
  void forget() { calls_ = {}; }

 private:
  std::array<Call, 4> calls_;
  size_t next_ = 0;  ///< to be replaced next
};

}  // namespace uzip
