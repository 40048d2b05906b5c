// The binomial tree of a rooted collective: rank v places after the root is the child of the rank
// that has v's lowest one bit cleared. So the subtree of v holds v and the next ranks, as many as
// that bit says.
#pragma once

#include "algos/rank_math.hpp"
#include "algos/schedule_builder.hpp"

#include <algorithm>

namespace uzip {

class BinomialTree {
 public:
  BinomialTree(const Shape& shape, int rank)
      : size_(shape.size), root_(shape.root), place_(rank_after(rank, -shape.root, shape.size)) {}

  bool is_root() const { return place_ == 0; }
  /// How many places after the root, going around.
  int place() const { return place_; }
  int parent() const { return rank_at(place_ & (place_ - 1)); }
  /// The k-th child is 2^k places after its parent.
  int child(int k) const { return rank_at(place_ + (1 << k)); }
  int children() const {
    int count = 0;
    while ((place_ & (1 << count)) == 0 && place_ + (1 << count) < size_) ++count;
    return count;
  }
  /// Ranks in the subtree of the k-th child, and of this rank, itself included.
  int descendants(int k) const { return std::min(1 << k, size_ - place_ - (1 << k)); }
  int descendants() const {
    return is_root() ? size_ : std::min(place_ & -place_, size_ - place_);
  }
  int rank_at(int place) const { return rank_after(root_, place, size_); }

 private:
  int size_;
  int root_;
  int place_;
};

/// Scratch for the blocks of a rank's subtree, the own one first, the others in the order of their
/// places in the tree: what a child sends or gets is one slice.
class BlocksInTreeOrder {
 public:
  BlocksInTreeOrder(const Shape& shape, const BinomialTree& tree, ScheduleBuilder& builder) {
    starts_.push_back(0);
    for (int i = 0; i < tree.descendants(); ++i) {
      const int rank = tree.rank_at(tree.place() + i);
      starts_.push_back(starts_.back() + shape.counts[static_cast<size_t>(rank)]);
    }
    offset_ = builder.scratch(starts_.back()).offset;
  }

  /// Of the ranks `first` to `end` - 1 places after this one.
  Slice range(int first, int end) const {
    const size_t begin = starts_[static_cast<size_t>(first)];
    return {Slot::kScratch, offset_ + begin, starts_[static_cast<size_t>(end)] - begin};
  }
  /// The same, block by block.
  std::vector<Slice> blocks(int first, int end) const {
    std::vector<Slice> slices;
    for (int i = first; i < end; ++i) slices.push_back(range(i, i + 1));
    return slices;
  }

 private:
  std::vector<size_t> starts_;
  size_t offset_ = 0;
};

}  // namespace uzip
