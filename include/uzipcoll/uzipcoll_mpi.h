/* libuzipcoll-mpi: a communicator with the ranks of an MPI_Comm. Link with -luzipcoll-mpi -luzipcoll. */
#ifndef UZIPCOLL_MPI_H
#define UZIPCOLL_MPI_H

#include <mpi.h>
#include <uzipcoll/uzipcoll.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Creates a communicator with the ranks of `mpi_comm` in the same order. Collective over `mpi_comm`, which
 * must be an intracommunicator; it is only used during the call and may be freed afterwards. MPI must be
 * initialised; free the communicator (uzip_comm_free) before MPI_Finalize. *comm is owned by the caller and
 * NULL after an error. */
UZIP_API uzip_status_t uzip_comm_create_from_mpi(MPI_Comm mpi_comm, uzip_comm_t *comm);

#ifdef __cplusplus
}
#endif
#endif /* UZIPCOLL_MPI_H */
