// What a round's steps do: their messages and frames, and the work on elements. When they run is in round.cpp.
#include "base/streaming_copy.hpp"
#include "comm/engine.hpp"
#include "comm/request.hpp"
#include "comm/round.hpp"

#include <utility>

namespace uzip {

/// What must be true of a frame before any of it is written. Count and type first: they are the caller's.
Status Round::check_frame(const Step& step, const FrameHeader& frame, size_t body_bytes) const {
  const DataType type = request_.type();
  const size_t elements = step.dst.length, raw_bytes = elements * datatype_size(type);
  if (elements > 0 && frame.type != static_cast<uint8_t>(type))
    return error(UZIP_ERR_MISMATCH, "a frame of %s came where %s was expected",
                 datatype_info(static_cast<DataType>(frame.type)).name, datatype_info(type).name);
  if (frame.count != elements)
    return error(UZIP_ERR_MISMATCH, "a frame of %llu elements came where %zu were expected",
                 static_cast<unsigned long long>(frame.count), elements);
  if (elements > 0 && request_.engine().config().checksum && !(frame.flags & kFrameHasChecksum))
    return error(UZIP_ERR_CORRUPT, "a frame came without a checksum, although UZIP_CHECKSUM is set");
  const bool raw = frame.codec == kCodecRaw;
  const Codec* planned = request_.plan().codec;
  if (!raw && (step.dst.slot != Slot::kWire || !planned || frame.codec != planned->id))
    return error(UZIP_ERR_MISMATCH, "a frame of codec %u came where %s was planned", frame.codec,
                 request_.plan().codec_name());
  size_t expected = frame.plain_bytes + frame.coded_bytes, capacity = raw_bytes;
  if (step.dst.slot == Slot::kWire) {
    const PreparedSchedule::Wire& wire = schedule_->wires[step.dst.offset];
    capacity = wire.capacity;
    if (step.part == Part::kPlain) {
      expected = frame.plain_bytes;
      capacity = wire.plain_capacity;
    } else if (step.part == Part::kCoded) {
      expected = frame.coded_bytes;
      capacity = wire.coded_capacity;
    }
  }
  if (raw && (frame.plain_bytes != raw_bytes || frame.coded_bytes != 0))
    return error(UZIP_ERR_CORRUPT, "a raw frame of %zu elements says it has %llu + %llu bytes", elements,
                 static_cast<unsigned long long>(frame.plain_bytes),
                 static_cast<unsigned long long>(frame.coded_bytes));
  if (body_bytes != expected || body_bytes > capacity)
    return error(UZIP_ERR_CORRUPT, "a frame's body has %zu bytes; its header says %zu, at most %zu fit",
                 body_bytes, expected, capacity);
  return Status();
}

Result<Progress> Round::send(const Step& step, StepState& state) {
  FrameHeader frame;
  std::span<const std::byte> body;
  if (step.src.slot != Slot::kWire) {
    frame = raw_frame_header(request_.type(), step.src.length);
    body = bytes_at(step.src);
    if (step.src.length && request_.engine().config().checksum) add_checksum(body, frame);
  } else {
    const WireState& wire = wires_[step.src.offset];
    frame = wire.header;
    const std::byte* begin = wire.raw && step.part != Part::kCoded ? wire.raw : wire_memory(step.src.offset, step.part);
    switch (step.part) {
      case Part::kWhole: body = {begin, frame.plain_bytes + frame.coded_bytes}; break;
      case Part::kPlain:
        body = {begin, frame.plain_bytes};
        frame.flags |= kFrameCodedFollows;
        frame.coded_bytes = 0;
        break;
      case Part::kCoded: body = {begin, frame.coded_bytes}; break;
    }
  }
  StepState* const copy = copy_to_be_made(state);
  SecondCopy second;
  if (copy) second = {address(schedule_->schedule.steps[copy->step].dst), goes_past_caches(*copy)};
  const Result<Progress> sent =
      request_.send(step.peer, {MessageKind::kCollective, number_, step.message}, frame, step.part == Part::kCoded ? 0 : step.src.length,
                    body, &state.completion, schedule_->receivers[state.step], copy ? &second : nullptr);
  if (copy) copy->copied = second.made;
  return sent;
}

/// The copy of what is sent, if it could start now and has not.
Round::StepState* Round::copy_to_be_made(const StepState& send) {
  if (schedule_->copies.empty() || schedule_->copies[send.step] == kNoCopy) return nullptr;
  StepState& copy = steps_[schedule_->copies[send.step]];
  return copy.waiting > 0 || copy.started || copy.copied ? nullptr : &copy;
}

Result<Progress> Round::receive(const Step& step, StepState& state) {
  std::byte* memory = nullptr;
  size_t bytes = state.incoming.body_bytes;  // checked against the capacity by check_frame()
  if (step.dst.slot == Slot::kWire) {
    WireState& wire = wires_[step.dst.offset];
    // The parts of a split frame come in any order; both say how long the plain one is.
    if (wire.has_part && state.frame.plain_bytes != wire.header.plain_bytes) {
      state.has_message = false;
      request_.engine().discard(state.incoming);
      return error(UZIP_ERR_CORRUPT, "the two parts of a frame disagree: %llu and %llu plain bytes",
                   static_cast<unsigned long long>(wire.header.plain_bytes),
                   static_cast<unsigned long long>(state.frame.plain_bytes));
    }
    if (step.part != Part::kCoded) memory = destination_of_raw(step, state);
    wire.decoded |= memory != nullptr;
    if (!wire.has_part || step.part == Part::kCoded) wire.header = state.frame;
    wire.has_part = step.part != Part::kWhole;
    wire.peer = step.peer;
    if (!memory) memory = wire_memory(step.dst.offset, step.part);
  } else if (may_lend(state)) {
    state.lent = true;
    return Progress::kDone;
  } else if (step.dst.length) {
    memory = address(step.dst);
  }
  state.has_message = false;
  if (state.incoming.body && state.incoming.handle && goes_past_caches(state)) {
    copy_past_caches(memory, state.incoming.body, bytes);
    request_.engine().discard(state.incoming);
    return Progress::kDone;
  }
  return request_.engine().take(state.incoming, {memory, bytes}, &state.completion);
}

/// Whether the elements can stay where the transport has them until the one reduction that reads them: not those of a
/// checksum yet to be compared, nor where a program's own operation might ask for their alignment.
bool Round::may_lend(const StepState& state) const {
  const std::vector<bool>& lends = schedule_->lent.lends;
  return !lends.empty() && lends[state.step] && state.incoming.body && state.incoming.handle && !request_.args().user_op &&
         !(state.frame.flags & kFrameHasChecksum);
}

Result<Progress> Round::copy(const Step& step, StepState& state) {
  if (state.copied) return Progress::kDone;
  const size_t bytes = step.src.length * datatype_size(request_.type());
  if (!goes_past_caches(state)) return request_.executor().copy(address(step.dst), address(step.src), bytes, &state.completion);
  copy_past_caches(address(step.dst), address(step.src), bytes);
  return Progress::kDone;
}

/// Whether what the step writes is a part of a large result that no later step reads.
bool Round::goes_past_caches(const StepState& state) const {
  return schedule_->schedule.steps[state.step].dst.slot == Slot::kOutput && !request_.device() &&
         schedule_->schedule.dependents[state.step].empty() && request_.plan().streams;
}

/// Where the elements of a raw frame belong, if they may go there at once: nothing but a decoding reads the frame, and
/// that waits for nothing but it. Else, and on a GPU, null. So data that don't compress are not copied once more.
std::byte* Round::destination_of_raw(const Step& step, const StepState& state) const {
  if (request_.device()) return nullptr;
  const std::vector<uint32_t>& readers = schedule_->schedule.dependents[state.step];
  if (state.frame.codec != kCodecRaw || readers.size() != 1) return nullptr;
  const Step& reader = schedule_->schedule.steps[readers[0]];
  const uint32_t parts_to_come = step.part == Part::kWhole || wires_[step.dst.offset].has_part ? 1 : 2;
  if (reader.verb != Verb::kDecode || reader.src.offset != step.dst.offset || reader.dst.length != step.dst.length ||
      steps_[readers[0]].waiting > parts_to_come)
    return nullptr;
  return address(reader.dst);
}

Result<Progress> Round::encode(const Step& step, StepState& state) {
  const size_t place = step.dst.offset;
  const PreparedSchedule::Wire& layout = schedule_->wires[place];
  WireState& wire = wires_[place];
  if (step.part != Part::kCoded && request_.coding_habit().skips()) {
    wire.header.codec = kCodecRaw;
    wire.untried = true;
    return Progress::kDone;
  }
  EncodeTask task;
  task.codec = place < schedule_->coded_wires ? request_.plan().codec : nullptr;
  task.place = device_place(place);
  task.level = request_.plan().level;
  task.type = request_.type();
  task.src = address(step.src);
  task.count = step.src.length;
  task.header = &wire.header;
  switch (step.part) {
    case Part::kWhole:
      task.stage = EncodeStage::kWhole;
      task.plain = {memory_.wires() + layout.plain_offset, layout.capacity};
      break;
    case Part::kPlain:
      task.stage = EncodeStage::kPlain;
      task.plain = {memory_.wires() + layout.plain_offset, layout.plain_capacity};
      task.coded = {memory_.wires() + layout.coded_offset, layout.coded_capacity};
      break;
    case Part::kCoded:
      if (wire.header.codec == kCodecRaw) return Progress::kDone;  // abandoned in the first stage
      task.stage = EncodeStage::kCoded;
      task.coded = {memory_.wires() + layout.coded_offset, layout.coded_capacity};
      break;
  }
  return request_.executor().encode(task, &state.completion);
}

/// The codec has written the frame, or given it up: then its body is the elements themselves, which a GPU has written
/// where the frame is sent from.
void Round::on_encoded(const Step& step) {
  WireState& wire = wires_[step.dst.offset];
  if (request_.device()) return;
  if (step.part == Part::kCoded && wire.raw) return;  // the first stage gave it up; its header may have a checksum
  const bool raw = wire.header.codec == kCodecRaw;
  if (step.part != Part::kCoded && !wire.untried) request_.coding_habit().tried(raw);
  if (raw) {
    wire.header = raw_frame_header(request_.type(), step.src.length);
    wire.raw = address(step.src);
  }
  if (step.part != Part::kCoded && request_.engine().config().checksum)
    add_checksum(bytes_at(step.src), wire.header);
}

DecodeTask Round::frame_at(size_t place) const {
  const FrameHeader& header = wires_[place].header;
  const bool split = request_.plan().split(number_);
  DecodeTask task;
  task.header = &header;
  task.plain = {wire_memory(place, Part::kWhole), header.plain_bytes};
  task.coded = split ? std::span<const std::byte>(wire_memory(place, Part::kCoded), header.coded_bytes)
                     : std::span<const std::byte>(task.plain.data() + header.plain_bytes, header.coded_bytes);
  task.place = device_place(place);
  return task;
}

Result<Progress> Round::decode(const Step& step, StepState& state) {
  if (const WireState& wire = wires_[step.src.offset]; wire.decoded) {
    UZIP_RETURN_IF_ERROR(check_checksum(wire.header, bytes_at(step.dst)));
    return Progress::kDone;
  }
  DecodeTask task = frame_at(step.src.offset);
  task.dst = {address(step.dst), step.dst.length * datatype_size(request_.type())};
  task.streams = goes_past_caches(state);
  return request_.executor().decode(task, &state.completion);
}

Result<Progress> Round::reduce(const Step& step, StepState& state) {
  source_pointers_.clear();
  for (const Slice& source : step.sources) source_pointers_.push_back(address(source));
  if (!schedule_->lent.lenders.empty()) {
    const std::vector<uint32_t>& lenders = schedule_->lent.lenders[state.step];
    for (size_t i = 0; i < lenders.size(); ++i)
      if (lenders[i] != kNoLender && steps_[lenders[i]].lent) source_pointers_[i] = steps_[lenders[i]].incoming.body;
  }
  const size_t average_over = step.average ? static_cast<size_t>(request_.size()) : 0;
  return request_.reduce(address(step.dst), source_pointers_, step.dst.length, average_over, &state.completion);
}

void Round::end_loans(uint32_t reduction) {
  if (schedule_->lent.lenders.empty()) return;
  for (uint32_t lender : schedule_->lent.lenders[reduction]) {
    if (lender == kNoLender || !std::exchange(steps_[lender].lent, false)) continue;
    steps_[lender].has_message = false;
    request_.engine().discard(steps_[lender].incoming);
  }
}

Result<Progress> Round::decode_reduce(const Step& step, StepState& state) {
  source_pointers_.clear();
  for (const Slice& source : step.sources)
    source_pointers_.push_back(source.slot == Slot::kWire ? nullptr : address(source));
  DecodeReduceTask task;
  task.type = request_.type();
  task.dst = address(step.dst);
  task.sources = source_pointers_;
  task.count = step.dst.length;
  task.average_over = step.average ? static_cast<size_t>(request_.size()) : 0;
  task.frame = frame_at(frame_of(step).offset);
  return request_.decode_reduce(task, &state.completion);
}

std::byte* Round::address(const Slice& slice) const {
  if (slice.length == 0) return nullptr;
  std::byte* base = slice.slot == Slot::kScratch ? memory_.scratch()
                    : slice.slot == Slot::kInput ? input_
                                                 : output_;
  if (!base) return request_.block_address(slice, *schedule_, number_);
  return base + slice.offset * datatype_size(request_.type());
}

std::span<const std::byte> Round::bytes_at(const Slice& slice) const {
  return {address(slice), slice.length * datatype_size(request_.type())};
}

std::byte* Round::wire_memory(size_t place, Part part) const {
  const PreparedSchedule::Wire& wire = schedule_->wires[place];
  return memory_.wires() + (part == Part::kCoded ? wire.coded_offset : wire.plain_offset);
}

/// Where the GPU codes the frame of a wire place; nothing on the host.
DevicePlace Round::device_place(size_t place) const {
  if (!request_.device()) return {};
  const PreparedSchedule::Place& where = schedule_->places[place];
  return {{memory_.scratch() + where.plain_offset, where.plain_bytes},
          {memory_.scratch() + where.coded_offset, where.coded_bytes},
          request_.engine().config().checksum};
}

}  // namespace uzip
