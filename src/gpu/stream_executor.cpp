#include "gpu/stream_executor.hpp"

#include "codec/frame.hpp"
#include "gpu/device_memory.hpp"
#include "gpu/fault_text.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace uzip::gpu {
namespace {

constexpr size_t kReportsPerBlock = 64;
/// Overlapping elements are moved by way of so many bytes at a time.
constexpr size_t kBounceBytes = size_t{1} << 20;

}  // namespace

void StreamExecutor::Queue::push(Operation* operation) {
  operation->next = nullptr;
  (first ? last->next : first) = operation;
  last = operation;
}

Result<std::unique_ptr<StreamExecutor>> StreamExecutor::create(const PluginApi& api, int device, unsigned blocks) {
  std::unique_ptr<StreamExecutor> executor(new StreamExecutor(api, device, blocks));
  const DeviceScope scope(api, device);
  UZIP_RETURN_IF_ERROR(executor->initialize());
  return executor;
}

Status StreamExecutor::initialize() {
  for (void*& stream : streams_) UZIP_RETURN_IF_ERROR(check(api_.create_stream(&stream)));
  return add_reports();
}

StreamExecutor::~StreamExecutor() {
  const DeviceScope scope(api_, device_);
  for (void* stream : streams_) {
    if (!stream) continue;
    (void)api_.wait_stream(stream);
    (void)api_.destroy_stream(stream);
  }
  for (const auto& operation : operations_) (void)api_.destroy_event(operation->event);
  for (Report* reports : report_blocks_) (void)api_.release_pinned(reports);
  if (bounce_) (void)api_.release(bounce_);
}

// ---- Operations ------------------------------------------------------------------------------------------

/// Room for the reports of some more operations, which are made with it.
Status StreamExecutor::add_reports() {
  void* memory = nullptr;
  UZIP_RETURN_IF_ERROR(check(api_.allocate_pinned(&memory, kReportsPerBlock * sizeof(Report))));
  std::memset(memory, 0, kReportsPerBlock * sizeof(Report));
  auto* const reports = static_cast<Report*>(memory);
  report_blocks_.push_back(reports);
  for (size_t i = 0; i < kReportsPerBlock; ++i) {
    auto operation = std::make_unique<Operation>();
    UZIP_RETURN_IF_ERROR(check(api_.create_event(&operation->event)));
    operation->report = &reports[i];
    free_.push_back(operation.get());
    operations_.push_back(std::move(operation));
  }
  return Status();
}

Result<StreamExecutor::Operation*> StreamExecutor::acquire(Completion* completion) {
  if (free_.empty()) UZIP_RETURN_IF_ERROR(add_reports());
  Operation* const operation = free_.back();
  free_.pop_back();
  operation->kind = Operation::Kind::kLast;
  operation->completion = completion;
  return operation;
}

Result<Progress> StreamExecutor::commit(Operation* operation, Lane lane, const Status& started) {
  Status status = started;
  if (status.ok()) status = check(api_.record_event(operation->event, streams_[lane]));
  if (!status.ok()) {
    free_.push_back(operation);
    return status;
  }
  queues_[lane].push(operation);
  ++in_flight_;
  return Progress::kPending;
}

Status StreamExecutor::check_stream(void* stream) const {
  const DeviceScope scope(api_, device_);
  bool capturing = false;
  UZIP_RETURN_IF_ERROR(check(api_.is_capturing(stream, &capturing)));
  if (!capturing) return Status();
  return error(UZIP_ERR_UNSUPPORTED, "the stream is being captured into a graph; calls on GPU memory can't be: end "
                                     "the capture first");
}

void* StreamExecutor::event_of(const Completion* completion) const {
  const auto waiting = std::ranges::find(waits_, completion, &Operation::completion);
  return waiting == waits_.end() ? nullptr : (*waiting)->event;
}

Result<Progress> StreamExecutor::after(void* stream, Completion* completion) {
  const DeviceScope scope(api_, device_);
  UZIP_ASSIGN_OR_RETURN(Operation* const operation, acquire(completion));
  bool done = false;
  Status status = check(api_.record_event(operation->event, stream));
  if (status.ok()) status = check(api_.query_event(operation->event, &done));
  if (!status.ok() || done) free_.push_back(operation);
  if (!status.ok()) return status.with_context("the stream of the call, which must be of the buffers' GPU");
  if (done) return Progress::kDone;
  waits_.push_back(operation);
  ++in_flight_;
  return Progress::kPending;
}

