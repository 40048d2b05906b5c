// Two binary trees over the ranks other than the root, both below the root: who passes things on in one tree is a leaf of
// the other, so that with half of a vector in each every rank sends as much as it receives.
//   P. Sanders, J. Speck, J. L. Traeff: Two-Tree Algorithms for Full Bandwidth Broadcast, Reduction and Scan, Parallel
//   Computing 35(12), 2009.
// In the first tree the rank v places after the root stands at position v = 1 ... P-1; the children of a position are
// half of its lowest one bit to the left and to the right of it (to the right less, if there are not so many). In the
// second tree the order is reversed, or where P-1 is odd shifted by one place, so that odd positions become even ones.
#pragma once

#include "algos/rank_math.hpp"
#include "algos/schedule.hpp"

#include <vector>

namespace uzip {

/// How many times a port is busy with a vector's bytes: shares of both trees meet there.
inline constexpr double kTreeWire = 1.35;

class DoubleTree {
 public:
  static constexpr int kTrees = 2;

  DoubleTree(const Shape& shape, int rank)
      : others_(shape.size - 1), root_(shape.root), place_(rank_after(rank, -shape.root, shape.size)) {}

  bool is_root() const { return place_ == 0; }
  /// The rank above this one, which is not the root.
  int parent(int tree) const {
    const int position = position_of(place_, tree);
    const int low = position & -position;
    const int right_of = position ^ low;  // as a right child, or above the last position
    const int left_of = right_of | (low << 1);
    return rank_at(left_of <= others_ ? left_of : right_of, tree);
  }
  /// Those below to the left and to the right; -1 if there is none. The root has one to the right.
  struct Children {
    int left = -1;
    int right = -1;
  };
  Children children(int tree) const {
    Children found;
    const int position = is_root() ? 0 : position_of(place_, tree);
    int step = is_root() ? 1 << doubling_rounds(others_ + 1) : (position & -position) / 2;
    if (!is_root() && step > 0) found.left = rank_at(position - step, tree);
    while (step > 0 && position + step > others_) step /= 2;
    if (step > 0) found.right = rank_at(position + step, tree);
    return found;
  }

 private:
  bool reversed() const { return others_ % 2 == 0; }
  int position_of(int place, int tree) const {
    if (tree == 0) return place;
    return reversed() ? others_ + 1 - place : place % others_ + 1;
  }
  int rank_at(int position, int tree) const {
    int place = position;
    if (tree > 0 && position > 0) place = reversed() ? others_ + 1 - position : (position + others_ - 2) % others_ + 1;
    return rank_after(root_, place, others_ + 1);
  }

  int others_;
  int root_;
  int place_;  // after the root
};

}  // namespace uzip
