// Expressions are numbered as they occur, equal ones alike, so comparing two values is comparing
// two numbers.
#include "algos/symbols.hpp"

#include <algorithm>
#include <utility>

namespace uzip {
namespace {

constexpr size_t kLongestText = 200;

}  // namespace

Expressions::Expressions(int size, bool commutative)
    : size_(static_cast<size_t>(size)), commutative_(commutative) {
  for (size_t rank = 0; rank < size_; ++rank) {
    Node node{{}, std::vector<bool>(size_), 1, false, true, rank, rank};
    node.contributors[rank] = true;
    nodes_.push_back(std::move(node));
  }
}

Result<uint32_t> Expressions::reduce(std::span<const uint32_t> operands, bool average) {
  std::vector<uint32_t> ordered(operands.begin(), operands.end());
  if (commutative_ && ordered.size() == 2 && ordered[0] > ordered[1]) std::swap(ordered[0], ordered[1]);
  std::pair key{average, std::move(ordered)};
  if (const auto known = known_.find(key); known != known_.end()) return known->second;

  Node node{key.second, std::vector<bool>(size_), 0, average, true, size_, 0};
  for (uint32_t operand : operands) {
    const Node& part = nodes_[operand];
    node.in_rank_order = node.in_rank_order && part.in_rank_order && (node.ranks == 0 || node.last < part.first);
    node.first = std::min(node.first, part.first);
    node.last = std::max(node.last, part.last);
    if (nodes_[operand].average) {
      return error(UZIP_ERR_INTERNAL, "operand %s is complete and divided already",
                   text(operand).c_str());
    }
    for (size_t rank = 0; rank < size_; ++rank) {
      if (!nodes_[operand].contributors[rank]) continue;
      if (node.contributors[rank]) {
        return error(UZIP_ERR_INTERNAL, "rank %zu would contribute twice", rank);
      }
      node.contributors[rank] = true;
      ++node.ranks;
    }
  }
  if (average && node.ranks < size_) {
    return error(UZIP_ERR_INTERNAL,
                 "marked as the last reduction, but only %zu of %zu ranks are in", node.ranks,
                 size_);
  }
  const uint32_t expression = static_cast<uint32_t>(nodes_.size());
  nodes_.push_back(std::move(node));
  known_.emplace(std::move(key), expression);
  return expression;
}

bool Expressions::is_prefix(uint32_t expression, size_t ranks) const {
  const Node& node = nodes_[expression];
  return node.ranks == ranks && std::all_of(node.contributors.begin(),
                                            node.contributors.begin() + static_cast<std::ptrdiff_t>(ranks),
                                            [](bool contributes) { return contributes; });
}

std::string Expressions::text(uint32_t expression) const {
  std::string text;
  append_text(expression, &text);
  return text;
}

void Expressions::append_text(uint32_t expression, std::string* text) const {
  const Node& node = nodes_[expression];
  if (node.operands.empty()) *text += std::to_string(expression);
  const char* separator = "";
  for (uint32_t operand : node.operands) {
    *text += separator;
    separator = " + ";
    if (text->size() > kLongestText) {
      *text += "...";
      return;
    }
    const bool brackets = !nodes_[operand].operands.empty();
    if (brackets) *text += "(";
    append_text(operand, text);
    if (brackets) *text += ")";
  }
}

void append_run(Symbols& symbols, const SymbolRun& run) {
  if (!symbols.empty()) {
    SymbolRun& last = symbols.back();
    if (last.expression == run.expression && last.index + last.length == run.index) {
      last.length += run.length;
      return;
    }
  }
  symbols.push_back(run);
}

Result<Symbols> reduce_symbols(Expressions& expressions, std::span<const Symbols> operands,
                               bool average) {
  struct Cursor {
    size_t run = 0;
    size_t used = 0;  // of that run
  };
  std::vector<Cursor> cursors(operands.size());
  std::vector<uint32_t> values(operands.size());
  Symbols result;
  while (cursors[0].run < operands[0].size()) {
    const size_t index = operands[0][cursors[0].run].index + cursors[0].used;
    size_t length = SIZE_MAX;
    for (size_t i = 0; i < operands.size(); ++i) {
      const SymbolRun& run = operands[i][cursors[i].run];
      if (run.index + cursors[i].used != index) {
        return error(UZIP_ERR_INTERNAL, "element %zu of source %zu meets element %zu of source 0",
                     run.index + cursors[i].used, i, index);
      }
      values[i] = run.expression;
      length = std::min(length, run.length - cursors[i].used);
    }
    UZIP_ASSIGN_OR_RETURN(const uint32_t expression, expressions.reduce(values, average));
    append_run(result, {length, expression, index});
    for (size_t i = 0; i < operands.size(); ++i) {
      cursors[i].used += length;
      if (cursors[i].used == operands[i][cursors[i].run].length)
        cursors[i] = {cursors[i].run + 1, 0};
    }
  }
  return result;
}

void SymbolicMemory::write(size_t begin, const Symbols& symbols) {
  size_t end = begin;
  for (const SymbolRun& run : symbols) end += run.length;
  if (begin == end) return;

  auto first = std::partition_point(pieces_.begin(), pieces_.end(),
                                    [&](const Piece& piece) { return piece.end <= begin; });
  const auto last = std::partition_point(first, pieces_.end(),
                                         [&](const Piece& piece) { return piece.begin < end; });
  std::vector<Piece> written;
  if (first != last && first->begin < begin) {
    written.push_back({first->begin, begin, first->expression, first->index});
  }
  for (size_t position = begin; const SymbolRun& run : symbols) {
    written.push_back({position, position + run.length, run.expression, run.index});
    position += run.length;
  }
  if (first != last && std::prev(last)->end > end) {
    const Piece& cut = *std::prev(last);
    written.push_back({end, cut.end, cut.expression, cut.index + (end - cut.begin)});
  }
  const auto overwritten = std::min(last - first, static_cast<std::ptrdiff_t>(written.size()));
  const auto rest = std::copy(written.begin(), written.begin() + overwritten, first);
  if (rest != last) {
    pieces_.erase(rest, last);
  } else {
    pieces_.insert(rest, written.begin() + overwritten, written.end());
  }
}

bool SymbolicMemory::read(size_t begin, size_t length, Symbols* symbols) const {
  symbols->clear();
  const size_t end = begin + length;
  auto piece = std::partition_point(pieces_.begin(), pieces_.end(),
                                    [&](const Piece& piece) { return piece.end <= begin; });
  for (size_t position = begin; position < end; ++piece) {
    if (piece == pieces_.end() || piece->begin > position) return false;
    const size_t upto = std::min(end, piece->end);
    append_run(*symbols,
               {upto - position, piece->expression, piece->index + (position - piece->begin)});
    position = upto;
  }
  return true;
}

}  // namespace uzip
