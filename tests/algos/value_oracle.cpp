#include "algos/value_oracle.hpp"

#include "algos/hazard_oracle.hpp"

#include <algorithm>
#include <tuple>

namespace uzip {
namespace {

uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t x = a * 0x9e3779b97f4a7c15u + b + 0x632be59bd9b4e019u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

class Run {
 public:
  Run(const std::vector<Schedule>& schedules, const Shape& shape)
      : schedules_(schedules), shape_(shape), memory_(schedules.size()), places_(schedules.size()) {
    for (const Schedule& schedule : schedules) {
      done_.emplace_back(schedule.steps.size());
      left_ += schedule.steps.size();
    }
  }

  std::optional<Outcome> all() {
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t rank = 0; rank < schedules_.size(); ++rank) {
        for (size_t i = 0; i < schedules_[rank].steps.size(); ++i) {
          if (!done_[rank][i] && can_run(rank, schedules_[rank].steps[i])) {
            execute(rank, schedules_[rank].steps[i]);
            done_[rank][i] = true;
            --left_;
            moved = true;
          }
        }
      }
    }
    if (left_ > 0) return std::nullopt;
    for (std::map<size_t, uint64_t>& memory : memory_) {
      std::erase_if(memory, [](const auto& element) { return !is_callers(element.first); });
    }
    return memory_;
  }

 private:
  using Values = std::vector<uint64_t>;

  bool can_run(size_t rank, const Step& step) const {
    const auto finished = [&](uint32_t earlier) { return done_[rank][earlier]; };
    if (!std::all_of(step.depends_on.begin(), step.depends_on.end(), finished)) return false;
    return step.verb != Verb::kRecv || messages_.count({step.peer, rank, step.message}) > 0;
  }

  Values read(size_t rank, const Slice& slice) {
    if (slice.slot == Slot::kWire) return places_[rank][slice.offset];
    const size_t base = slice.length > 0 ? address_of(slice, shape_, static_cast<int>(rank)) : 0;
    Values values;
    for (size_t i = 0; i < slice.length; ++i) {
      // What nobody has written is the rank's own.
      const auto [element, fresh] = memory_[rank].try_emplace(base + i);
      if (fresh) element->second = mix(rank + 1, base + i);
      values.push_back(element->second);
    }
    return values;
  }

  void write(size_t rank, const Slice& slice, const Values& values) {
    if (slice.slot == Slot::kWire) {
      places_[rank][slice.offset] = values;
      return;
    }
    const size_t base = slice.length > 0 ? address_of(slice, shape_, static_cast<int>(rank)) : 0;
    for (size_t i = 0; i < slice.length && i < values.size(); ++i)
      memory_[rank][base + i] = values[i];
  }

  void execute(size_t rank, const Step& step) {
    switch (step.verb) {
      case Verb::kSend:
        messages_[{static_cast<int>(rank), static_cast<size_t>(step.peer), step.message}] =
            read(rank, step.src);
        return;
      case Verb::kRecv:
        return write(rank, step.dst, messages_[{step.peer, rank, step.message}]);
      case Verb::kReduce:
      case Verb::kDecodeReduce:
        return reduce(rank, step);
      case Verb::kCopy:
      case Verb::kEncode:
      case Verb::kDecode:
        return write(rank, step.dst, read(rank, step.src));
    }
  }

  void reduce(size_t rank, const Step& step) {
    std::vector<Values> sources;
    for (const Slice& source : step.sources) sources.push_back(read(rank, source));
    Values result = sources[0];
    for (size_t i = 0; i < result.size(); ++i) {
      if (sources.size() == 2) {
        const auto [less, more] = std::minmax(sources[0][i], sources[1][i]);
        result[i] = mix(less, more);
      } else {
        for (size_t k = 1; k < sources.size(); ++k) result[i] = mix(result[i], sources[k][i]);
      }
      if (step.average) result[i] = mix(result[i], 1);
    }
    write(rank, step.dst, result);
  }

  const std::vector<Schedule>& schedules_;
  const Shape& shape_;
  std::vector<std::map<size_t, uint64_t>> memory_;                // by rank and address
  std::vector<std::map<size_t, Values>> places_;                  // on the wire, by rank and number
  std::map<std::tuple<int, size_t, uint32_t>, Values> messages_;  // sender, receiver, number
  std::vector<std::vector<bool>> done_;
  size_t left_ = 0;
};

}  // namespace

std::optional<Outcome> run_elementwise(const std::vector<Schedule>& schedules, const Shape& shape) {
  return Run(schedules, shape).all();
}

bool same_but_for_order(const Outcome& a, const Outcome& b) {
  if (a.size() != b.size()) return false;
  std::map<uint64_t, uint64_t> there, back;
  for (size_t rank = 0; rank < a.size(); ++rank) {
    if (a[rank].size() != b[rank].size()) return false;
    for (auto left = a[rank].begin(), right = b[rank].begin(); left != a[rank].end();
         ++left, ++right) {
      if (left->first != right->first) return false;
      if (there.try_emplace(left->second, right->second).first->second != right->second)
        return false;
      if (back.try_emplace(right->second, left->second).first->second != left->second) return false;
    }
  }
  return true;
}

}  // namespace uzip
