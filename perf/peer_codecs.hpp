// Other people's lossless compressors as neighbours in the table of perf/codec: those that
// configure has found. Never part of the library.
#pragma once

#include "base/datatype.hpp"

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace uzip {

struct PeerCodec {
  std::string name;  ///< with its settings, as its own documentation calls them
  std::function<bool(const DataTypeInfo&)> supports;
  /// Bytes written to `dst`, 0 when it could not or would not.
  std::function<size_t(const DataTypeInfo&, std::span<const std::byte> src,
                       std::span<std::byte> dst)>
      encode;
  /// Fills `dst`. False when it could not.
  std::function<bool(const DataTypeInfo&, std::span<const std::byte> src, std::span<std::byte> dst)>
      decode;
};

/// All there are; empty when none was found.
std::vector<PeerCodec> peer_codecs();

/// Room that any of them needs for `bytes` of elements.
constexpr size_t peer_bound(size_t bytes) { return 2 * bytes + 65536; }

}  // namespace uzip
