// A value for every position of [0, 2^64), piecewise constant. Used to find, in about logarithmic
// time, the steps that touched a range of elements before.
#pragma once

#include <cstddef>
#include <iterator>
#include <map>

namespace uzip {

template <class Value>
class IntervalMap {
 public:
  IntervalMap() { pieces_.emplace(0, Value()); }

  /// Calls visit(Value&) once for each piece of [begin, end), which is cut at both ends before.
  template <class Visitor>
  void for_each(size_t begin, size_t end, Visitor&& visit) {
    if (begin >= end) return;
    auto piece = cut(begin);
    const auto last = cut(end);
    for (; piece != last; ++piece) visit(piece->second);
  }

  /// Gives all of [begin, end) one value, as one piece.
  void assign(size_t begin, size_t end, Value value) {
    if (begin >= end) return;
    const auto first = cut(begin);
    const auto last = cut(end);
    first->second = std::move(value);
    pieces_.erase(std::next(first), last);
  }

 private:
  using Pieces = std::map<size_t, Value>;  // by their first position; each reaches to the next one

  typename Pieces::iterator cut(size_t position) {
    const auto after = pieces_.upper_bound(position);
    const auto piece = std::prev(after);
    if (piece->first == position) return piece;
    return pieces_.emplace_hint(after, position, piece->second);
  }

  Pieces pieces_;
};

}  // namespace uzip
