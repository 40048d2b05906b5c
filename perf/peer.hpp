// What the library is compared with: itself without compression, or another library that does the same.
// Each stands behind one interface, so that all of them take turns in one run.
#pragma once

#include "bench_case.hpp"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace perf {

/// One way to do a case's operation.
class Peer {
 public:
  explicit Peer(PeerKind kind, std::string description)
      : kind_(kind), description_(std::move(description)) {}
  virtual ~Peer() = default;
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  PeerKind kind() const { return kind_; }
  /// What it runs, with what stands in for a type or an operation that it lacks:
  /// "MPI_Allreduce of MPI_INT16_T for bfloat16".
  const std::string& description() const { return description_; }
  virtual bool can_run(const Layout&) const { return true; }
  /// One call out of place, blocking. All ranks must have left the library's previous call, see
  /// time_calls(). Throws Failure.
  virtual void run(const Layout& layout) = 0;
  /// Blocks until all ranks have left run(), so that the library may be entered again.
  virtual void barrier() {}

 private:
  PeerKind kind_;
  std::string description_;
};

/// "raw", "mpi", "ucc", "nccl": as --versus takes them.
const char* peer_name(PeerKind kind);

class NcclJob;
class UccJob;

/// The peers of a run, and what they need once for all cases.
class Peers {
 public:
  /// Collective. Throws SharedFailure if one of them can't be used here.
  Peers(const World& world, std::span<const PeerKind> kinds);
  ~Peers();
  /// Those that can do the operation of `bench`, which must outlive them.
  std::vector<std::unique_ptr<Peer>> of(const Case& bench) const;

 private:
  std::vector<PeerKind> kinds_;
  std::unique_ptr<UccJob> ucc_;
  std::unique_ptr<NcclJob> nccl_;
};

}  // namespace perf
