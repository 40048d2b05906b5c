// One rank of a job in which the last rank comes to harm: the others must get a status that names it, soon.
// Started by failures.sh without a launcher (mpirun would kill all). usage: failures HOW
#include <uzipcoll/uzipcoll.h>

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr size_t kCount = 4 << 20;  // large enough that peers are in the middle of it
constexpr double kSoon = 6;         // seconds

void come_to_harm(const std::string& how) {
  if (how == "killed") kill(getpid(), SIGKILL);
  if (how == "exited") _exit(0);
  if (how == "stopped") kill(getpid(), SIGSTOP);
}

int fail(int rank, const char* what) {
  std::printf("# rank %d: %s: %s\n", rank, what, uzip_last_error());
  return 1;
}

}  // namespace

int main(int, char** argv) {
  const std::string how = argv[1];
  uzip_comm_t comm;
  int rank = -1, size = 0;
  if (uzip_comm_create_from_env(&comm) != UZIP_OK) return fail(rank, "create");
  uzip_comm_rank(comm, &rank);
  uzip_comm_size(comm, &size);
  std::vector<float> in(kCount, 1), out(kCount);
  // The others may still be in the last call that the victim has finished: it counts from then on.
  uzip_status_t status = UZIP_OK;
  for (int call = 0; call < 3 && status == UZIP_OK; ++call)
    status = uzip_allreduce(in.data(), out.data(), kCount, UZIP_FP32, UZIP_SUM, comm);
  uzip_request_t request = UZIP_REQUEST_NULL;
  const auto start = std::chrono::steady_clock::now();
  if (status == UZIP_OK) status = uzip_iallreduce(in.data(), out.data(), kCount, UZIP_FP32, UZIP_SUM, comm, &request);
  if (rank == size - 1) {
    for (int done = 0, turn = 0; turn < 3; ++turn) uzip_test(&request, &done);
    come_to_harm(how);
  }
  if (status == UZIP_OK) status = uzip_wait(&request);
  // The victim may have done its part of this call, too; then the next one shows it.
  if (status == UZIP_OK) status = uzip_barrier(comm);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const uzip_status_t expected = how == "stopped" ? UZIP_ERR_TIMEOUT : UZIP_ERR_PEER;
  if (status != expected) return fail(rank, uzip_status_string(status));
  const std::string victim = std::to_string(size - 1);
  if (!std::strstr(uzip_last_error(), victim.c_str())) return fail(rank, "the message does not name the rank");
  if (seconds > kSoon) return fail(rank, ("took " + std::to_string(seconds) + " s").c_str());
  // What comes afterwards must fail at once, too, and freeing must not hang.
  if (how != "stopped" && uzip_barrier(comm) != UZIP_ERR_PEER) return fail(rank, "a later call did not fail");
  uzip_comm_free(&comm);
  std::printf("# rank %d: after %.2f s\n", rank, seconds);
  return 0;
}
