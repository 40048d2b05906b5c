#include "comm/staged_schedule.hpp"

#include "algos/schedule_builder.hpp"

#include <cassert>

namespace uzip {
namespace {

void add(const Step& step, ScheduleBuilder& builder) {
  switch (step.verb) {
    case Verb::kSend:
      if (step.src.length == 0) return builder.signal(step.peer);
      if (step.src.slot != Slot::kWire) {
        const Slice wire = builder.wire(step.src.length);
        builder.encode(step.src, wire, Part::kWhole);
        return builder.send_wire(wire, Part::kWhole, step.peer, step.src);
      }
      return builder.send_wire(step.src, step.part, step.peer, step.origin);
    case Verb::kRecv:
      if (step.dst.length == 0) return builder.await_signal(step.peer);
      if (step.dst.slot != Slot::kWire) {
        const Slice wire = builder.wire(step.dst.length);
        builder.recv_wire(step.peer, wire, Part::kWhole);
        return builder.decode(wire, step.dst);
      }
      return builder.recv_wire(step.peer, step.dst, step.part);
    case Verb::kCopy: return builder.copy(step.src, step.dst);
    case Verb::kReduce: return builder.reduce(step.sources, step.dst, step.average);
    case Verb::kEncode: return builder.encode(step.src, step.dst, step.part);
    case Verb::kDecode: return builder.decode(step.src, step.dst);
    case Verb::kDecodeReduce: assert(!"schedules for a GPU are not fused");
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
