#include "base/numa_memory.hpp"

#include <climits>

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace uzip {
namespace {

// As many nodes as any kernel is built for.
constexpr size_t kMostNodes = 1024;
constexpr size_t kWordBits = sizeof(unsigned long) * CHAR_BIT;

std::vector<unsigned long> mask_of(int node) {
  std::vector<unsigned long> mask(kMostNodes / kWordBits);
  const auto bit = static_cast<size_t>(node);
  mask[bit / kWordBits] |= 1UL << bit % kWordBits;
  return mask;
}

bool is_node(int node) { return node >= 0 && static_cast<size_t>(node) < kMostNodes; }

}  // namespace

int numa_node_here() {
  unsigned cpu = 0, node = 0;
  return syscall(SYS_getcpu, &cpu, &node, nullptr) == 0 ? static_cast<int>(node) : -1;
}

void prefer_numa_node(void* address, size_t bytes, int node) {
  if (!is_node(node) || bytes == 0) return;
  const std::vector<unsigned long> mask = mask_of(node);
  (void)syscall(SYS_mbind, address, bytes, MPOL_PREFERRED, mask.data(), kMostNodes + 1, 0);
}

PreferNumaNode::PreferNumaNode(int node) {
  if (!is_node(node)) return;
  nodes_before_.resize(kMostNodes / kWordBits);
  if (syscall(SYS_get_mempolicy, &mode_before_, nodes_before_.data(), kMostNodes + 1, nullptr, 0) != 0) return;
  const std::vector<unsigned long> mask = mask_of(node);
  changed_ = syscall(SYS_set_mempolicy, MPOL_PREFERRED, mask.data(), kMostNodes + 1) == 0;
}

PreferNumaNode::~PreferNumaNode() {
  if (!changed_) return;
  const bool without_nodes = mode_before_ == MPOL_DEFAULT || mode_before_ == MPOL_LOCAL;
  (void)syscall(SYS_set_mempolicy, mode_before_, without_nodes ? nullptr : nodes_before_.data(),
                without_nodes ? 0 : kMostNodes + 1);
}

}  // namespace uzip
