// The verifier's second part: sends and receives meet in pairs.
#include "algos/verify_parts.hpp"

#include <algorithm>
#include <tuple>

namespace uzip {
namespace {

// One end of a message.
struct End {
  int from;
  int to;
  uint32_t message;
  StepId id;

  std::tuple<int, int, uint32_t> key() const { return {from, to, message}; }
};

Status check_numbers(const Ensemble& ensemble, const std::vector<End>& ends) {
  uint32_t expected = 0;
  for (size_t i = 0; i < ends.size(); ++i) {
    const bool new_pair =
        i == 0 || ends[i].from != ends[i - 1].from || ends[i].to != ends[i - 1].to;
    expected = new_pair ? 0 : expected + 1;
    if (ends[i].message != expected) {
      return ensemble.fault(ends[i].id, "should be message " + std::to_string(expected));
    }
  }
  return Status();
}

}  // namespace

Status match_messages(Ensemble& ensemble) {
  std::vector<End> sends;
  std::vector<End> receives;
  for (int rank = 0; rank < ensemble.size(); ++rank) {
    for (uint32_t number = 0; number < ensemble.schedules[rank].steps.size(); ++number) {
      const StepId id{rank, number};
      const Step& step = ensemble.step(id);
      if (step.verb == Verb::kSend) sends.push_back({rank, step.peer, step.message, id});
      if (step.verb == Verb::kRecv) receives.push_back({step.peer, rank, step.message, id});
    }
  }
  const auto by_key = [](const End& a, const End& b) { return a.key() < b.key(); };
  std::sort(sends.begin(), sends.end(), by_key);
  std::sort(receives.begin(), receives.end(), by_key);
  UZIP_RETURN_IF_ERROR(check_numbers(ensemble, sends));
  UZIP_RETURN_IF_ERROR(check_numbers(ensemble, receives));

  for (size_t i = 0; i < std::max(sends.size(), receives.size()); ++i) {
    if (i == receives.size() || (i < sends.size() && sends[i].key() < receives[i].key())) {
      return ensemble.fault(sends[i].id, "nobody receives this");
    }
    if (i == sends.size() || receives[i].key() < sends[i].key()) {
      return ensemble.fault(receives[i].id, "nobody sends this");
    }
    const Step& send = ensemble.step(sends[i].id);
    const Step& receive = ensemble.step(receives[i].id);
    if (send.src.length != receive.dst.length || send.part != receive.part || send.pieces != receive.pieces ||
        (send.src.slot == Slot::kWire) != (receive.dst.slot == Slot::kWire)) {
      return ensemble.fault(receives[i].id, "does not fit " + ensemble.name(sends[i].id));
    }
    ensemble.partners[sends[i].id.rank][sends[i].id.step] = receives[i].id;
    ensemble.partners[receives[i].id.rank][receives[i].id.step] = sends[i].id;
  }
  return Status();
}

}  // namespace uzip
