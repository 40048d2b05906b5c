/* A matrix is transposed whose rows are distributed over the ranks: every rank sends a block to every rank, itself
 * included, and receives one from each. In a group, the order of the calls does not matter.
 *
 * Build: cc group.c -o group $(pkg-config --cflags --libs uzipcoll)
 * Run:   for r in 0 1 2; do
 *          UZIP_RANK=$r UZIP_SIZE=3 UZIP_RENDEZVOUS=/tmp/job ./group &
 *        done; wait
 */
#include <uzipcoll/uzipcoll.h>

#include <stdio.h>
#include <stdlib.h>

enum { BLOCK = 200 }; /* rows of each rank, and columns of a block */

static void check(uzip_status_t status, const char *what)
{
  if (status == UZIP_OK)
    return;
  fprintf(stderr, "%s: %s: %s\n", what, uzip_status_string(status), uzip_last_error());
  exit(1);
}

static float element(int row, int column)
{
  return (float)row + (float)column / 4096;
}

int main(void)
{
  const size_t count = (size_t)BLOCK * BLOCK;
  uzip_comm_t comm;
  float *out, *in;
  int rank, size, peer, r, c, wrong = 0;

  check(uzip_comm_create_from_env(&comm), "uzip_comm_create_from_env");
  check(uzip_comm_rank(comm, &rank), "uzip_comm_rank");
  check(uzip_comm_size(comm, &size), "uzip_comm_size");
  out = malloc((size_t)size * count * sizeof(*out));
  in = malloc((size_t)size * count * sizeof(*in));
  if (out == NULL || in == NULL) {
    fprintf(stderr, "no memory for %d blocks\n", size);
    return 1;
  }

  /* Block by block, each transposed already. */
  for (peer = 0; peer < size; peer++)
    for (c = 0; c < BLOCK; c++)
      for (r = 0; r < BLOCK; r++)
        out[(size_t)peer * count + (size_t)c * BLOCK + (size_t)r] =
            element(rank * BLOCK + r, peer * BLOCK + c);

  check(uzip_group_start(), "uzip_group_start");
  for (peer = 0; peer < size; peer++) {
    check(uzip_send(out + (size_t)peer * count, count, UZIP_FP32, peer, 0, comm), "uzip_send");
    check(uzip_recv(in + (size_t)peer * count, count, UZIP_FP32, peer, 0, comm), "uzip_recv");
  }
  check(uzip_group_end(), "uzip_group_end");

  for (peer = 0; peer < size; peer++)
    for (c = 0; c < BLOCK; c++)
      for (r = 0; r < BLOCK; r++)
        wrong += in[(size_t)peer * count + (size_t)c * BLOCK + (size_t)r] !=
                 element(peer * BLOCK + r, rank * BLOCK + c);
  printf("rank %d of %d: %d elements are wrong\n", rank, size, wrong);
  free(out);
  free(in);
  check(uzip_comm_free(&comm), "uzip_comm_free");
  return wrong == 0 ? 0 : 1;
}
