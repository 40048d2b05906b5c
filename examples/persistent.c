/* The same sums in every step, as in training: the operations are made once and then started again and again, which
 * costs less than new calls.
 *
 * Build: cc persistent.c -o persistent $(pkg-config --cflags --libs uzipcoll)
 * Run:   for r in 0 1 2; do
 *          UZIP_RANK=$r UZIP_SIZE=3 UZIP_RENDEZVOUS=/tmp/job ./persistent &
 *        done; wait
 */
#include <uzipcoll/uzipcoll.h>

#include <stdio.h>
#include <stdlib.h>

enum { LAYERS = 6, COUNT = 30000, STEPS = 10 };

static float gradients[LAYERS][COUNT];

static void check(uzip_status_t status, const char *what)
{
  if (status == UZIP_OK)
    return;
  fprintf(stderr, "%s: %s: %s\n", what, uzip_status_string(status), uzip_last_error());
  exit(1);
}

/* Stands for the work of one layer. Small integers: the sums are exact. */
static void compute_layer(int layer, int step, int rank)
{
  int i;
  for (i = 0; i < COUNT; i++)
    gradients[layer][i] = (float)(layer + step + i % 100 + rank);
}

static int count_wrong(int layer, int step, int size)
{
  int i, wrong = 0;
  for (i = 0; i < COUNT; i++)
    wrong += gradients[layer][i] != (float)(size * (layer + step + i % 100) + size * (size - 1) / 2);
  return wrong;
}

int main(void)
{
  uzip_comm_t comm;
  uzip_request_t sums[LAYERS];
  int layer, step, rank, size, wrong = 0;

  check(uzip_comm_create_from_env(&comm), "uzip_comm_create_from_env");
  check(uzip_comm_rank(comm, &rank), "uzip_comm_rank");
  check(uzip_comm_size(comm, &size), "uzip_comm_size");

  for (layer = 0; layer < LAYERS; layer++)
    check(uzip_allreduce_init(UZIP_IN_PLACE, gradients[layer], COUNT, UZIP_FP32, UZIP_SUM, comm, &sums[layer]),
          "uzip_allreduce_init");

  for (step = 0; step < STEPS; step++) {
    for (layer = LAYERS - 1; layer >= 0; layer--) {
      compute_layer(layer, step, rank);
      check(uzip_start(&sums[layer]), "uzip_start");
    }
    check(uzip_waitall(LAYERS, sums, NULL), "uzip_waitall"); /* the requests stay */
    for (layer = 0; layer < LAYERS; layer++)
      wrong += count_wrong(layer, step, size);
  }
  for (layer = 0; layer < LAYERS; layer++)
    check(uzip_request_free(&sums[layer]), "uzip_request_free");

  printf("rank %d of %d: %d sums are wrong\n", rank, size, wrong);
  check(uzip_comm_free(&comm), "uzip_comm_free");
  return wrong == 0 ? 0 : 1;
}
