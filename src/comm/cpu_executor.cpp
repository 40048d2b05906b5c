#include "comm/cpu_executor.hpp"

#include "base/copy.hpp"

#include <cassert>
#include <cstdint>
#include <cstring>

namespace uzip {
namespace {

Result<Progress> done_or(const Status& status) {
  if (!status.ok()) return status;
  return Progress::kDone;
}

static_assert(kMostDecodeReduceSources <= kMostReduceOperands);

}  // namespace

// Not value-initialized: most of it is never touched.
CpuExecutor::CpuExecutor() : reduce_work_(new std::byte[reduce_frames_bytes(UZIP_FP64, 1)]) {
  operands_.reserve(kMostDecodeReduceSources);
}

Result<Progress> CpuExecutor::copy(void* dst, const void* src, size_t bytes, Completion*) {
  const auto to = reinterpret_cast<uintptr_t>(dst), from = reinterpret_cast<uintptr_t>(src);
  if (to < from + bytes && from < to + bytes) {
    std::memmove(dst, src, bytes);
  } else {
    copy_bytes(dst, src, bytes);
  }
  return Progress::kDone;
}

Result<Progress> CpuExecutor::reduce(ReduceOp op, DataType type, void* dst,
                                     std::span<const void* const> sources, size_t count,
                                     size_t average_over, Completion*) {
  uzip::reduce(op, type, dst, sources, count, average_over);
  return Progress::kDone;
}

Result<Progress> CpuExecutor::encode(const EncodeTask& task, Completion*) {
  const Codec& codec = *task.codec;
  FrameHeader& header = *task.header;
  switch (task.stage) {
    case EncodeStage::kPlain:
      return done_or(codec.encode_plain(task.type, task.level, task.src, task.count, task.plain,
                                        encode_scratch_, header));
    case EncodeStage::kCoded:
      return done_or(codec.encode_coded(task.type, task.level, task.src, task.count, task.coded,
                                        encode_scratch_, header));
    case EncodeStage::kWhole: break;
  }
  return done_or(codec.encode(task.type, task.level, task.src, task.count, task.plain, encode_scratch_, header));
}

Result<Progress> CpuExecutor::decode(const DecodeTask& task, Completion*) {
  const Codec* codec = find_codec(task.header->codec);
  if (!codec)
    return error(UZIP_ERR_CORRUPT, "a frame was made by codec %u, which this library does not have",
                 task.header->codec);
  const auto decode = task.streams ? codec->decode_streaming : codec->decode;
  return done_or(decode(*task.header, task.plain, task.coded, task.dst, decode_scratch_));
}

Result<Progress> CpuExecutor::decode_reduce(const DecodeReduceTask& task, Completion*) {
  assert(task.sources.size() <= kMostDecodeReduceSources);
  operands_.clear();
  for (const void* elements : task.sources) {
    if (elements) operands_.push_back({elements, nullptr, {}, {}});
    else operands_.push_back({nullptr, task.frame.header, task.frame.plain, task.frame.coded});
  }
  return done_or(reduce_frames(task.op, task.type, task.dst, operands_, task.count, task.average_over,
                               {reduce_work_.get(), reduce_frames_bytes(task.type, 1)}, decode_scratch_));
}

}  // namespace uzip
