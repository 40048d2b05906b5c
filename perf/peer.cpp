#include "peer.hpp"

#include "failure.hpp"
#include "versus_mpi.hpp"
#include "versus_nccl.hpp"
#include "versus_ucc.hpp"

namespace perf {
namespace {

// The library without a codec, everything else as in the calls that are measured.
class RawPeer : public Peer {
 public:
  explicit RawPeer(const Case& bench)
      : Peer(PeerKind::kRaw, "codec raw"), bench_(bench), options_(bench.options.call_options()) {
    options_.codec = "raw";
  }
  void run(const Layout& layout) override {
    require(bench_.run(layout, false, options_, nullptr), bench_.operation.name);
  }

 private:
  const Case& bench_;
  uzip_options_t options_;
};

}  // namespace

const char* peer_name(PeerKind kind) {
  switch (kind) {
    case PeerKind::kMpi:
      return "mpi";
    case PeerKind::kUcc:
      return "ucc";
    case PeerKind::kNccl:
      return "nccl";
    case PeerKind::kRaw:
      break;
  }
  return "raw";
}

Peers::Peers(const World& world, std::span<const PeerKind> kinds)
    : kinds_(kinds.begin(), kinds.end()) {
  for (PeerKind kind : kinds_) {
    if (kind == PeerKind::kUcc) ucc_ = make_ucc_job(world);
    if (kind == PeerKind::kNccl) nccl_ = make_nccl_job(world);
    if (kind == PeerKind::kMpi && !world.has_mpi()) {
      throw SharedFailure(kExitUsage, std::string("--versus mpi: MPI is not used here (--launch ") +
                                          world.launched_by() + "); use mpirun, or --launch mpi");
    }
  }
}

Peers::~Peers() = default;

std::vector<std::unique_ptr<Peer>> Peers::of(const Case& bench) const {
  std::vector<std::unique_ptr<Peer>> peers;
  for (PeerKind kind : kinds_) {
    std::unique_ptr<Peer> peer;
    switch (kind) {
      case PeerKind::kRaw:
        peer = std::make_unique<RawPeer>(bench);
        break;
      case PeerKind::kMpi:
        peer = make_mpi_peer(bench);
        break;
      case PeerKind::kUcc:
        peer = make_ucc_peer(*ucc_, bench);
        break;
      case PeerKind::kNccl:
        peer = make_nccl_peer(*nccl_, bench);
        break;
    }
    if (peer) peers.push_back(std::move(peer));
  }
  return peers;
}

}  // namespace perf
