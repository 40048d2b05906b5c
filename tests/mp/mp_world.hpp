// What the programs of tests/mp share: a communicator from MPI or from the environment, and cases that are
// reported once, by rank 0, as "ok - NAME" or "not ok - NAME".
#pragma once

#include <uzipcoll/uzipcoll.h>

#include <functional>
#include <string>

namespace mp {

class World {
 public:
  World(int* argc, char*** argv);
  ~World();

  uzip_comm_t comm = nullptr;
  int rank = 0;
  int size = 1;

  /// Runs `body` on all ranks; it returns "" or what is wrong. The case passes if it passes on all.
  void test(const std::string& name, const std::function<std::string()>& body);
  /// For the exit status.
  int failures() const { return failures_; }

 private:
  bool mpi_ = false;
  int failures_ = 0;
};

/// "" if `status` is `expected`, else both, with the last error.
std::string expect(uzip_status_t status, uzip_status_t expected);

}  // namespace mp
