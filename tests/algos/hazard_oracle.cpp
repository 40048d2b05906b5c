#include "algos/hazard_oracle.hpp"

#include <algorithm>
#include <set>
#include <vector>

namespace uzip {
namespace {

using Addresses = std::set<size_t>;

constexpr size_t kFarApart = 1 << 20;

// Where a slice lies in one flat memory. The smaller buffer lies within the other one in place.
size_t base_address(Slot slot, const Shape& shape, int rank) {
  size_t input = 0;
  size_t output = kFarApart;
  if (shape.in_place) {
    output = input;
    if (shape.coll == Coll::kReduceScatter || shape.coll == Coll::kScatter) output += shape.offset(rank);
    if (shape.coll == Coll::kAllgather || shape.coll == Coll::kGather) input += shape.offset(rank);
  }
  switch (slot) {
    case Slot::kInput:
      return input;
    case Slot::kOutput:
      return output;
    case Slot::kScratch:
      return 2 * kFarApart;
    case Slot::kWire:
      return 3 * kFarApart;
  }
  return 0;
}

class Footprint {
 public:
  Footprint(const Step& step, const Shape& shape, int rank) : shape_(shape), rank_(rank) {
    if (step.verb == Verb::kRecv) {
      add(writes, step.dst, step.part);
    } else if (step.verb == Verb::kSend) {
      add(reads, step.src, step.part);
      add(reads, step.origin, Part::kWhole);
    } else {
      add(reads, step.src, Part::kWhole);
      for (const Slice& source : step.sources) add(reads, source, Part::kWhole);
      add(writes, step.dst, step.part);
      if (step.part == Part::kCoded) add(reads, step.dst, Part::kPlain);
    }
  }

  bool conflicts(const Footprint& other) const {
    return meet(writes, other.writes) || meet(writes, other.reads) || meet(reads, other.writes);
  }

  Addresses reads;
  Addresses writes;

 private:
  void add(Addresses& addresses, const Slice& slice, Part part) {
    if (slice.length == 0) return;
    const size_t base = base_address(slice.slot, shape_, rank_);
    if (slice.slot == Slot::kWire) {
      if (part != Part::kCoded) addresses.insert(base + 2 * slice.offset);
      if (part != Part::kPlain) addresses.insert(base + 2 * slice.offset + 1);
      return;
    }
    for (size_t i = 0; i < slice.length; ++i) addresses.insert(base + slice.offset + i);
  }

  static bool meet(const Addresses& a, const Addresses& b) {
    return std::any_of(a.begin(), a.end(), [&](size_t address) { return b.count(address) > 0; });
  }

  const Shape& shape_;
  int rank_;
};

// ancestors[i][j]: step i waits for step j, over any number of dependencies.
std::vector<std::vector<bool>> ancestors_of(const Schedule& schedule) {
  const size_t steps = schedule.steps.size();
  std::vector<std::vector<bool>> ancestors(steps, std::vector<bool>(steps));
  for (size_t i = 0; i < steps; ++i) {
    for (uint32_t earlier : schedule.steps[i].depends_on) {
      ancestors[i][earlier] = true;
      for (size_t j = 0; j < steps; ++j) {
        if (ancestors[earlier][j]) ancestors[i][j] = true;
      }
    }
  }
  return ancestors;
}

}  // namespace

size_t address_of(const Slice& slice, const Shape& shape, int rank) {
  return base_address(slice.slot, shape, rank) + slice.offset;
}

bool is_callers(size_t address) { return address < 2 * kFarApart; }

std::string find_race(const Schedule& schedule, const Shape& shape, int rank) {
  const auto ancestors = ancestors_of(schedule);
  std::vector<Footprint> footprints;
  for (const Step& step : schedule.steps) footprints.emplace_back(step, shape, rank);
  for (size_t i = 0; i < footprints.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (!ancestors[i][j] && footprints[i].conflicts(footprints[j])) {
        return "step " + std::to_string(j) + " and step " + std::to_string(i);
      }
    }
  }
  return "";
}

std::string find_redundant_dependency(const Schedule& schedule) {
  const auto ancestors = ancestors_of(schedule);
  for (size_t i = 0; i < schedule.steps.size(); ++i) {
    for (uint32_t a : schedule.steps[i].depends_on) {
      for (uint32_t b : schedule.steps[i].depends_on) {
        if (ancestors[b][a]) return "step " + std::to_string(i) + " on step " + std::to_string(a);
      }
    }
  }
  return "";
}

bool is_barrier(const std::vector<Schedule>& schedules) {
  using Ranks = std::set<size_t>;
  std::vector<std::vector<Ranks>> known;  // by rank and step
  for (size_t rank = 0; rank < schedules.size(); ++rank) {
    known.emplace_back(schedules[rank].steps.size(), Ranks{rank});
  }
  // News travels along dependencies and messages until nobody learns anything any more.
  for (bool learnt = true; learnt;) {
    learnt = false;
    const auto tell = [&](const Ranks& news, Ranks& listener) {
      const size_t before = listener.size();
      listener.insert(news.begin(), news.end());
      learnt = learnt || listener.size() > before;
    };
    for (size_t rank = 0; rank < schedules.size(); ++rank) {
      for (size_t i = 0; i < schedules[rank].steps.size(); ++i) {
        const Step& step = schedules[rank].steps[i];
        for (uint32_t earlier : step.depends_on) tell(known[rank][earlier], known[rank][i]);
        if (step.verb != Verb::kSend) continue;
        const std::vector<Step>& others = schedules[static_cast<size_t>(step.peer)].steps;
        for (size_t j = 0; j < others.size(); ++j) {
          if (others[j].verb == Verb::kRecv && static_cast<size_t>(others[j].peer) == rank &&
              others[j].message == step.message) {
            tell(known[rank][i], known[static_cast<size_t>(step.peer)][j]);
          }
        }
      }
    }
  }
  return std::all_of(known.begin(), known.end(), [&](const std::vector<Ranks>& steps) {
    Ranks all;
    for (const Ranks& ranks : steps) all.insert(ranks.begin(), ranks.end());
    return all.size() == schedules.size();
  });
}

}  // namespace uzip
