// Where a process puts copies of long bodies for the others of its host: memory in its inbox, which all of them see. Used by
// UcxTransport, which offers the sender's own memory where there is no place left.
//
// Two copies by programs are faster than one by the kernel, which spends more on each page than on its bytes; the sender has
// done with the body at once, and reading other processes' memory need not be allowed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace uzip {

inline constexpr size_t kStageBytes = size_t{4} << 20;
/// Longer bodies, which only programs that ask for longer pieces have, are offered.
inline constexpr size_t kMostStagedBytes = size_t{512} << 10;

/// Up to here two copies through the stage are cheaper than a system call, also where bytes are only moved, between caches. Longer
/// ones are offered.
size_t most_staged_moves();

/// The sender's end: which parts of its stage are in use. Others only read.
class LocalStage {
 public:
  /// The memory, kStageBytes of it; null: there is none.
  void use(std::byte* memory) { memory_ = memory; }

  /// Copies a body of 1 to kMostStagedBytes bytes to a place of its own, and says where that begins. Nothing: no place is
  /// free, or the body has another length.
  std::optional<size_t> put(std::span<const std::byte> body);
  /// Gives back the place of a body of `bytes` that put() made at `begin`.
  void give(size_t begin, size_t bytes);

 private:
  std::byte* memory_ = nullptr;
  uint64_t used_ = 0;  ///< a bit for each block
};

}  // namespace uzip
