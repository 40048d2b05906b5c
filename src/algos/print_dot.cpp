// Writes the schedules of several ranks as a graph for Graphviz.
#include "algos/print.hpp"

#include <map>
#include <tuple>

namespace uzip {
namespace {

std::string node_name(size_t rank, size_t step) {
  return "r" + std::to_string(rank) + "s" + std::to_string(step);
}

const char* colour_of(Verb verb) {
  switch (verb) {
    case Verb::kSend:
    case Verb::kRecv:
      return "lightblue";
    case Verb::kCopy:
      return "lightgrey";
    case Verb::kReduce:
    case Verb::kDecodeReduce:
      return "palegreen";
    case Verb::kEncode:
    case Verb::kDecode:
      return "khaki";
  }
  return "white";
}

std::string cluster(const Schedule& schedule, size_t rank) {
  const std::string number = std::to_string(rank);
  std::string text = "  subgraph cluster_" + number + " {\n    label=\"rank " + number + "\";\n";
  for (size_t i = 0; i < schedule.steps.size(); ++i) {
    text += "    " + node_name(rank, i) + " [label=\"" + std::to_string(i) + " " +
            print_step(schedule.steps[i]) + "\", fillcolor=" + colour_of(schedule.steps[i].verb) +
            "];\n";
  }
  for (size_t i = 0; i < schedule.steps.size(); ++i) {
    for (uint32_t earlier : schedule.steps[i].depends_on) {
      text += "    " + node_name(rank, earlier) + " -> " + node_name(rank, i) + ";\n";
    }
  }
  return text + "  }\n";
}

// From every send to its receive.
std::string messages(std::span<const Schedule> schedules) {
  std::map<std::tuple<size_t, size_t, uint32_t>, size_t>
      receives;  // sender, receiver, number: step
  for (size_t rank = 0; rank < schedules.size(); ++rank) {
    for (size_t i = 0; i < schedules[rank].steps.size(); ++i) {
      const Step& step = schedules[rank].steps[i];
      if (step.verb == Verb::kRecv)
        receives[{static_cast<size_t>(step.peer), rank, step.message}] = i;
    }
  }
  std::string text;
  for (size_t rank = 0; rank < schedules.size(); ++rank) {
    for (size_t i = 0; i < schedules[rank].steps.size(); ++i) {
      const Step& step = schedules[rank].steps[i];
      if (step.verb != Verb::kSend) continue;
      const size_t peer = static_cast<size_t>(step.peer);
      const auto receive = receives.find({rank, peer, step.message});
      if (receive == receives.end()) continue;  // a fault, which the verifier names
      text += "  " + node_name(rank, i) + " -> " + node_name(peer, receive->second) +
              " [style=dashed, color=blue, constraint=false];\n";
    }
  }
  return text;
}

}  // namespace

std::string print_dot(std::span<const Schedule> schedules, std::span<const int> ranks) {
  std::string text =
      "digraph schedule {\n  rankdir=TB;\n  node [shape=box, style=filled, fontname=\"monospace\", "
      "fontsize=10];\n";
  for (int rank : ranks) text += cluster(schedules[rank], static_cast<size_t>(rank));
  if (ranks.size() == schedules.size()) text += messages(schedules);
  return text + "}\n";
}

}  // namespace uzip
