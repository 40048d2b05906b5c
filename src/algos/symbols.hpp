// Symbolic values for the verifier: what an element is (which element of the collective, how its
// value was computed from the ranks' contributions), held for runs of consecutive elements, so that
// the cost depends on the number of slices and not on the number of elements.
#pragma once

#include "base/status.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace uzip {

/// All expressions that occur, each once: two values have the same bits for every input if their
/// numbers are equal. Number r < size is rank r's contribution.
class Expressions {
 public:
  /// `commutative`: the operation is, so the order of two operands does not matter (but no operation on floats is
  /// associative).
  explicit Expressions(int size, bool commutative = true);

  /// The reduction of `operands` in this order. Errors: a rank would contribute twice, an operand was divided already,
  /// or `average` although a rank is missing.
  Result<uint32_t> reduce(std::span<const uint32_t> operands, bool average);

  /// Whether every rank has contributed (no rank can have twice).
  bool complete(uint32_t expression) const { return nodes_[expression].ranks == size_; }
  /// Whether the first `ranks` ranks have contributed, and no others.
  bool is_prefix(uint32_t expression, size_t ranks) const;
  bool averaged(uint32_t expression) const { return nodes_[expression].average; }
  /// Whether the contributions stand in the order of the ranks, however they are grouped.
  bool in_rank_order(uint32_t expression) const { return nodes_[expression].in_rank_order; }

  /// "(1 + 2) + 0", for messages; long ones end in "...".
  std::string text(uint32_t expression) const;

 private:
  struct Node {
    std::vector<uint32_t> operands;  // none: a rank's contribution
    std::vector<bool> contributors;
    size_t ranks;  // number of contributors
    bool average;
    bool in_rank_order;
    size_t first;  // contributor
    size_t last;
  };

  void append_text(uint32_t expression, std::string* text) const;

  size_t size_;
  bool commutative_;
  std::vector<Node> nodes_;
  std::map<std::pair<bool, std::vector<uint32_t>>, uint32_t> known_;
};

/// `length` elements: element `index` + i of the collective, computed as `expression`, i < length.
struct SymbolRun {
  size_t length;
  uint32_t expression;
  size_t index;

  bool operator==(const SymbolRun&) const = default;
};

/// Consecutive values, in as few runs as possible, so that equal values compare equal.
using Symbols = std::vector<SymbolRun>;
void append_run(Symbols& symbols, const SymbolRun& run);
/// The operands' values reduced element by element. All must have the same length and the same
/// indices.
Result<Symbols> reduce_symbols(Expressions& expressions, std::span<const Symbols> operands,
                               bool average);

/// Elements of one buffer; at first nobody has written any.
class SymbolicMemory {
 public:
  void write(size_t begin, const Symbols& symbols);
  /// False if some of the elements have never been written.
  bool read(size_t begin, size_t length, Symbols* symbols) const;

 private:
  struct Piece {
    size_t begin;
    size_t end;
    uint32_t expression;
    size_t index;  // of the element at `begin`
  };

  std::vector<Piece> pieces_;  // ascending, disjoint
};

}  // namespace uzip
