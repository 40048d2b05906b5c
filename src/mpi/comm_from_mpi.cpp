// libuzipcoll-mpi: brings the processes of an MPI communicator together. MPI is used during creation only.
#define OMPI_SKIP_MPICXX 1  // the C++ bindings that mpi.h would pull in are not used
#define MPICH_SKIP_MPICXX 1
#include <uzipcoll/uzipcoll_mpi.h>

#include <sched.h>

#include <climits>

namespace {

/// All-gather over MPI that leaves the core to others while it waits: there may be more processes than cores.
int allgather(const void* src, void* dst, size_t bytes, void* context) {
  if (bytes > INT_MAX) return MPI_ERR_COUNT;
  MPI_Comm comm = *static_cast<MPI_Comm*>(context);
  MPI_Request request;
  int code = MPI_Iallgather(src, static_cast<int>(bytes), MPI_BYTE, dst, static_cast<int>(bytes), MPI_BYTE, comm,
                            &request);
  for (int done = 0; code == MPI_SUCCESS && !done;) {
    code = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (!done) sched_yield();
  }
  return code;
}

}  // namespace

extern "C" uzip_status_t uzip_comm_create_from_mpi(MPI_Comm mpi_comm, uzip_comm_t* comm) {
  int initialized = 0, finalized = 0, inter = 0;
  if (comm) *comm = nullptr;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  if (!initialized || finalized)
    return uzip_report_error(UZIP_ERR_INVALID, initialized ? "MPI has been finalized already; free communicators before"
                                                           : "MPI is not initialised; call MPI_Init first");
  if (mpi_comm == MPI_COMM_NULL) return uzip_report_error(UZIP_ERR_INVALID, "mpi_comm is MPI_COMM_NULL");
  if (MPI_Comm_test_inter(mpi_comm, &inter) != MPI_SUCCESS || inter)
    return uzip_report_error(UZIP_ERR_INVALID, "mpi_comm is an intercommunicator; only intracommunicators are possible");

  // A private communicator: our messages never meet the program's.
  MPI_Comm own;
  if (MPI_Comm_dup(mpi_comm, &own) != MPI_SUCCESS)
    return uzip_report_error(UZIP_ERR_TRANSPORT, "MPI_Comm_dup failed");
  uzip_oob_t oob = {};
  oob.struct_size = sizeof oob;
  MPI_Comm_rank(own, &oob.rank);
  MPI_Comm_size(own, &oob.size);
  oob.allgather = allgather;
  oob.context = &own;
  const uzip_status_t status = uzip_comm_create(&oob, comm);
  MPI_Comm_free(&own);
  return status;
}
