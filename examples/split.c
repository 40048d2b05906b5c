/* Groups of ranks: the ranks of a job form a grid of two columns, and sums run along each row.
 *
 * Build: cc split.c -o split $(pkg-config --cflags --libs uzipcoll)
 * Run:   for r in 0 1 2 3; do
 *          UZIP_RANK=$r UZIP_SIZE=4 UZIP_RENDEZVOUS=/tmp/job ./split &
 *        done; wait
 */
#include <uzipcoll/uzipcoll.h>

#include <stdio.h>
#include <stdlib.h>

enum { COLUMNS = 2, COUNT = 1000 };

static void check(uzip_status_t status, const char *what)
{
  if (status == UZIP_OK)
    return;
  fprintf(stderr, "%s: %s: %s\n", what, uzip_status_string(status), uzip_last_error());
  exit(1);
}

int main(void)
{
  static int32_t values[COUNT];
  uzip_comm_t world, row;
  int rank, row_rank, row_size, first, i, expected = 0, wrong = 0;

  check(uzip_comm_create_from_env(&world), "uzip_comm_create_from_env");
  check(uzip_comm_rank(world, &rank), "uzip_comm_rank");

  /* Ranks of the same colour form a group. The key orders them; the last row may be shorter. */
  check(uzip_comm_split(world, rank / COLUMNS, rank, &row), "uzip_comm_split");
  check(uzip_comm_rank(row, &row_rank), "uzip_comm_rank");
  check(uzip_comm_size(row, &row_size), "uzip_comm_size");

  for (i = 0; i < COUNT; i++)
    values[i] = rank + i;
  check(uzip_allreduce(UZIP_IN_PLACE, values, COUNT, UZIP_INT32, UZIP_SUM, row), "uzip_allreduce");

  first = rank / COLUMNS * COLUMNS;
  for (i = 0; i < row_size; i++)
    expected += first + i;
  for (i = 0; i < COUNT; i++)
    wrong += values[i] != expected + row_size * i;
  wrong += row_rank != rank % COLUMNS;
  printf("rank %d: rank %d of %d in row %d, %d of %d sums are wrong\n", rank, row_rank, row_size,
         rank / COLUMNS, wrong, COUNT);

  check(uzip_comm_free(&row), "uzip_comm_free");
  check(uzip_comm_free(&world), "uzip_comm_free");
  return wrong == 0 ? 0 : 1;
}
