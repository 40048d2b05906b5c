/* Sums an array over all ranks of an MPI job, compressed on the way.
 *
 * Build: mpicc allreduce_mpi.c -o allreduce_mpi $(pkg-config --cflags --libs uzipcoll-mpi)
 * Run:   mpirun -np 4 ./allreduce_mpi
 */
#include <mpi.h>
#include <uzipcoll/uzipcoll_mpi.h>

#include <stdio.h>
#include <stdlib.h>

/* Ends the job with the library's own explanation if a call failed. */
static void check(uzip_status_t status, const char *what)
{
  if (status == UZIP_OK)
    return;
  fprintf(stderr, "%s: %s: %s\n", what, uzip_status_string(status), uzip_last_error());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char **argv)
{
  const size_t count = 1 << 20;
  uzip_comm_t comm;
  uzip_options_t options = UZIP_OPTIONS_INIT;
  uzip_coll_info_t info = {sizeof(info), NULL, NULL, 0, 0, 0};
  uzip_coll_args_t args = {sizeof(args), UZIP_ALLREDUCE, NULL, NULL, 0, NULL, UZIP_FP32, UZIP_SUM, NULL, NULL,
                           0, NULL, NULL, NULL, NULL};
  float *values;
  size_t i, wrong = 0;
  int rank, size;

  MPI_Init(&argc, &argv);
  check(uzip_comm_create_from_mpi(MPI_COMM_WORLD, &comm), "uzip_comm_create_from_mpi");
  check(uzip_comm_rank(comm, &rank), "uzip_comm_rank");
  check(uzip_comm_size(comm, &size), "uzip_comm_size");

  values = malloc(count * sizeof(*values));
  if (values == NULL)
    MPI_Abort(MPI_COMM_WORLD, 1);

  /* The plain call: every rank gives the numbers 0, 1, 2, ..., so the sums are exact. In place, since
   * source and destination are the same array. */
  for (i = 0; i < count; i++)
    values[i] = (float)(i % 1000);
  check(uzip_allreduce(UZIP_IN_PLACE, values, count, UZIP_FP32, UZIP_SUM, comm), "uzip_allreduce");
  for (i = 0; i < count; i++)
    wrong += values[i] != (float)(i % 1000) * (float)size;

  /* The same with a codec of our choice, asking what it did. */
  for (i = 0; i < count; i++)
    values[i] = (float)(i % 1000);
  options.codec = "lev";
  args.src = UZIP_IN_PLACE;
  args.dst = values;
  args.count = count;
  args.options = &options;
  args.info = &info;
  check(uzip_coll_run(&args, comm), "uzip_coll_run");
  for (i = 0; i < count; i++)
    wrong += values[i] != (float)(i % 1000) * (float)size;
  if (rank == 0 && info.payload_bytes > 0)
    printf("algorithm %s, codec %s: sent %llu bytes instead of %llu\n", info.algorithm, info.codec,
           (unsigned long long)info.wire_bytes, (unsigned long long)info.payload_bytes);
  if (rank == 0)
    printf("%d ranks, %zu values: %s\n", size, count, wrong == 0 ? "all sums are right" : "WRONG SUMS");

  free(values);
  /* Before MPI_Finalize, and by all ranks. */
  check(uzip_comm_free(&comm), "uzip_comm_free");
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
