// What uzip_tune measured on this machine: links, codecs, and the best way of carrying out a call by kind, type,
// ranks and size. The selector looks it up; uzip_tune writes and explains it. docs/TUNING.md specifies the text.
#pragma once

#include "comm/coll_args.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace uzip {

/// Over what the ranks of a job talk to each other.
enum class LinkClass : uint8_t { kShared, kNetwork };
inline constexpr int kLinkClassCount = 2;
/// "shared" or "network".
const char* link_class_name(LinkClass link);

struct TunedLink {
  double latency = 0;    ///< seconds for a small message
  double bandwidth = 0;  ///< bytes per second, all ranks sending, of a rank or, on a network, of a host; 0: not measured
};

/// One core's speed, in bytes of elements per second, on random numbers of a normal distribution.
struct TunedCodec {
  CodecChoice codec;
  DataType type = UZIP_BF16;
  double encode = 0;
  double decode = 0;
  double ratio = 1;  ///< bytes of the frame per byte of elements
  double plain = 0;  ///< of these, per byte of elements, the plain part; not in the text, 0 if it was read
};

/// "raw", "lev:fastest": as parse_codec_choice() reads it. There must be a codec.
std::string tuned_codec_name(const CodecChoice& choice);

/// How a call may be carried out. Codec and split-send change no bits of a result, algorithm and chunk may.
struct TunedWay {
  const Algorithm* algorithm = nullptr;  ///< nullptr for point to point
  size_t chunk_bytes = 0;                ///< 0: as without a table
  CodecChoice codec;                     ///< always one; "raw" for none
  bool split = false;

  bool operator==(const TunedWay&) const = default;
};

/// A call that was measured, one way.
struct TunedCall {
  LinkClass link = LinkClass::kShared;
  CallKind kind = CallKind::kAllreduce;  ///< see tuned_kind()
  DataType type = UZIP_BF16;
  int ranks = 2;     ///< 2 for point to point
  int per_host = 1;  ///< ranks behind one adapter of a network, see largest_host()
  size_t bytes = 0;  ///< of the whole call, see tuned_bytes()
  TunedWay way;
  double seconds = 0;

  bool same_call(const TunedCall& other) const {
    return link == other.link && kind == other.kind && type == other.type && ranks == other.ranks &&
           per_host == other.per_host && bytes == other.bytes;
  }
};

/// Ranks on the host that has the most, of those that share an adapter: 1 if each is on its own, or all are on one.
/// `hosts` by rank; empty in both cases.
int largest_host(const std::vector<int>& hosts);

/// The kind under which a call stands in the table: the v forms under those without, receiving under sending.
CallKind tuned_kind(CallKind kind);
/// Bytes of the one vector that a call is about (all-reduce, broadcast, reduce, send), or of all ranks' blocks together;
/// SIZE_MAX on overflow.
size_t tuned_bytes(CallKind kind, size_t count, size_t element, int ranks);

class TuningTable {
 public:
  std::string machine;  ///< for people; "" if unknown
  std::array<TunedLink, kLinkClassCount> links;
  std::vector<TunedCodec> codecs;
  std::vector<TunedCall> choices;  ///< the best way of each call; at most one for a call
  std::vector<TunedCall> tried;    ///< what else was measured, for uzip_tune --explain

  /// UZIP_ERR_CONFIG that names the line, what it has and what is allowed. Takes any bytes.
  static Result<TuningTable> parse(std::string_view text);
  /// Text that parse() reads back.
  std::string print() const;

  /// The choice for the measured size that is nearest in proportion, at most eight times smaller or larger; from 1 MiB
  /// on also if it is much smaller. nullptr if no such call was measured.
  const TunedCall* find(LinkClass link, CallKind kind, DataType type, int ranks, size_t bytes, int per_host = 1) const;
  const TunedLink& link(LinkClass which) const { return links[static_cast<size_t>(which)]; }

  /// Of all that the selector may use; never 0. Equal digests mean equal plans.
  uint64_t digest() const;
};

}  // namespace uzip
