// Where a process puts copies of long bodies for the others of its host: memory in its inbox, which all of them see. Used by
// UcxTransport, which offers the sender's own memory where there is no place left.
//
// Two copies by programs are faster than one by the kernel, which spends more on each page than on its bytes; the sender has
// done with the body at once, and reading other processes' memory need not be allowed.
#pragma once

#include "base/transport.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace uzip {

inline constexpr size_t kStageBytes = size_t{4} << 20;
/// Bodies begin at multiples of a block.
inline constexpr size_t kStageBlocks = 64;
/// Longer bodies, which only programs that ask for longer pieces have, are offered.
inline constexpr size_t kMostStagedBytes = size_t{512} << 10;

/// Up to here copies through the stage are cheaper than system calls, also where bytes are only moved, between caches, to one
/// receiver or to several. Longer ones are offered.
size_t most_staged_moves(bool several);
/// Unanswered bodies of one receiver. Who is so far ahead of it waits with an offer: what is in the stage would leave the caches,
/// and the receiver's queue would be full, past which messages take UCX's longer way.
inline constexpr uint32_t kMostStagedAhead = 8;

/// The sender's end: which parts of its stage are in use. Others only read.
class LocalStage {
 public:
  /// The memory, kStageBytes of it; null: there is none.
  void use(std::byte* memory) { memory_ = memory; }

  /// Copies a body of 1 to kMostStagedBytes bytes to a place of its own, and says where that begins. Nothing: no place is
  /// free, or the body has another length. `second`, if it is not null, may be made on the way.
  std::optional<size_t> put(std::span<const std::byte> body, SecondCopy* second = nullptr);
  /// The place of the last body that was put, for one reader more. Nothing if it was another one, all its readers have
  /// given it back, or forget() was called since. The body must not have changed.
  std::optional<size_t> share(std::span<const std::byte> body);
  /// What was put last may change from now on.
  void forget() { last_ = {}; }
  /// Gives back the place of a body of `bytes` at `begin`, once for each put() and share().
  void give(size_t begin, size_t bytes);

 private:
  std::byte* memory_ = nullptr;
  uint64_t used_ = 0;               ///< a bit for each block
  uint32_t readers_[kStageBlocks] = {};  ///< of the body that begins at a block
  std::span<const std::byte> last_;  ///< the body that was put last; empty: forgotten
  size_t last_begin_ = 0;
};

}  // namespace uzip
