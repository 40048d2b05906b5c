#include "world.hpp"

#include "failure.hpp"

#ifdef PERF_WITH_MPI
#include <uzipcoll/uzipcoll_mpi.h>
#endif

#include <cstdlib>
#include <cstring>

namespace perf {
namespace {

// A job's rank as the common launchers tell it, in the order in which they are asked.
constexpr const char* kRankVariables[] = {"UZIP_RANK",   "OMPI_COMM_WORLD_RANK",
                                          "PMI_RANK",    "PMIX_RANK",
                                          "PALS_RANKID", "MV2_COMM_WORLD_RANK"};

Launch detect_launch() {
  if (std::getenv("UZIP_RANK") != nullptr) return Launch::kEnvironment;
#ifdef PERF_WITH_MPI
  for (const char* name : kRankVariables) {
    if (std::getenv(name) != nullptr) return Launch::kMpi;
  }
#endif
  return Launch::kAlone;
}

// The all-gather of a job that consists of this process.
int gather_alone(const void* src, void* dst, size_t bytes, void*) {
  if (bytes > 0) std::memcpy(dst, src, bytes);
  return 0;
}

uzip_status_t create_alone(uzip_comm_t* comm) {
  uzip_oob_t oob = {};
  oob.struct_size = sizeof(oob);
  oob.rank = 0;
  oob.size = 1;
  oob.allgather = gather_alone;
  return uzip_comm_create(&oob, comm);
}

}  // namespace

int launched_rank() {
  for (const char* name : kRankVariables) {
    const char* value = std::getenv(name);
    if (value != nullptr) return std::atoi(value);
  }
  return 0;
}

void require(uzip_status_t status, const char* what) {
  if (status == UZIP_OK) return;
  const std::string detail = uzip_last_error();
  throw Failure(status == UZIP_ERR_CONFIG ? kExitUsage : kExitWrong,
                std::string(what) + ": " + uzip_status_string(status) +
                    (detail.empty() ? "" : ": " + detail));
}

World::World(Launch launch, int* argc, char*** argv) {
  if (launch == Launch::kAuto) launch = detect_launch();
  switch (launch) {
    case Launch::kMpi:
      launched_by_ = "mpi";
      start_mpi(argc, argv);
      break;
    case Launch::kEnvironment:
      launched_by_ = "env";
      require(uzip_comm_create_from_env(&comm_), "uzip_comm_create_from_env");
      break;
    default:
      require(create_alone(&comm_), "uzip_comm_create");
  }
  require(uzip_comm_rank(comm_, &rank_), "uzip_comm_rank");
  require(uzip_comm_size(comm_, &ranks_), "uzip_comm_size");
}

#ifdef PERF_WITH_MPI

void World::start_mpi(int* argc, char*** argv) {
  MPI_Init(argc, argv);
  has_mpi_ = true;
  require(uzip_comm_create_from_mpi(MPI_COMM_WORLD, &comm_), "uzip_comm_create_from_mpi");
}

// The communicator goes first: MPI_Finalize may block, and a rank that blocks outside the library
// does not progress what its peers still wait for.
void World::leave() {
  require(uzip_comm_free(&comm_), "uzip_comm_free");
  if (has_mpi_) MPI_Finalize();
}

void World::abandon(int exit_status) {
  int started = 0;
  MPI_Initialized(&started);
  if (started != 0) MPI_Abort(MPI_COMM_WORLD, exit_status);
  std::exit(exit_status);
}

#else

void World::start_mpi(int*, char***) {
  throw Failure(kExitUsage, "--launch mpi: this program was built without MPI; use env or alone");
}

void World::leave() { require(uzip_comm_free(&comm_), "uzip_comm_free"); }

void World::abandon(int exit_status) { std::exit(exit_status); }

#endif

void World::barrier() const { require(uzip_barrier(comm_), "uzip_barrier"); }

void World::gather_bytes(const void* mine, void* all, size_t bytes) const {
  require(uzip_allgather(mine, all, bytes, UZIP_UINT8, comm_), "uzip_allgather");
  const std::byte* back = static_cast<const std::byte*>(all) + static_cast<size_t>(rank_) * bytes;
  if (std::memcmp(back, mine, bytes) != 0) {
    throw Failure(kExitWrong, "uzip_allgather: gave this rank another value than its own");
  }
}

std::vector<uint64_t> World::gather(std::span<const uint64_t> mine) const {
  std::vector<uint64_t> all(mine.size() * static_cast<size_t>(ranks_));
  gather_bytes(mine.data(), all.data(), mine.size_bytes());
  return all;
}

std::vector<double> World::gather(std::span<const double> mine) const {
  std::vector<double> all(mine.size() * static_cast<size_t>(ranks_));
  gather_bytes(mine.data(), all.data(), mine.size_bytes());
  return all;
}

std::vector<std::string> World::gather(const std::string& mine) const {
  constexpr size_t kRoom = 512;
  std::vector<char> text(kRoom, '\0');
  std::strncpy(text.data(), mine.c_str(), kRoom - 1);
  std::vector<char> all(kRoom * static_cast<size_t>(ranks_));
  gather_bytes(text.data(), all.data(), kRoom);
  std::vector<std::string> texts;
  for (size_t r = 0; r < static_cast<size_t>(ranks_); ++r) texts.emplace_back(&all[r * kRoom]);
  return texts;
}

}  // namespace perf
