// The ranks of a measuring program: how they were started, their communicator, and what they tell
// each other. Everything after the start goes through the library itself.
#pragma once

#include <uzipcoll/uzipcoll.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace perf {

/// How the ranks of the job find each other.
enum class Launch {
  kAuto,         ///< kEnvironment if UZIP_RANK is set, kMpi under an MPI launcher, otherwise kAlone
  kMpi,          ///< MPI_COMM_WORLD
  kEnvironment,  ///< UZIP_RANK, UZIP_SIZE and UZIP_RENDEZVOUS; MPI is not initialised
  kAlone,        ///< one rank
};

/// The rank of this process before it has a communicator, as far as the launcher's variables tell; 0 if they don't.
int launched_rank();
/// True if this process is to speak for the job before its rank is known.
inline bool speaks_for_job() { return launched_rank() == 0; }

/// Throws Failure with the library's own words unless `status` is UZIP_OK. `what` names the call.
void require(uzip_status_t status, const char* what);

class World {
 public:
  /// Starts MPI if asked to, and creates the communicator. Throws Failure.
  World(Launch launch, int* argc, char*** argv);
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  uzip_comm_t comm() const { return comm_; }
  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  bool is_root() const { return rank_ == 0; }
  bool has_mpi() const { return has_mpi_; }
  /// "mpi", "env" or "alone", as --launch takes it.
  const char* launched_by() const { return launched_by_; }

  void barrier() const;
  /// The values of all ranks, rank by rank. `mine` has the same size on all ranks. Besides the
  /// library's status it checks that this rank's own values came back.
  std::vector<uint64_t> gather(std::span<const uint64_t> mine) const;
  std::vector<double> gather(std::span<const double> mine) const;
  /// A short text of each rank, cut after 511 bytes.
  std::vector<std::string> gather(const std::string& mine) const;

  /// Frees the communicator and ends MPI. All ranks call it, as the last thing they do here.
  void leave();
  /// Ends this process after a failure that the other ranks may not share. The communicator is not
  /// freed, since that would wait for them; under MPI the whole job is aborted.
  [[noreturn]] static void abandon(int exit_status);

 private:
  void gather_bytes(const void* mine, void* all, size_t bytes) const;
  void start_mpi(int* argc, char*** argv);

  uzip_comm_t comm_ = nullptr;
  int rank_ = 0;
  int ranks_ = 1;
  bool has_mpi_ = false;
  const char* launched_by_ = "alone";
};

}  // namespace perf
