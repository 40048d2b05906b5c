#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include "mp/mp_world.hpp"

#include <uzipcoll/uzipcoll_mpi.h>

#include <cstdio>
#include <cstdlib>

namespace mp {

World::World(int* argc, char*** argv) {
  uzip_status_t status;
  if (std::getenv("UZIP_RANK")) {
    status = uzip_comm_create_from_env(&comm);
  } else {
    mpi_ = true;
    MPI_Init(argc, argv);
    status = uzip_comm_create_from_mpi(MPI_COMM_WORLD, &comm);
  }
  if (status != UZIP_OK) {
    std::printf("not ok - create the world: %s: %s\n", uzip_status_string(status), uzip_last_error());
    std::exit(1);
  }
  uzip_comm_rank(comm, &rank);
  uzip_comm_size(comm, &size);
}

World::~World() {
  if (uzip_comm_free(&comm) != UZIP_OK) std::printf("not ok - free the world: %s\n", uzip_last_error());
  if (mpi_) MPI_Finalize();
}

void World::test(const std::string& name, const std::function<std::string()>& body) {
  const std::string wrong = body();
  int bad = wrong.empty() ? 0 : 1, any = 0;
  if (bad) std::printf("# rank %d: %s: %s\n", rank, name.c_str(), wrong.c_str());
  if (uzip_allreduce(&bad, &any, 1, UZIP_INT32, UZIP_SUM, comm) != UZIP_OK) any = 1;
  failures_ += any != 0;
  if (rank == 0) std::printf("%s - %s (%d ranks)\n", any ? "not ok" : "ok", name.c_str(), size);
  std::fflush(stdout);
}

std::string expect(uzip_status_t status, uzip_status_t expected) {
  if (status == expected) return "";
  return std::string(uzip_status_string(status)) + " instead of " + uzip_status_string(expected) + ": " +
         uzip_last_error();
}

}  // namespace mp
