// Which NUMA node memory comes from: the kernel takes that of the thread that touches a page first, unless it is told
// otherwise. Hints only: where the kernel refuses, or has one node, nothing changes.
#pragma once

#include <cstddef>
#include <vector>

namespace uzip {

/// The node that the calling thread runs on at this moment; -1 if that can't be told.
int numa_node_here();

/// Pages of this mapping that nobody has touched yet come from `node`, whoever touches them; of shared memory, also other
/// processes. `address` begins a page.
void prefer_numa_node(void* address, size_t bytes, int node);

/// While it lives, pages that the calling thread is the first to touch, or lets a driver allocate, come from `node`; -1:
/// from where they came before.
class PreferNumaNode {
 public:
  explicit PreferNumaNode(int node);
  ~PreferNumaNode();
  PreferNumaNode(const PreferNumaNode&) = delete;
  PreferNumaNode& operator=(const PreferNumaNode&) = delete;

 private:
  bool changed_ = false;
  int mode_before_ = 0;
  std::vector<unsigned long> nodes_before_;
};

}  // namespace uzip
