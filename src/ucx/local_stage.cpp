#include "ucx/local_stage.hpp"

#include "base/copy.hpp"
#include "base/cpu.hpp"
#include "base/streaming_copy.hpp"

#include <algorithm>
#include <bit>

namespace uzip {
namespace {

constexpr size_t kBlockBytes = kStageBytes / kStageBlocks;
static_assert(kStageBlocks <= 64 && kMostStagedBytes / kBlockBytes < kStageBlocks);

size_t blocks_of(size_t bytes) { return (bytes + kBlockBytes - 1) / kBlockBytes; }

/// So many ones, fewer than 64.
uint64_t ones(size_t count) { return (uint64_t{1} << count) - 1; }

// Between AMD's cores that share no cache lines come faster from memory than from the core that wrote them. Intel's share one:
// between them an all-reduce of 256 KiB to 4 MiB takes 1.25 to 1.35 times as long by way of memory.
void copy_for_others(std::byte* dst, std::span<const std::byte> body) {
  cpu_vendor() == CpuVendor::kAmd ? copy_past_caches(dst, body.data(), body.size()) : copy_bytes(dst, body.data(), body.size());
}

// The same, and the second copy. Without streaming stores whole copies of what fits into the first cache are the fastest: see
// copy_bytes(). On AMD's processors, where all stores would be streaming ones, it has not been measured.
void copy_for_others(std::byte* dst, std::span<const std::byte> body, SecondCopy& second) {
  constexpr size_t kPart = size_t{16} << 10;
  second.made = cpu_vendor() != CpuVendor::kAmd;
  if (!second.made) return copy_for_others(dst, body);
  if (second.streams) return copy_twice(dst, second.to, body.data(), body.size());
  for (size_t begin = 0; begin < body.size(); begin += kPart) {
    const std::span<const std::byte> part = body.subspan(begin, std::min(kPart, body.size() - begin));
    copy_bytes(dst + begin, part.data(), part.size());
    copy_bytes(second.to + begin, part.data(), part.size());
  }
}

}  // namespace

// Between Intel's cores lines that were just written move slowly, and each copy more costs as much: 32 KiB take 12 instead of 8
// microseconds. Several receivers share one of the two copies, and would read the sender's memory one system call each.
size_t most_staged_moves(bool several) {
  if (several) return size_t{256} << 10;
  return cpu_vendor() == CpuVendor::kIntel ? size_t{16} << 10 : size_t{64} << 10;
}

std::optional<size_t> LocalStage::put(std::span<const std::byte> body, SecondCopy* second) {
  if (memory_ == nullptr || body.empty() || body.size() > kMostStagedBytes) return std::nullopt;
  const size_t blocks = blocks_of(body.size());
  uint64_t begins = ~used_;
  for (size_t i = 1; i < blocks; ++i) begins &= ~used_ >> i;
  if (begins == 0) return std::nullopt;
  const auto first = static_cast<size_t>(std::countr_zero(begins));
  used_ |= ones(blocks) << first;
  readers_[first] = 1;
  last_ = body;
  last_begin_ = first * kBlockBytes;
  std::byte* const place = memory_ + first * kBlockBytes;
  second ? copy_for_others(place, body, *second) : copy_for_others(place, body);
  return first * kBlockBytes;
}

std::optional<size_t> LocalStage::share(std::span<const std::byte> body) {
  if (last_.empty() || last_.data() != body.data() || last_.size() != body.size()) return std::nullopt;
  ++readers_[last_begin_ / kBlockBytes];
  return last_begin_;
}

void LocalStage::give(size_t begin, size_t bytes) {
  const size_t first = begin / kBlockBytes;
  if (--readers_[first] > 0) return;
  used_ &= ~(ones(blocks_of(bytes)) << first);
  if (last_begin_ == begin) forget();
}

}  // namespace uzip
