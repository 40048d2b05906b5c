// Runs the steps of a schedule on host memory, in the calling thread: everything is done when a call returns.
#pragma once

#include "base/executor.hpp"
#include "codec/codec.hpp"
#include "codec/reduce_frames.hpp"

#include <memory>
#include <vector>

namespace uzip {

class CpuExecutor final : public Executor {
 public:
  CpuExecutor();
  Result<Progress> copy(void* dst, const void* src, size_t bytes, Completion* completion) override;
  Result<Progress> reduce(ReduceOp op, DataType type, void* dst, std::span<const void* const> sources,
                          size_t count, size_t average_over, Completion* completion) override;
  Result<Progress> encode(const EncodeTask& task, Completion* completion) override;
  Result<Progress> decode(const DecodeTask& task, Completion* completion) override;
  bool fuses() const override { return true; }
  Result<Progress> decode_reduce(const DecodeReduceTask& task, Completion* completion) override;

 private:
  CodecScratch encode_scratch_;
  CodecScratch decode_scratch_;
  std::vector<ReduceOperand> operands_;     ///< of the reduction at hand
  std::unique_ptr<std::byte[]> reduce_work_;  ///< for reduce_frames()
};

}  // namespace uzip