bool StreamExecutor::progress() {
  if (in_flight_ == 0) return false;
  const DeviceScope scope(api_, device_);
  bool moved = false;
  for (Queue& queue : queues_) moved |= progress(queue);
  for (size_t i = 0; i < waits_.size(); ++i) {
    Operation* const operation = waits_[i];
    bool done = false;
    const Status status = check(api_.query_event(operation->event, &done));
    if (status.ok() && !done) continue;
    waits_[i--] = waits_.back();
    waits_.pop_back();
    end(operation, status);
    moved = true;
  }
  return moved;
}

bool StreamExecutor::progress(Queue& queue) {
  bool moved = false;
  while (Operation* const operation = queue.first) {
    bool done = false;
    const Status status = check(api_.query_event(operation->event, &done));
    if (status.ok() && !done) break;
    queue.pop();
    on_done(operation, status);
    moved = true;
  }
  return moved;
}

/// The operation's event has happened. An encoding goes on with copying its frame to where it is sent from.
void StreamExecutor::on_done(Operation* operation, const Status& status) {
  if (!status.ok() || operation->kind == Operation::Kind::kLast) return end(operation, status);
  if (operation->kind == Operation::Kind::kDecode) return end(operation, check_decoded(*operation));
  operation->kind = Operation::Kind::kLast;
  if (const Status read = read_header(*operation); !read.ok()) return end(operation, read);
  Completion* const completion = operation->completion;
  --in_flight_;
  const Status started = copy_parts_out(operation->task, *operation->task.header);
  if (const auto going = commit(operation, kOut, started); !going.ok()) completion->done(completion, going.status());
}

void StreamExecutor::end(Operation* operation, const Status& status) {
  Completion* const completion = operation->completion;
  free_.push_back(operation);
  --in_flight_;
  completion->done(completion, status);  // may start another one
}

// ---- Elements --------------------------------------------------------------------------------------------

Result<Progress> StreamExecutor::copy(void* dst, const void* src, size_t bytes, Completion* completion) {
  if (bytes == 0 || dst == src) return Progress::kDone;
  const DeviceScope scope(api_, device_);
  UZIP_ASSIGN_OR_RETURN(Operation* const operation, acquire(completion));
  return commit(operation, kWork, move(static_cast<std::byte*>(dst), static_cast<const std::byte*>(src), bytes));
}

/// As memmove(): what overlaps goes by way of other memory, piece by piece, beginning where nothing is lost.
Status StreamExecutor::move(std::byte* dst, const std::byte* src, size_t bytes) {
  const auto to = reinterpret_cast<uintptr_t>(dst), from = reinterpret_cast<uintptr_t>(src);
  void* const stream = streams_[kWork];
  if (to + bytes <= from || from + bytes <= to) return check(api_.copy(dst, src, bytes, stream));
  if (!bounce_) UZIP_RETURN_IF_ERROR(check(api_.allocate(&bounce_, kBounceBytes)));
  for (size_t done = 0; done < bytes;) {
    const size_t length = std::min(kBounceBytes, bytes - done);
    const size_t at = to < from ? done : bytes - done - length;
    UZIP_RETURN_IF_ERROR(check(api_.copy(bounce_, src + at, length, stream)));
    UZIP_RETURN_IF_ERROR(check(api_.copy(dst + at, bounce_, length, stream)));
    done += length;
  }
  return Status();
}

Result<Progress> StreamExecutor::reduce(ReduceOp op, DataType type, void* dst, std::span<const void* const> sources,
                                        size_t count, size_t average_over, Completion* completion) {
  if (count == 0) return Progress::kDone;
  const DeviceScope scope(api_, device_);
  UZIP_ASSIGN_OR_RETURN(CodecContext* const codec, contexts_.get(0));
  UZIP_ASSIGN_OR_RETURN(Operation* const operation, acquire(completion));
  const int failed = api_.reduce(codec, static_cast<uint8_t>(op), static_cast<uint8_t>(type), dst, sources.data(),
                                 sources.size(), count, average_over, streams_[kWork]);
  return commit(operation, kWork, check(failed));
}

