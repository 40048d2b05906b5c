#include "algos/group_exchange.hpp"

#include "algos/rank_math.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace uzip {
namespace {

/// Pieces with the same speaker in a group: one slice, one message.
struct Run {
  int speaker;
  size_t first;
  size_t end;
  Slice slice;
};

class Exchange {
 public:
  Exchange(const RankGroups& groups, std::vector<OwnedPiece> pieces, Adjacent adjacent, ScheduleBuilder& builder)
      : groups_(groups), pieces_(std::move(pieces)), adjacent_(adjacent), rank_(groups.rank()), builder_(builder) {
    own_ = static_cast<size_t>(&piece_of(pieces_, rank_) - pieces_.data());
  }

  void reduce(size_t number, Slice result);
  void distribute(size_t number);
  Slice& mine() { return pieces_[own_].slice; }

 private:
  std::vector<Run> runs_of(size_t number) const;
  bool holds(const Run& run, int owner) const;
  std::vector<Slice> slices_of(const Run& run) const;

  const RankGroups& groups_;
  std::vector<OwnedPiece> pieces_;
  const Adjacent adjacent_;
  const int rank_;
  ScheduleBuilder& builder_;
  size_t own_;
};

// One of each speaker after the other, beginning with the speakers after this rank, so that ranks do the same as seen from
// where they stand. Of one speaker, that with its own piece comes last: all ranks see these in the same order, in which
// their messages are numbered.
std::vector<Run> Exchange::runs_of(size_t number) const {
  std::map<int, std::vector<Run>> by_speaker;
  int last = -1;
  for (size_t i = 0; i < pieces_.size(); ++i) {
    const int speaker = groups_.speaker(number, pieces_[i].owner);
    std::vector<Run>& runs = by_speaker[speaker];
    if (speaker != last || adjacent_ == Adjacent::kApart)
      runs.push_back({speaker, i, i, {pieces_[i].slice.slot, pieces_[i].slice.offset, 0}});
    runs.back().slice.length += pieces_[i].slice.length;
    runs.back().end = i + 1;
    last = speaker;
  }
  std::vector<std::vector<Run>> turns;
  for (auto& [speaker, runs] : by_speaker) {
    const auto own = std::find_if(runs.begin(), runs.end(), [&](const Run& run) { return holds(run, run.speaker); });
    std::rotate(runs.begin(), own + 1, runs.end());
    turns.push_back(std::move(runs));
  }
  const auto after = std::find_if(turns.begin(), turns.end(), [&](const auto& runs) { return runs[0].speaker > rank_; });
  std::rotate(turns.begin(), after, turns.end());
  return take_in_turn(turns);
}

bool Exchange::holds(const Run& run, int owner) const {
  for (size_t i = run.first; i < run.end; ++i)
    if (pieces_[i].owner == owner) return true;
  return false;
}

std::vector<Slice> Exchange::slices_of(const Run& run) const {
  std::vector<Slice> slices;
  for (size_t i = run.first; i < run.end; ++i) slices.push_back(pieces_[i].slice);
  return slices;
}

// What each part of the group has of a piece goes to the speaker for it, who reduces that.
void Exchange::reduce(size_t number, Slice result) {
  const GroupLevel& level = groups_.levels()[number];
  const bool last = number + 1 == groups_.levels().size();
  const std::vector<Run> runs = runs_of(number);
  for (const Run& run : runs) {
    if (run.speaker != rank_ && level.speaker(level.own, run.speaker) == rank_) builder_.send(run.slice, run.speaker);
  }
  for (const Run& run : runs) {
    if (run.speaker != rank_) continue;
    std::vector<Slice> operands(level.parts.size(), run.slice);
    for (int i = level.size(); --i > 0;) {  // who sends this one last comes last
      const int part = rank_after(level.own, i, level.size());
      operands[part] = builder_.scratch(run.slice.length);
      builder_.recv(level.speaker(part, rank_), operands[part]);
    }
    Slice sum = last ? result : builder_.scratch(run.slice.length);
    builder_.reduce(operands, sum, last);
    for (size_t i = run.first; i < run.end; ++i) {
      pieces_[i].slice.slot = sum.slot;
      pieces_[i].slice.offset = sum.offset;
      sum.offset += pieces_[i].slice.length;
    }
  }
}

// The speaker for a piece sends it to those of the other parts, as the frames that it came in.
void Exchange::distribute(size_t number) {
  const GroupLevel& level = groups_.levels()[number];
  std::vector<Run> runs = runs_of(number);
  std::reverse(runs.begin(), runs.end());
  for (const Run& run : runs) {
    for (int i = 1; run.speaker == rank_ && i < level.size(); ++i)
      builder_.send(slices_of(run), level.speaker(rank_after(level.own, i, level.size()), rank_));
  }
  for (const Run& run : runs) {
    if (run.speaker != rank_ && level.speaker(level.own, run.speaker) == rank_) builder_.recv(run.speaker, slices_of(run));
  }
}

}  // namespace

std::vector<OwnedPiece> divide_in_turn(const RankGroups& groups, Slot slot, size_t total) {
  const std::vector<size_t> shares = even_shares(total, static_cast<int>(groups.in_turn().size()));
  std::vector<OwnedPiece> pieces;
  for (size_t offset = 0, i = 0; i < shares.size(); offset += shares[i++])
    pieces.push_back({groups.in_turn()[i], {slot, offset, shares[i]}});
  return pieces;
}

const OwnedPiece& piece_of(const std::vector<OwnedPiece>& pieces, int rank) {
  return *std::find_if(pieces.begin(), pieces.end(), [&](const OwnedPiece& piece) { return piece.owner == rank; });
}

void reduce_to_owners(const RankGroups& groups, std::vector<OwnedPiece> pieces, Adjacent adjacent, Slice result,
                      ScheduleBuilder& builder) {
  Exchange exchange(groups, std::move(pieces), adjacent, builder);
  for (size_t number = 0; number < groups.levels().size(); ++number) exchange.reduce(number, result);
}

void send_to_all(const RankGroups& groups, const std::vector<OwnedPiece>& pieces, Adjacent adjacent, Slice mine,
                 ScheduleBuilder& builder) {
  Exchange exchange(groups, pieces, adjacent, builder);
  const Slice place = std::exchange(exchange.mine(), mine);
  for (size_t number = groups.levels().size(); number-- > 0;) exchange.distribute(number);
  builder.copy(mine, place);
}

}  // namespace uzip
