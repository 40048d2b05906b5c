// Ranks that do the same as others, seen from where they stand: one host's ranks then tell of all.
// It makes simulations of thousands of ranks cheap. Used by simulate().
#pragma once

#include "algos/algorithm.hpp"

namespace uzip {

/// How the ranks of one host are carried over to those of another.
enum class Symmetry : uint8_t {
  kNone,
  kRotation,  ///< rank -> rank + d (modulo the number of ranks)
  kExclusive  ///< rank -> rank xor d
};

/// The symmetry of an algorithm's schedules for `shape`, for steps of whole hosts of `host` ranks.
/// Looks at the ranks of a few hosts: the first two, the one in the middle and the last.
Symmetry find_symmetry(const Algorithm& algorithm, const Shape& shape, int host);

/// Where `peer` is for the rank of the first host that stands for rank `of`: carries `of` to its
/// place in the first host, and `peer` with it.
inline int carried(Symmetry symmetry, int peer, int of, int host, int size) {
  const int moved = of - of % host;
  if (symmetry == Symmetry::kRotation) return (peer - moved + size) % size;
  return symmetry == Symmetry::kExclusive ? peer ^ moved : peer;
}

}  // namespace uzip
