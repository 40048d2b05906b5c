// Writes schedules for people: the golden files, uzip tools and error messages of the verifier.
#include "algos/print.hpp"

#include <cstdio>

namespace uzip {
namespace {

const char* verb_name(Verb verb) {
  switch (verb) {
    case Verb::kSend:
      return "send";
    case Verb::kRecv:
      return "recv";
    case Verb::kCopy:
      return "copy";
    case Verb::kReduce:
      return "reduce";
    case Verb::kEncode:
      return "encode";
    case Verb::kDecode:
      return "decode";
    case Verb::kDecodeReduce:
      return "decode_reduce";
  }
  return "unknown";
}

const char* slot_name(Slot slot) {
  switch (slot) {
    case Slot::kInput:
      return "input";
    case Slot::kOutput:
      return "output";
    case Slot::kScratch:
      return "scratch";
    case Slot::kWire:
      return "wire";
  }
  return "unknown";
}

const char* part_name(Part part) {
  switch (part) {
    case Part::kWhole:
      return "";
    case Part::kPlain:
      return " plain";
    case Part::kCoded:
      return " coded";
  }
  return " unknown";
}

// "input[4,8)", "wire 2", "nothing".
std::string text_of(const Slice& slice) {
  if (slice.length == 0) return "nothing";
  const std::string name = slot_name(slice.slot);
  if (slice.slot == Slot::kWire) return name + " " + std::to_string(slice.offset);
  return name + "[" + std::to_string(slice.offset) + "," +
         std::to_string(slice.offset + slice.length) + ")";
}

// "scratch[0,12) in 4+8"
std::string body_text(const Slice& body, const std::vector<size_t>& pieces) {
  std::string text = text_of(body);
  for (size_t i = 0; i < pieces.size(); ++i) text += (i == 0 ? " in " : "+") + std::to_string(pieces[i]);
  return text;
}

std::string peer_text(const Step& step) {
  return "rank " + std::to_string(step.peer) + " #" + std::to_string(step.message);
}

std::string sources_text(const std::vector<Slice>& sources) {
  std::string text;
  for (const Slice& source : sources) text += (text.empty() ? "" : " + ") + text_of(source);
  return text;
}

}  // namespace

std::string print_step(const Step& step) {
  std::string verb = std::string(verb_name(step.verb)) + part_name(step.part) + " ";
  switch (step.verb) {
    case Verb::kSend:
      return verb + body_text(step.src, step.pieces) +
             (step.origin.length > 0 ? " of " + text_of(step.origin) : "") + " -> " +
             peer_text(step);
    case Verb::kRecv:
      return verb + peer_text(step) + " -> " + body_text(step.dst, step.pieces);
    case Verb::kReduce:
    case Verb::kDecodeReduce:
      return verb + sources_text(step.sources) + " -> " + text_of(step.dst) +
             (step.average ? ", last" : "");
    case Verb::kCopy:
    case Verb::kEncode:
    case Verb::kDecode:
      return verb + text_of(step.src) + " -> " + text_of(step.dst);
  }
  return verb;
}

std::string print_schedule(const Schedule& schedule) {
  std::string text = "scratch " + std::to_string(schedule.scratch_elements) + ", wire";
  if (schedule.wire_elements.empty()) text += " none";
  for (size_t elements : schedule.wire_elements) text += " " + std::to_string(elements);
  text += "\n";
  for (size_t i = 0; i < schedule.steps.size(); ++i) {
    const Step& step = schedule.steps[i];
    char number[32];
    std::snprintf(number, sizeof number, "%4zu  ", i);
    text += number + print_step(step);
    if (!step.depends_on.empty()) {
      text += "  [after";
      for (uint32_t earlier : step.depends_on) text += " " + std::to_string(earlier);
      text += "]";
    }
    text += "\n";
  }
  return text;
}

}  // namespace uzip
