#include "comm/schedule_cache.hpp"

#include "algos/passes.hpp"
#include "algos/schedule_builder.hpp"
#include "algos/verify.hpp"
#include "comm/gpu_devices.hpp"
#include "comm/message_head.hpp"
#include "comm/repeated_sends.hpp"
#include "comm/staged_schedule.hpp"

#include <algorithm>

namespace uzip {
namespace {

/// A call has at most two shapes of rounds, split or not; this serves sixteen shapes of calls.
constexpr size_t kMostEntries = 64;
constexpr size_t kAlignment = 64;

size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// One message in one direction, to or from rank 1 of two; the call's peer takes its place.
Schedule build_point_to_point(CallKind kind, const Shape& shape) {
  ScheduleBuilder builder(shape, 0);
  const size_t count = shape.counts[0];
  if (kind == CallKind::kSend) {
    count ? builder.send({Slot::kInput, 0, count}, kPeerInSchedule) : builder.signal(kPeerInSchedule);
  } else {
    count ? builder.recv(kPeerInSchedule, {Slot::kOutput, 0, count}) : builder.await_signal(kPeerInSchedule);
  }
  return builder.finish();
}

void lay_out_wires(PreparedSchedule& prepared, DataType type, const Codec* codec, size_t offset) {
  const size_t element = datatype_size(type);
  for (size_t place = 0; place < prepared.schedule.wire_elements.size(); ++place) {
    const size_t elements = prepared.schedule.wire_elements[place];
    // A frame that does not shrink travels raw, so every place has room for the elements themselves.
    const EncodedSizes bound = place < prepared.coded_wires ? codec->bound(type, elements) : EncodedSizes();
    PreparedSchedule::Wire wire;
    wire.plain_offset = offset;
    wire.plain_capacity = std::max(bound.plain, elements * element);
    wire.coded_offset = offset + aligned(wire.plain_capacity);
    wire.coded_capacity = bound.coded;
    wire.capacity = std::max(aligned(wire.plain_capacity), bound.plain + bound.coded);
    offset = aligned(std::max(wire.coded_offset + wire.coded_capacity, offset + wire.capacity));
    prepared.wires.push_back(wire);
  }
  prepared.memory_bytes = offset;
}

/// Room on the GPU for what its own kernels make of the elements, and for what comes from others.
Status lay_out_places(PreparedSchedule& prepared, DataType type, const GpuDevice& gpu) {
  size_t offset = aligned(prepared.schedule.scratch_elements * datatype_size(type));
  prepared.places.resize(prepared.wires.size());
  for (size_t i = 0; i < prepared.coded_wires; ++i) {
    const PreparedSchedule::Wire& wire = prepared.wires[i];
    UZIP_ASSIGN_OR_RETURN(const auto needed, gpu.executor->place_sizes(type, prepared.schedule.wire_elements[i]));
    PreparedSchedule::Place& place = prepared.places[i];
    place.plain_offset = offset;
    place.plain_bytes = aligned(std::max(needed.plain, wire.capacity));
    place.coded_offset = offset + place.plain_bytes;
    place.coded_bytes = aligned(std::max(needed.coded, wire.coded_capacity));
    offset = place.coded_offset + place.coded_bytes;
  }
  prepared.device_bytes = offset;
  return Status();
}

/// Steps on at most this many bytes run at once, also inside a transport's callback; longer ones are queued, so
/// that sends start and arrivals are seen between them.
constexpr size_t kLongStepBytes = 16 * 1024;

bool is_long(const Step& step, DataType type, bool staged) {
  if (step.verb == Verb::kSend || (staged && step.verb != Verb::kRecv)) return false;  // the GPU does what takes long
  const bool reduces = step.verb == Verb::kReduce || step.verb == Verb::kDecodeReduce;
  const size_t elements = reduces ? step.dst.length * step.sources.size()
                                  : std::max(step.src.length, step.dst.length);
  return elements * datatype_size(type) > kLongStepBytes;
}

Status index_receives(PreparedSchedule& prepared) {
  const std::vector<Step>& steps = prepared.schedule.steps;
  prepared.receives.resize(static_cast<size_t>(prepared.shape.size));
  for (uint32_t i = 0; i < steps.size(); ++i) {
    if (steps[i].depends_on.empty()) prepared.ready.push_back(i);
    if (steps[i].verb != Verb::kSend && steps[i].verb != Verb::kRecv) continue;
    if (steps[i].message >= MessageIndex::kMaxMessages)
      return error(UZIP_ERR_UNSUPPORTED, "a schedule has %u messages between two ranks in one round; at most %u",
                   steps[i].message + 1, MessageIndex::kMaxMessages);
    if (steps[i].verb != Verb::kRecv) continue;
    auto& from = prepared.receives[static_cast<size_t>(steps[i].peer)];
    if (from.size() <= steps[i].message) from.resize(steps[i].message + 1, UINT32_MAX);
    from[steps[i].message] = i;
  }
  return Status();
}

/// Fills in what follows from the schedule, which the codec has been put into. `shape` is what it was built from.
Status prepare(PreparedSchedule& prepared, const Plan& plan, const Shape& shape, int rank, const GpuDevice* gpu) {
  const DataType type = plan.shape.type;
  const size_t scratch_bytes = prepared.schedule.scratch_elements * datatype_size(type);
  prepared.coded_wires = plan.codec ? prepared.schedule.wire_elements.size() : 0;
  if (gpu) {
    prepared.schedule = stage_messages(prepared.schedule, shape, rank);
    lay_out_wires(prepared, type, plan.codec, 0);
    UZIP_RETURN_IF_ERROR(lay_out_places(prepared, type, *gpu));
  } else {
    lay_out_wires(prepared, type, plan.codec, plan.codec ? aligned(scratch_bytes) : scratch_bytes);
  }
  prepared.receivers = count_receivers(prepared.schedule);
  if (!gpu) {
    prepared.copies = find_copies_of_bodies(prepared.schedule);
    prepared.lent = find_lent_operands(prepared.schedule);
  }
  for (const Step& step : prepared.schedule.steps) prepared.is_long.push_back(is_long(step, type, gpu != nullptr));
  return index_receives(prepared);
}

#ifndef NDEBUG
/// Debug builds prove what they are about to run: all ranks' schedules together, where that is not too much.
Status prove(const Plan& plan, const Shape& shape, bool split, bool fused) {
  constexpr int kMostRanks = 17;
  if (shape.size > kMostRanks || plan.point_to_point() || is_pairwise(plan.shape.kind)) return Status();
  std::vector<Schedule> all;
  for (int rank = 0; rank < shape.size; ++rank) {
    all.push_back(plan.algorithm->build(shape, rank));
    if (plan.codec) all.back() = lower_codec(all.back(), shape, rank, split);
    if (fused) all.back() = fuse(all.back(), shape, rank);
  }
  const Status status = verify(all, shape, 2, 1, plan.algorithm->in_rank_order);
  if (status.ok()) return status;
  return error(UZIP_ERR_INTERNAL, "algorithm %s is wrong: %s", plan.algorithm_name(), status.message().c_str());
}
#endif

}  // namespace

Result<std::shared_ptr<const PreparedSchedule>> ScheduleCache::get(PreparedPlan& prepared, uint32_t round,
                                                                    const GpuDevice* gpu) {
  const Plan& plan = prepared.plan;
  if (plan.with_neighbors()) return get_neighbor_round(prepared, round, gpu);
  if (!prepared.by_round.empty()) return prepared.by_round[round];
  if (!plan.shape.counts.empty()) return find_or_build(plan, round, gpu);
  auto& schedule = prepared.schedules[plan.split(round)][round + 1 == plan.rounds];
  if (!schedule) {
    UZIP_ASSIGN_OR_RETURN(schedule, find_or_build(plan, round, gpu));
  }
  return schedule;
}

std::vector<std::shared_ptr<const PreparedSchedule>> PreparedPlan::kept() const {
  std::vector<std::shared_ptr<const PreparedSchedule>> result = by_round;
  for (const auto& row : schedules)
    for (const auto& schedule : row)
      if (schedule) result.push_back(schedule);
  std::erase(result, nullptr);
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

Status ScheduleCache::keep_all(PreparedPlan& prepared, const GpuDevice* gpu) {
  const Plan& plan = prepared.plan;
  if (prepared.direct) return Status();
  std::vector<std::shared_ptr<const PreparedSchedule>> all;
  for (uint32_t round = 0; round < plan.rounds; ++round) {
    UZIP_ASSIGN_OR_RETURN(std::shared_ptr<const PreparedSchedule> schedule, get(prepared, round, gpu));
    all.push_back(std::move(schedule));
  }
  if (!plan.shape.counts.empty() || plan.with_neighbors()) prepared.by_round = std::move(all);
  return Status();
}

/// Rounds in which all blocks have the same lengths share a schedule: there are as many as blocks of different numbers
/// of rounds, and the last round of each.
Result<std::shared_ptr<const PreparedSchedule>> ScheduleCache::get_neighbor_round(PreparedPlan& prepared,
                                                                                   uint32_t round, const GpuDevice* gpu) {
  const Plan& plan = prepared.plan;
  prepared.by_round.resize(plan.rounds);
  if (prepared.by_round[round]) return prepared.by_round[round];
  auto made = std::make_shared<PreparedSchedule>();
  made->shape.size = plan.shape.size;
  for (const auto* blocks : {&plan.shape.neighborhood.sends, &plan.shape.neighborhood.receives})
    for (const NeighborBlock& block : *blocks) made->shape.counts.push_back(block.length(round));
  // The one before is the likeliest to be the same. An empty block has a message in the first round only.
  if (round > 1 && prepared.by_round[round - 1] && prepared.by_round[round - 1]->shape.counts == made->shape.counts &&
      plan.split(round) == plan.split(round - 1))
    return prepared.by_round[round] = prepared.by_round[round - 1];
  made->schedule = build_neighbor_round(plan, round, rank_, made->block_begin);
  UZIP_RETURN_IF_ERROR(prepare(*made, plan, Shape{.size = plan.shape.size, .counts = {}}, rank_, gpu));
  return prepared.by_round[round] = made;
}

Result<std::shared_ptr<const PreparedSchedule>> ScheduleCache::find_or_build(const Plan& plan, uint32_t round,
                                                                              const GpuDevice* gpu) {
  Key& key = wanted_;
  key.algorithm = plan.algorithm;
  key.kind = plan.point_to_point() ? plan.shape.kind : CallKind::kBarrier;
  key.type = plan.shape.type;
  key.codec = plan.codec;
  key.split = plan.split(round);
  key.fused = fuses_ && !gpu && plan.codec && plan.algorithm && !plan.shape.user_defined;
  key.staged = gpu != nullptr;
  plan.round_shape(round, key.shape);
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (!(entry->key == key)) continue;
    entries_.splice(entries_.begin(), entries_, entry);
    return entry->schedule;
  }
  auto prepared = std::make_shared<PreparedSchedule>();
  prepared->shape = key.shape;
  const int rank = plan.point_to_point() ? 0 : rank_;
  prepared->schedule = plan.point_to_point() ? build_point_to_point(plan.shape.kind, key.shape)
                                             : plan.algorithm->build(key.shape, rank);
  if (plan.codec) {
    prepared->schedule = lower_codec(prepared->schedule, key.shape, rank, key.split);
    if (key.fused) prepared->schedule = fuse(prepared->schedule, key.shape, rank);
  } else if (gpu) {
    // The same pass shares the wire places of elements that are sent, or handed on, several times. Messages stay what
    // they are for ranks whose buffers are the host's.
    Shape apart = key.shape;
    apart.hosts.clear();
    for (Step& step : prepared->schedule.steps) step.pieces.clear();
    prepared->schedule = lower_codec(prepared->schedule, apart, rank, false);
  }
#ifndef NDEBUG
  UZIP_RETURN_IF_ERROR(prove(plan, key.shape, key.split, key.fused));
#endif
  for (Slot slot : {Slot::kInput, Slot::kOutput}) {
    size_t begin = 0;
    for (size_t count : key.shape.counts_of(slot)) {
      prepared->block_begin[static_cast<size_t>(slot)].push_back(begin);
      begin += count;
    }
  }
  UZIP_RETURN_IF_ERROR(prepare(*prepared, plan, key.shape, rank, gpu));
  entries_.push_front({key, prepared});
  if (entries_.size() > kMostEntries) entries_.pop_back();
  return std::shared_ptr<const PreparedSchedule>(std::move(prepared));
}

}  // namespace uzip
