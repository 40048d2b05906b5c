// Cores are counted within what the system says of its processors.
#include "comm/cores.hpp"

#include <gtest/gtest.h>

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

namespace uzip {
namespace {

TEST(Cores, NoMoreThanProcessors) {
  const Cores there = cores();
  EXPECT_GE(there.of_host, 1);
  EXPECT_LE(there.of_host, sysconf(_SC_NPROCESSORS_CONF));
  EXPECT_GE(there.of_process, 1);
  EXPECT_LE(there.of_process, there.of_host);
}

TEST(Cores, OneForAProcessThatIsBoundToOneProcessor) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  size_t first = 0;
  while (!CPU_ISSET(first, &allowed)) ++first;
  const pid_t child = fork();
  if (child == 0) {  // counts at its first call, so it must be asked in a process of its own
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) _exit(2);
    execl("/proc/self/exe", "test_comm", "--gtest_filter=Cores.BoundProcess",
          static_cast<char*>(nullptr));
    _exit(3);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(Cores, BoundProcess) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  if (CPU_COUNT(&allowed) > 1) GTEST_SKIP() << "the test before this one runs it in a bound process";
  EXPECT_EQ(cores().of_process, 1);
}

}  // namespace
}  // namespace uzip
