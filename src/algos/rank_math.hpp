// Arithmetic on the ring of ranks, for the algorithms.
#pragma once

namespace uzip {

/// The rank `steps` places after `rank` on the ring; `steps` in (-2 * size, 2 * size).
inline int rank_after(int rank, int steps, int size) { return (rank + steps + 2 * size) % size; }

/// ceil(log2(size)): rounds in which something known to one rank can reach all.
inline int doubling_rounds(int size) {
  int rounds = 0;
  while ((1 << rounds) < size) ++rounds;
  return rounds;
}

/// floor(log2(size)): messages one after another on the longest way down a binomial tree of that many ranks.
inline int doubling_depth(int size) {
  int depth = 0;
  while ((2 << depth) <= size) ++depth;
  return depth;
}

}  // namespace uzip
