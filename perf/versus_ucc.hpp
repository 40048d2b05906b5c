// UCC's collectives, to compare with. UCC is opened at run time, so programs that can use it also start
// where it is not installed; they are built for it where its header is found.
#pragma once

#include "peer.hpp"

#include <memory>

namespace perf {

struct UccApi;

/// UCC's library, context and team for all ranks.
class UccJob {
 public:
  explicit UccJob(const World& world);
  ~UccJob();
  UccJob(const UccJob&) = delete;
  UccJob& operator=(const UccJob&) = delete;
  const UccApi& api() const { return *api_; }

 private:
  std::unique_ptr<UccApi> api_;
};

/// Collective. Throws SharedFailure if a rank has no usable UCC.
std::unique_ptr<UccJob> make_ucc_job(const World& world);

/// nullptr if UCC has no such operation.
std::unique_ptr<Peer> make_ucc_peer(const UccJob& job, const Case& bench);

}  // namespace perf
