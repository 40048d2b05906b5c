#include "comm/staged_schedule.hpp"

#include "algos/schedule_builder.hpp"

#include <cassert>

namespace uzip {
namespace {

// A message of elements goes by way of a new wire place.
void add(const Step& step, ScheduleBuilder& builder) {
  assert(step.verb != Verb::kDecodeReduce);  // schedules for a GPU are not fused
  if (step.verb == Verb::kSend && step.src.length > 0 && step.src.slot != Slot::kWire) {
    const Slice wire = builder.wire(step.src.length);
    builder.encode(step.src, wire, Part::kWhole);
    builder.send_wire(wire, Part::kWhole, step.peer, step.src);
  } else if (step.verb == Verb::kRecv && step.dst.length > 0 && step.dst.slot != Slot::kWire) {
    const Slice wire = builder.wire(step.dst.length);
    builder.recv_wire(step.peer, wire, Part::kWhole);
    builder.decode(wire, step.dst);
  } else {
    builder.add(step);
  }
}

}  // namespace

Schedule stage_messages(const Schedule& schedule, const Shape& shape, int rank) {
  ScheduleBuilder builder(shape, rank);
  builder.scratch(schedule.scratch_elements);
  for (size_t elements : schedule.wire_elements) builder.wire(elements);
  for (const Step& step : schedule.steps) add(step, builder);
  return builder.finish();
}

}  // namespace uzip
