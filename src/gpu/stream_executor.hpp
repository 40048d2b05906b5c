// Runs the steps of a schedule on a GPU, through a plugin: every operation is put on a stream and completes in
// progress(). Elements and scratch are in memory of the device; frames are in pinned host memory, where a transport
// sends them from and receives them to, and pass through places in device memory on their way.
#pragma once

#include "base/executor.hpp"
#include "codec/codec.hpp"
#include "gpu/codec_contexts.hpp"
#include "gpu/plugin.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace uzip::gpu {

/// Levels of a frame that a GPU encodes; it knows no more than two.
constexpr int levels_on_gpu(CodecLevel level) { return level == CodecLevel::kFastest ? 1 : 2; }

/// One thread calls all functions, or several under a lock.
class StreamExecutor final : public Executor {
 public:
  /// On this device. `blocks`: thread blocks of a codec kernel, 0: as many as the device runs at a time.
  static Result<std::unique_ptr<StreamExecutor>> create(const PluginApi& api, int device, unsigned blocks);
  /// Waits for what is going on; completions are not called any more.
  ~StreamExecutor() override;
  StreamExecutor(const StreamExecutor&) = delete;
  StreamExecutor& operator=(const StreamExecutor&) = delete;

  /// UZIP_ERR_UNSUPPORTED: the caller's stream is being captured, so no call can begin on it.
  Status check_stream(void* stream) const;
  /// Completes when all that is now on the caller's stream is done; the stream has been checked.
  Result<Progress> after(void* stream, Completion* completion);
  /// The event on the caller's stream that a call of after() waits for; null when it has come.
  void* event_of(const Completion* completion) const;

  Result<Progress> copy(void* dst, const void* src, size_t bytes, Completion* completion) override;
  Result<Progress> reduce(ReduceOp op, DataType type, void* dst, std::span<const void* const> sources, size_t count,
                          size_t average_over, Completion* completion) override;
  Result<Progress> encode(const EncodeTask& task, Completion* completion) override;
  Result<Progress> decode(const DecodeTask& task, Completion* completion) override;
  bool progress() override;
  bool busy() const override { return in_flight_ > 0; }

  /// Room for the parts of a frame of `count` elements in device memory.
  struct PlaceSizes {
    size_t plain = 0;
    size_t coded = 0;
  };
  Result<PlaceSizes> place_sizes(DataType type, size_t count) const;

 private:
  /// Each has a stream of its own: copies in, kernels, copies out. What is on one ends in order.
  enum Lane { kIn, kWork, kOut, kLanes };
  /// What the device writes for the host.
  struct Report {
    FrameHeader header;
    uint64_t fault;
    uint32_t checksum;
  };
  struct Operation {
    /// What the end of its work means.
    enum class Kind : uint8_t { kLast, kEncode, kDecode } kind = Kind::kLast;
    void* event = nullptr;
    Report* report = nullptr;
    Completion* completion = nullptr;
    EncodeTask task;  ///< kEncode: what remains is to copy the frame out
    const FrameHeader* checked = nullptr;  ///< kDecode: null, or the checksum is compared with this one's
    Operation* next = nullptr;
  };
  /// First in first out.
  struct Queue {
    Operation* first = nullptr;
    Operation* last = nullptr;
    void push(Operation* operation);
    void pop() { first = first->next; }
  };

  StreamExecutor(const PluginApi& api, int device, unsigned blocks)
      : api_(api), device_(device), blocks_(blocks), contexts_(api, device) {}
  Status initialize();
  Status check(int failed) const { return device_status(api_, device_, failed); }
  Result<Operation*> acquire(Completion* completion);
  /// What was put on the lane since is this operation's, and pending; or given up, if `started` is an error.
  Result<Progress> commit(Operation* operation, Lane lane, const Status& started);
  Status add_reports();
  Status start_checksum(const void* elements, size_t bytes, Report& report);
  Status move(std::byte* dst, const std::byte* src, size_t bytes);
  Status start_encode(const EncodeTask& task, Report& report);
  Status start_decode(const DecodeTask& task, Operation& operation);
  Status copy_parts_out(const EncodeTask& task, const FrameHeader& header);
  Status read_header(Operation& operation);
  Status check_decoded(Operation& operation);
  void end(Operation* operation, const Status& status);
  bool progress(Queue& queue);
  void on_done(Operation* operation, const Status& status);

  const PluginApi& api_;
  const int device_;
  const unsigned blocks_;
  void* streams_[kLanes] = {};
  Queue queues_[kLanes];
  std::vector<Operation*> waits_;  ///< for streams of the caller's, in no order
  std::vector<std::unique_ptr<Operation>> operations_;  ///< all that were ever made
  std::vector<Operation*> free_;
  size_t in_flight_ = 0;
  std::vector<Report*> report_blocks_;
  CodecContexts contexts_;
  void* bounce_ = nullptr;  ///< for moves of overlapping elements
};

}  // namespace uzip::gpu
