/* The library without MPI: starts its ranks with fork() and lets them find each other over pipes.
 *
 * Build: cc allreduce_oob.c -o allreduce_oob $(pkg-config --cflags --libs uzipcoll)
 * Run:   ./allreduce_oob
 */
#define _POSIX_C_SOURCE 200809L
#include <uzipcoll/uzipcoll.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 3, COUNT = 100000 };

/* pipes[s][r] carries bytes from rank s to rank r: [0] is read, [1] is written. */
struct job {
  int rank;
  int pipes[SIZE][SIZE][2];
};

/* Moves all `bytes` bytes; pipes may take fewer at a time. */
static int transfer(int fd, char *data, size_t bytes, int writing)
{
  while (bytes > 0) {
    ssize_t moved = writing ? write(fd, data, bytes) : read(fd, data, bytes);
    if (moved <= 0)
      return -1;
    data += moved;
    bytes -= (size_t)moved;
  }
  return 0;
}

/* What uzip_comm_create() needs: everybody's bytes to everybody. The library exchanges a few hundred
 * bytes at a time, which fit into a pipe; so all ranks can write first. */
static int allgather(const void *src, void *dst, size_t bytes, void *context)
{
  struct job *job = context;
  int peer;
  for (peer = 0; peer < SIZE; peer++)
    if (transfer(job->pipes[job->rank][peer][1], (char *)src, bytes, 1) != 0)
      return -1;
  for (peer = 0; peer < SIZE; peer++)
    if (transfer(job->pipes[peer][job->rank][0], (char *)dst + (size_t)peer * bytes, bytes, 0) != 0)
      return -1;
  return 0;
}

static void check(uzip_status_t status, const char *what)
{
  if (status == UZIP_OK)
    return;
  fprintf(stderr, "%s: %s: %s\n", what, uzip_status_string(status), uzip_last_error());
  _exit(1);
}

/* One rank's whole life: returns its exit status. */
static int run_rank(struct job *job)
{
  static double values[COUNT], sums[COUNT];
  uzip_oob_t oob = {sizeof(oob), job->rank, SIZE, allgather, job};
  uzip_comm_t comm;
  int i, wrong = 0;

  check(uzip_comm_create(&oob, &comm), "uzip_comm_create");
  for (i = 0; i < COUNT; i++)
    values[i] = i + 0.5 * job->rank; /* halves: sums are exact */
  check(uzip_allreduce(values, sums, COUNT, UZIP_FP64, UZIP_SUM, comm), "uzip_allreduce");
  for (i = 0; i < COUNT; i++)
    wrong += sums[i] != SIZE * (double)i + 0.5 * (SIZE * (SIZE - 1) / 2);
  check(uzip_comm_free(&comm), "uzip_comm_free");
  printf("rank %d: %d of %d sums are wrong\n", job->rank, wrong, COUNT);
  fflush(stdout);
  return wrong == 0 ? 0 : 1;
}

int main(void)
{
  static struct job job;
  int source, dest, status, failed = 0;
  pid_t child;

  for (source = 0; source < SIZE; source++)
    for (dest = 0; dest < SIZE; dest++)
      if (pipe(job.pipes[source][dest]) != 0)
        return 1;
  for (job.rank = 0; job.rank < SIZE; job.rank++) {
    child = fork();
    if (child < 0)
      return 1;
    if (child == 0)
      _exit(run_rank(&job));
  }
  while (wait(&status) > 0)
    failed += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
  return failed == 0 ? 0 : 1;
}
