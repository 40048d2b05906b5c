#include "algos/mutants.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace uzip {
namespace {

class Mutator {
 public:
  Mutator(const Schedule& original, const Shape& shape) : original_(original), shape_(shape) {}

  std::vector<Mutant> all() {
    for (step_ = 0; step_ < original_.steps.size(); ++step_) {
      mutate_dependencies();
      mutate_slices();
      mutate_message();
      mutate_reduction();
      mutate_frame();
      drop_step();
    }
    return std::move(mutants_);
  }

 private:
  const Step& step() const { return original_.steps[step_]; }
  bool waits_for(uint32_t earlier) const {
    return std::binary_search(step().depends_on.begin(), step().depends_on.end(), earlier);
  }

  void add(const char* kind, const std::function<void(Step&)>& change) {
    Schedule schedule = original_;
    change(schedule.steps[step_]);
    add(kind, std::move(schedule));
  }

  void add(const char* kind, Schedule schedule) {
    link_dependents(schedule);
    mutants_.push_back({kind, step_, std::move(schedule)});
  }

  void mutate_dependencies() {
    for (size_t i = 0; i < step().depends_on.size(); ++i) {
      add("drop a dependency", [i](Step& s) {
        s.depends_on.erase(s.depends_on.begin() + static_cast<std::ptrdiff_t>(i));
      });
      const uint32_t earlier = step().depends_on[i];
      if (earlier > 0 && !waits_for(earlier - 1)) {
        add("wait for an earlier step", [i](Step& s) { --s.depends_on[i]; });
      }
    }
    if (step_ > 0 && !waits_for(step_ - 1)) {
      add("wait for the step before", [&](Step& s) { s.depends_on.push_back(step_ - 1); });
    }
  }

  void mutate_slices() {
    std::vector<std::function<Slice&(Step&)>> slices;
    if (step().src.length > 0) slices.push_back([](Step& s) -> Slice& { return s.src; });
    if (step().dst.length > 0) slices.push_back([](Step& s) -> Slice& { return s.dst; });
    for (size_t i = 0; i < step().sources.size(); ++i) {
      slices.push_back([i](Step& s) -> Slice& { return s.sources[i]; });
    }
    for (const auto& slice : slices) {
      const Slice before = slice(const_cast<Step&>(step()));
      add("shift a slice up", [&](Step& s) { slice(s).offset += 1; });
      add("shift a slice by its length", [&](Step& s) { slice(s).offset += before.length; });
      if (before.offset > 0) add("shift a slice down", [&](Step& s) { slice(s).offset -= 1; });
      add("shorten a slice", [&](Step& s) { slice(s).length -= 1; });
      add("lengthen a slice", [&](Step& s) { slice(s).length += 1; });
      mutate_slot(before, slice);
    }
  }

  void mutate_slot(const Slice& before, const std::function<Slice&(Step&)>& slice) {
    for (Slot slot : {Slot::kInput, Slot::kOutput, Slot::kScratch}) {
      // In place, the caller's two buffers are one: another name is no fault.
      if (slot == before.slot || before.slot == Slot::kWire || shape_.in_place) continue;
      add("take another buffer", [&](Step& s) { slice(s).slot = slot; });
    }
  }

  void mutate_message() {
    if (step().peer < 0) return;
    for (int peer = 0; peer < shape_.size; ++peer) {
      if (peer != step().peer) add("change the peer", [&](Step& s) { s.peer = peer; });
    }
    add("wrong message number", [](Step& s) { s.message += 1; });
    if (step().message > 0) add("wrong message number", [](Step& s) { s.message -= 1; });
    for (uint32_t other = step_ + 1; other < original_.steps.size(); ++other) {
      const Step& later = original_.steps[other];
      if (later.verb != step().verb || later.peer != step().peer) continue;
      Schedule schedule = original_;
      std::swap(schedule.steps[step_].message, schedule.steps[other].message);
      add("swap two messages", std::move(schedule));
    }
  }

  void mutate_reduction() {
    if (step().verb != Verb::kReduce && step().verb != Verb::kDecodeReduce) return;
    const size_t sources = step().sources.size();
    for (size_t i = 0; i < sources; ++i) {
      add("drop a source",
          [i](Step& s) { s.sources.erase(s.sources.begin() + static_cast<std::ptrdiff_t>(i)); });
      add("take a source twice", [i](Step& s) { s.sources.push_back(s.sources[i]); });
      // The order of two makes no difference to the bits.
      if (sources == 2) continue;
      add("change the order of sources",
          [&](Step& s) { std::swap(s.sources[i], s.sources[(i + 1) % sources]); });
    }
    add("change which reduction is the last", [](Step& s) { s.average = !s.average; });
    add("copy instead of reducing", [](Step& s) {
      s.verb = Verb::kCopy;
      s.src = s.sources[0];
      s.sources.clear();
      s.average = false;
    });
  }

  void mutate_frame() {
    for (Part part : {Part::kWhole, Part::kPlain, Part::kCoded}) {
      if (part != step().part) add("take another part", [&](Step& s) { s.part = part; });
    }
    if (step().origin.length == 0) return;
    add("forget the origin", [](Step& s) { s.origin = {}; });
    add("shift the origin", [](Step& s) { s.origin.offset += 1; });
  }

  // The step is gone, and those that waited for it wait for what it waited for.
  void drop_step() {
    Schedule schedule = original_;
    const std::vector<uint32_t> inherited = step().depends_on;
    schedule.steps.erase(schedule.steps.begin() + step_);
    for (Step& later : schedule.steps) {
      std::vector<uint32_t>& before = later.depends_on;
      const auto found = std::find(before.begin(), before.end(), step_);
      if (found != before.end()) {
        before.erase(found);
        before.insert(before.end(), inherited.begin(), inherited.end());
      }
      for (uint32_t& number : before) number -= number > step_ ? 1 : 0;
      std::sort(before.begin(), before.end());
      before.erase(std::unique(before.begin(), before.end()), before.end());
    }
    add("drop the step", std::move(schedule));
  }

  const Schedule& original_;
  const Shape& shape_;
  uint32_t step_ = 0;
  std::vector<Mutant> mutants_;
};

}  // namespace

std::vector<Mutant> mutants_of(const Schedule& schedule, const Shape& shape) {
  return Mutator(schedule, shape).all();
}

}  // namespace uzip
