/* Heat on a ring of rows that are distributed over the ranks: before each step, every rank needs the last row of
 * the rank above and the first row of the rank below, its halo. The exchange is the same each time, so it is made
 * once, as a persistent operation.
 *
 * Build: cc halo.c -o halo $(pkg-config --cflags --libs uzipcoll)
 * Run:   for r in 0 1 2; do
 *          UZIP_RANK=$r UZIP_SIZE=3 UZIP_RENDEZVOUS=/tmp/job ./halo &
 *        done; wait
 */
#include <uzipcoll/uzipcoll.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 24, COLUMNS = 5000, STEPS = 20 }; /* ROWS: of each rank */

static void check(uzip_status_t status, const char *what)
{
  if (status == UZIP_OK)
    return;
  fprintf(stderr, "%s: %s: %s\n", what, uzip_status_string(status), uzip_last_error());
  exit(1);
}

static double *new_rows(int rows)
{
  double *field = calloc((size_t)rows * COLUMNS, sizeof(double));
  if (field == NULL) {
    fprintf(stderr, "no memory for %d rows\n", rows);
    exit(1);
  }
  return field;
}

static double *row(double *field, int r)
{
  return field + (size_t)r * COLUMNS;
}

static void set_row(double *cells, int global_row)
{
  int c;
  for (c = 0; c < COLUMNS; c++)
    cells[c] = (double)((global_row * 31 + c * 7) % 101);
}

/* A row after one step, from it and the rows above and below. */
static void step_row(double *after, const double *above, const double *here, const double *below)
{
  int c;
  for (c = 0; c < COLUMNS; c++) {
    const double left = here[c > 0 ? c - 1 : COLUMNS - 1], right = here[c < COLUMNS - 1 ? c + 1 : 0];
    after[c] = 0.5 * here[c] + 0.125 * (above[c] + below[c] + left + right);
  }
}

/* The same on one rank alone, for comparison: rows `first` ... `first` + ROWS - 1 of all. */
static int count_wrong(double *mine, int first, int rows)
{
  double *field = new_rows(rows), *after = new_rows(rows), *other;
  int r, s, wrong = 0;
  for (r = 0; r < rows; r++)
    set_row(row(field, r), r);
  for (s = 0; s < STEPS; s++) {
    for (r = 0; r < rows; r++)
      step_row(row(after, r), row(field, (r + rows - 1) % rows), row(field, r), row(field, (r + 1) % rows));
    other = field;
    field = after;
    after = other;
  }
  for (r = 0; r < ROWS; r++)
    wrong += memcmp(row(mine, r), row(field, first + r), COLUMNS * sizeof(double)) != 0;
  free(field);
  free(after);
  return wrong;
}

int main(void)
{
  uzip_comm_t comm;
  uzip_request_t halo;
  double *field, *after;
  int rank, size, r, s, wrong;

  check(uzip_comm_create_from_env(&comm), "uzip_comm_create_from_env");
  check(uzip_comm_rank(comm, &rank), "uzip_comm_rank");
  check(uzip_comm_size(comm, &size), "uzip_comm_size");

  /* Row 0 and row ROWS + 1 are the halo. */
  field = new_rows(ROWS + 2);
  after = new_rows(ROWS + 2);
  for (r = 1; r <= ROWS; r++)
    set_row(row(field, r), rank * ROWS + r - 1);

  {
    const int above = (rank + size - 1) % size, below = (rank + 1) % size;
    /* Of several blocks between two ranks (there may be two ranks only) the first sent is the first received: what
     * one sends upwards, the other receives from below. */
    const int dests[2] = {above, below}, sources[2] = {below, above};
    const size_t counts[2] = {COLUMNS, COLUMNS};
    const size_t from[2] = {COLUMNS, ROWS * COLUMNS};   /* row 1, row ROWS */
    const size_t to[2] = {(ROWS + 1) * COLUMNS, 0};     /* row ROWS + 1, row 0 */
    uzip_neighbors_t neighbors = {sizeof(neighbors), 2, 2, NULL, NULL, NULL, NULL, NULL, NULL};
    neighbors.dests = dests;
    neighbors.send_counts = counts;
    neighbors.send_offsets = from;
    neighbors.sources = sources;
    neighbors.recv_counts = counts;
    neighbors.recv_offsets = to;
    check(uzip_neighbor_alltoallv_init(field, field, &neighbors, UZIP_FP64, comm, &halo),
          "uzip_neighbor_alltoallv_init");
  }

  for (s = 0; s < STEPS; s++) {
    check(uzip_start(&halo), "uzip_start");
    /* The rows that need no halo meanwhile. */
    for (r = 2; r < ROWS; r++)
      step_row(row(after, r), row(field, r - 1), row(field, r), row(field, r + 1));
    check(uzip_wait(&halo), "uzip_wait");
    step_row(row(after, 1), row(field, 0), row(field, 1), row(field, 2));
    step_row(row(after, ROWS), row(field, ROWS - 1), row(field, ROWS), row(field, ROWS + 1));
    memcpy(row(field, 1), row(after, 1), (size_t)ROWS * COLUMNS * sizeof(double));
  }
  check(uzip_request_free(&halo), "uzip_request_free");

  wrong = count_wrong(row(field, 1), rank * ROWS, size * ROWS);
  printf("rank %d of %d: %d of %d rows are wrong after %d steps\n", rank, size, wrong, ROWS, STEPS);
  free(field);
  free(after);
  check(uzip_comm_free(&comm), "uzip_comm_free");
  return wrong == 0 ? 0 : 1;
}
