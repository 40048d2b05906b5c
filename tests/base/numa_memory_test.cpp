// Hints about NUMA nodes: they are in force while they should be, and leave no trace.
#include "base/numa_memory.hpp"

#include <gtest/gtest.h>

#include <cstddef>

#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace uzip {
namespace {

constexpr size_t kBytes = 1 << 16;

/// The policy of the thread, or of an address, with its nodes; -1: the kernel does not say.
int policy(unsigned long (&nodes)[16], void* address = nullptr) {
  int mode = -1;
  const long answer = syscall(SYS_get_mempolicy, &mode, nodes, 1025, address, address ? MPOL_F_ADDR : 0);
  return answer == 0 ? mode : -1;
}

TEST(NumaMemory, AThreadsPreferenceEndsWithItsScope) {
  unsigned long nodes[16] = {}, before_nodes[16] = {};
  const int before = policy(before_nodes), node = numa_node_here();
  if (before < 0 || node < 0) GTEST_SKIP() << "the kernel has no policies for memory, or hides them";
  {
    const PreferNumaNode prefer(node);
    if (policy(nodes) == before) GTEST_SKIP() << "the kernel does not let this process choose";
    EXPECT_EQ(policy(nodes), MPOL_PREFERRED);
    EXPECT_EQ(nodes[node / 64], 1UL << node % 64);
  }
  EXPECT_EQ(policy(nodes), before);
  for (int i = 0; i < 16; ++i) EXPECT_EQ(nodes[i], before_nodes[i]);
}

TEST(NumaMemory, ANodeThatIsNoneChangesNothing) {
  unsigned long nodes[16] = {};
  const int before = policy(nodes);
  for (int node : {-1, 1 << 20, 1000}) {
    const PreferNumaNode prefer(node);
    EXPECT_EQ(policy(nodes), before) << node;
  }
}

// What the owner of shared memory prefers holds for whoever touches it.
TEST(NumaMemory, APreferenceForSharedMemoryIsThatOfTheMemory) {
  const int file = memfd_create("numa_memory_test", MFD_CLOEXEC), node = numa_node_here();
  ASSERT_GE(file, 0);
  ASSERT_EQ(ftruncate(file, kBytes), 0);
  void* one = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  void* other = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  ASSERT_TRUE(one != MAP_FAILED && other != MAP_FAILED);
  prefer_numa_node(one, kBytes, node);
  unsigned long nodes[16] = {};
  const int seen = policy(nodes, other);
  if (seen == MPOL_PREFERRED) {
    EXPECT_EQ(nodes[node / 64], 1UL << node % 64);
  }
  static_cast<volatile char*>(other)[kBytes - 1] = 'x';
  const char read = static_cast<volatile char*>(one)[kBytes - 1];
  EXPECT_EQ(read, 'x');
  munmap(one, kBytes);
  munmap(other, kBytes);
  if (seen != MPOL_PREFERRED) GTEST_SKIP() << "the kernel has no policies for memory, or does not let this process choose";
}

}  // namespace
}  // namespace uzip