// ---- Frames ----------------------------------------------------------------------------------------------

Result<StreamExecutor::PlaceSizes> StreamExecutor::place_sizes(DataType type, size_t count) const {
  uint64_t plain = 0, coded = 0;
  UZIP_RETURN_IF_ERROR(check(api_.encode_bound(static_cast<uint8_t>(type), count, &plain, &coded)));
  return PlaceSizes{plain, coded};
}

/// Of elements that are there when the work on kWork comes to it.
Status StreamExecutor::start_checksum(const void* elements, size_t bytes, Report& report) {
  UZIP_ASSIGN_OR_RETURN(CodecContext* const context, contexts_.get(0));
  return check(api_.checksum(context, elements, bytes, &report.checksum, streams_[kWork]));
}

Result<Progress> StreamExecutor::encode(const EncodeTask& task, Completion* completion) {
  const DeviceScope scope(api_, device_);
  const size_t bytes = task.count * datatype_size(task.type);
  UZIP_ASSIGN_OR_RETURN(Operation* const operation, acquire(completion));
  if (task.stage == EncodeStage::kCoded) {
    const Status started = check(api_.copy(task.coded.data(), task.place.coded.data(), task.header->coded_bytes,
                                           streams_[kOut]));
    return commit(operation, kOut, started);
  }
  const bool raw = !task.codec || task.codec->id == kCodecRaw;
  if (raw && !task.place.checksum) {
    *task.header = raw_frame_header(task.type, task.count);
    return commit(operation, kOut, check(api_.copy(task.plain.data(), task.src, bytes, streams_[kOut])));
  }
  operation->kind = Operation::Kind::kEncode;
  operation->task = task;
  operation->report->header = raw_frame_header(task.type, task.count);
  Status started = raw ? Status() : start_encode(task, *operation->report);
  if (started.ok() && task.place.checksum) started = start_checksum(task.src, bytes, *operation->report);
  return commit(operation, kWork, started);
}

Status StreamExecutor::start_encode(const EncodeTask& task, Report& report) {
  UZIP_ASSIGN_OR_RETURN(CodecContext* const codec, contexts_.get(task.count));
  UZIP_ASSIGN_OR_RETURN(const PlaceSizes needed, place_sizes(task.type, task.count));
  if (needed.plain > task.place.plain.size() || needed.coded > task.place.coded.size())
    return error(UZIP_ERR_INTERNAL, "a frame of %zu elements has %zu + %zu bytes of GPU memory; it needs %zu + %zu",
                 task.count, task.place.plain.size(), task.place.coded.size(), needed.plain, needed.coded);
  EncodeRequest request{};
  request.type = static_cast<uint8_t>(task.type);
  request.count = task.count;
  request.src = task.src;
  request.plain = task.place.plain.data();
  request.coded = task.place.coded.data();
  request.header = &report.header;
  request.levels = levels_on_gpu(task.level);
  request.may_be_raw = true;
  request.blocks = blocks_;
  return check(api_.encode(codec, &request, streams_[kWork]));
}

/// Takes over what the kernel says of the frame. One that does not fit where it is sent from travels raw.
Status StreamExecutor::read_header(Operation& operation) {
  const EncodeTask& task = operation.task;
  FrameHeader header = operation.report->header;
  header.call = CallStamp();
  const size_t plain = header.plain_bytes, coded = header.coded_bytes;
  const bool whole = task.stage == EncodeStage::kWhole;
  const bool fits = plain <= task.plain.size() &&
                    coded <= (whole ? task.plain.size() - plain : task.coded.size());
  if (header.codec != kCodecRaw && (plain > task.place.plain.size() || coded > task.place.coded.size()))
    return error(UZIP_ERR_INTERNAL, "GPU %d made a frame of %zu + %zu bytes of %zu elements", device_, plain, coded,
                 task.count);
  *task.header = header.codec == kCodecRaw || !fits ? raw_frame_header(task.type, task.count) : header;
  if (task.place.checksum) {
    task.header->checksum = operation.report->checksum;
    task.header->flags |= kFrameHasChecksum;
  }
  return Status();
}

