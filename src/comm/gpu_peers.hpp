// The GPUs of a communicator whose ranks share a host and open memory to one another: a collective on their memory is
// put on the GPU's streams as a whole, instead of in rounds that the host drives. Used by Communicator and Request.
#pragma once

#include "base/completion.hpp"
#include "base/status.hpp"
#include "comm/plan.hpp"
#include "gpu/plugin.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace uzip {

class GpuDevices;
struct Config;

class GpuPeers {
 public:
  /// Gathers `bytes` of each rank, in rank order, into `all`.
  using Exchange = std::function<Status(const void* mine, void* all, size_t bytes)>;

  /// Collective. Null, and a line in the log if all have a GPU: some rank's memory can't be opened to all others.
  static Result<std::unique_ptr<GpuPeers>> connect(GpuDevices& gpus, const Config& config, int rank, int size,
                                                   const Exchange& exchange);
  /// Gives up what is still at work.
  ~GpuPeers();
  GpuPeers(const GpuPeers&) = delete;
  GpuPeers& operator=(const GpuPeers&) = delete;

  /// Whether a call on memory of a GPU is carried out here. The same on all ranks that have it in such memory.
  bool suits(const CollArgs& args) const;
  /// Makes a plan one for here: direct, and coded as asked for, or else when that is faster.
  void adapt(Plan& plan) const;

  /// UZIP_ERR_UNSUPPORTED: no call can be put on the stream, which is being captured.
  Status check_stream(void* stream) const;
  /// Bytes that leave this rank.
  struct Sent {
    uint64_t payload, wire;
  };
  /// Puts a call on its stream; `completion` is called, from progress(), when it has ended.
  Result<Sent> start(const CollArgs& args, const Plan& plan, const CallStamp& stamp, Completion* completion);
  /// Lets nothing wait for other ranks any more: the calls at work fail soon, and no other can be started.
  void give_up() { given_up_ = true; }
  bool progress();
  bool busy() const { return !calls_.empty(); }

 private:
  struct Call {
    uint64_t ticket;
    Completion* completion;
  };
  GpuPeers(GpuDevices& gpus, const gpu::PluginApi& api, int device, int size);
  Status create(const Config& config, int rank, gpu::PeerHandle* own);
  Status check(int failed) const;

  GpuDevices& gpus_;
  const gpu::PluginApi& api_;
  const int device_;
  const int size_;
  gpu::PeerGroup* group_ = nullptr;
  std::vector<Call> calls_;  ///< at work
  bool given_up_ = false;
};

}  // namespace uzip
