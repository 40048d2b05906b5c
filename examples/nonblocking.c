/* Several sums in flight at once while the program goes on computing: as in training, where the gradient
 * of each layer is summed over the ranks while the next layer's is still being computed.
 *
 * Build: cc nonblocking.c -o nonblocking $(pkg-config --cflags --libs uzipcoll)
 * Run:   for r in 0 1 2; do
 *          UZIP_RANK=$r UZIP_SIZE=3 UZIP_RENDEZVOUS=/tmp/job ./nonblocking &
 *        done; wait
 */
#include <uzipcoll/uzipcoll.h>

#include <stdio.h>
#include <stdlib.h>

enum { LAYERS = 8, COUNT = 50000 };

static float gradients[LAYERS][COUNT];

static void check(uzip_status_t status, const char *what)
{
  if (status == UZIP_OK)
    return;
  fprintf(stderr, "%s: %s: %s\n", what, uzip_status_string(status), uzip_last_error());
  exit(1);
}

/* Stands for the work of one layer. Multiples of 1/8: the sums are exact, the averages rounded once. */
static void compute_layer(int layer, int rank)
{
  int i;
  for (i = 0; i < COUNT; i++)
    gradients[layer][i] = (float)(layer + i % 100) * 0.125f + (float)rank;
}

static int count_wrong(int layer, int size)
{
  int i, wrong = 0;
  for (i = 0; i < COUNT; i++) {
    float sum = (float)size * (float)(layer + i % 100) * 0.125f + (float)(size * (size - 1) / 2);
    wrong += gradients[layer][i] != sum / (float)size;
  }
  return wrong;
}

int main(void)
{
  uzip_comm_t comm;
  uzip_request_t requests[LAYERS];
  int layer, rank, size, done, wrong = 0;

  check(uzip_comm_create_from_env(&comm), "uzip_comm_create_from_env");
  check(uzip_comm_rank(comm, &rank), "uzip_comm_rank");
  check(uzip_comm_size(comm, &size), "uzip_comm_size");

  /* The last layer's gradient comes first. A started sum may read and write its array until it is waited
   * for; all ranks start them in the same order. */
  for (layer = LAYERS - 1; layer >= 0; layer--) {
    compute_layer(layer, rank);
    check(uzip_iallreduce(UZIP_IN_PLACE, gradients[layer], COUNT, UZIP_FP32, UZIP_AVG, comm,
                          &requests[layer]),
          "uzip_iallreduce");
    /* Communication moves on only inside the library: a test now and then keeps it going. A test that
     * finds its request complete sets it to UZIP_REQUEST_NULL, which waiting later accepts. */
    if (layer + 1 < LAYERS)
      check(uzip_test(&requests[layer + 1], &done), "uzip_test");
  }
  check(uzip_waitall(LAYERS, requests, NULL), "uzip_waitall");

  for (layer = 0; layer < LAYERS; layer++)
    wrong += count_wrong(layer, size);
  printf("rank %d of %d: %d of %d averages are wrong\n", rank, size, wrong, LAYERS * COUNT);
  check(uzip_comm_free(&comm), "uzip_comm_free");
  return wrong == 0 ? 0 : 1;
}