Status StreamExecutor::copy_parts_out(const EncodeTask& task, const FrameHeader& header) {
  void* const stream = streams_[kOut];
  std::byte* const to = task.plain.data();
  if (header.codec == kCodecRaw) return check(api_.copy(to, task.src, header.plain_bytes, stream));
  if (header.plain_bytes > 0)
    UZIP_RETURN_IF_ERROR(check(api_.copy(to, task.place.plain.data(), header.plain_bytes, stream)));
  if (task.stage == EncodeStage::kPlain) return Status();
  return check(api_.copy(to + header.plain_bytes, task.place.coded.data(), header.coded_bytes, stream));
}

Result<Progress> StreamExecutor::decode(const DecodeTask& task, Completion* completion) {
  const DeviceScope scope(api_, device_);
  const FrameHeader& header = *task.header;
  const size_t bytes = header.count * datatype_size(static_cast<DataType>(header.type));
  const bool raw = header.codec == kCodecRaw;
  const size_t coded_room = raw ? 0 : task.place.coded.size();
  if (bytes > task.dst.size() || header.plain_bytes != task.plain.size() || header.coded_bytes != task.coded.size() ||
      (raw ? bytes != task.plain.size() : task.plain.size() > task.place.plain.size()) ||
      task.coded.size() > coded_room)
    return error(UZIP_ERR_CORRUPT, "a frame of %llu elements has %zu + %zu bytes, more than it can have",
                 static_cast<unsigned long long>(header.count), task.plain.size(), task.coded.size());
  if (raw) UZIP_RETURN_IF_ERROR(check_checksum(header, task.plain));
  UZIP_ASSIGN_OR_RETURN(Operation* const operation, acquire(completion));
  if (raw) return commit(operation, kIn, check(api_.copy(task.dst.data(), task.plain.data(), bytes, streams_[kIn])));
  operation->kind = Operation::Kind::kDecode;
  operation->checked = task.header->flags & kFrameHasChecksum ? task.header : nullptr;
  return commit(operation, kWork, start_decode(task, *operation));
}

Status StreamExecutor::check_decoded(Operation& operation) {
  UZIP_RETURN_IF_ERROR(status_of_fault(std::exchange(operation.report->fault, 0)));
  return operation.checked ? check_checksum(*operation.checked, operation.report->checksum) : Status();
}

/// Brings the frame to the device, in one piece if its parts stay aligned so, and decodes it there.
Status StreamExecutor::start_decode(const DecodeTask& task, Operation& operation) {
  UZIP_ASSIGN_OR_RETURN(CodecContext* const codec, contexts_.get(0));
  const size_t plain = task.plain.size(), coded = task.coded.size();
  std::byte* const plain_at = task.place.plain.data();
  std::byte* coded_at = task.place.coded.data();
  const bool adjacent = task.coded.data() == task.plain.data() + plain && plain % kPartAlignment == 0 &&
                        plain + coded <= task.place.plain.size();
  if (adjacent) {
    coded_at = plain_at + plain;
    UZIP_RETURN_IF_ERROR(check(api_.copy(plain_at, task.plain.data(), plain + coded, streams_[kIn])));
  } else {
    if (plain > 0) UZIP_RETURN_IF_ERROR(check(api_.copy(plain_at, task.plain.data(), plain, streams_[kIn])));
    UZIP_RETURN_IF_ERROR(check(api_.copy(coded_at, task.coded.data(), coded, streams_[kIn])));
  }
  UZIP_RETURN_IF_ERROR(check(api_.record_event(operation.event, streams_[kIn])));
  UZIP_RETURN_IF_ERROR(check(api_.stream_waits_for_event(streams_[kWork], operation.event)));
  DecodeRequest request{};
  request.type = task.header->type;
  request.count = task.header->count;
  request.header = task.header;
  request.plain = plain_at;
  request.coded = coded_at;
  request.plain_room = plain;
  request.coded_room = coded;
  request.dst = task.dst.data();
  request.fault = &operation.report->fault;
  request.blocks = blocks_;
  UZIP_RETURN_IF_ERROR(check(api_.decode(codec, &request, streams_[kWork])));
  if (!operation.checked) return Status();
  const size_t bytes = request.count * datatype_size(static_cast<DataType>(request.type));
  return start_checksum(task.dst.data(), bytes, *operation.report);
}

}  // namespace uzip::gpu
