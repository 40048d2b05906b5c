// NCCL's collectives and messages, to compare with for memory of a GPU. NCCL is opened at run time, and what is needed
// of its stable interface is declared here, so programs are built and start without it.
#pragma once

#include "peer.hpp"

#include <memory>

namespace perf {

struct NcclApi;

/// NCCL's library, its communicator of all ranks, and a stream.
class NcclJob {
 public:
  explicit NcclJob(const World& world);
  ~NcclJob();
  NcclJob(const NcclJob&) = delete;
  NcclJob& operator=(const NcclJob&) = delete;
  const NcclApi& api() const { return *api_; }

 private:
  std::unique_ptr<NcclApi> api_;
};

/// Collective. Throws SharedFailure if a rank has no usable NCCL or no GPU, or shares its GPU with another rank.
std::unique_ptr<NcclJob> make_nccl_job(const World& world);

/// For buffers in memory of a GPU.
std::unique_ptr<Peer> make_nccl_peer(const NcclJob& job, const Case& bench);

}  // namespace perf
