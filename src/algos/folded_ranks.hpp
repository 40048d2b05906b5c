// A power of two of ranks, for algorithms whose exchange needs one: of the first ranks every even one
// is folded into the odd one after it, which takes part for both.
#pragma once

#include <cstddef>

namespace uzip {

struct FoldedRanks {
  explicit FoldedRanks(int size) {
    while (2 * active <= size) active *= 2;
    extra = size - active;
  }
  /// Is folded, and takes part through the rank after it.
  bool is_extra(int rank) const { return rank < 2 * extra && rank % 2 == 0; }
  /// Takes part for the rank before it, too.
  bool stands_for_two(int rank) const { return rank < 2 * extra && rank % 2 == 1; }
  /// The numbers of those that take part, 0 to active - 1, follow the ranks.
  int number_of(int rank) const { return rank < 2 * extra ? rank / 2 : rank - extra; }
  int rank_of(int number) const { return number < extra ? 2 * number + 1 : number + extra; }
  /// The first of the one or two ranks that a number stands for.
  int first_rank_of(int number) const { return number < extra ? 2 * number : number + extra; }

  int active = 1;
  int extra = 0;
};

}  // namespace uzip
