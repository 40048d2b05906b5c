// Frames in the slots between ranks, and the kernels that make and take them. Used by the pipeline.
#pragma once

#include "base/datatype.hpp"
#include "codec/lev_layout.hpp"
#include "gpu/cooperative.hpp"
#include "gpu/peer_group.hpp"

#include <algorithm>

namespace uzip::gpu {

/// A frame in a slot: header, plain part, coded part.
struct FrameRoom {
  uint64_t plain_bytes;
  /// Bytes of the coded part that are copied, whatever it has. What is beyond is read from the
  /// sender's memory, where it is.
  uint64_t coded_room;

  uint64_t copied_bytes() const { return kFrameRoom + plain_bytes + coded_room; }
};

struct SlotFrame {
  uint8_t* memory;
  FrameRoom room;

  FrameHeader* header() const { return reinterpret_cast<FrameHeader*>(memory); }
  uint8_t* plain() const { return memory + kFrameRoom; }
  uint8_t* coded() const { return plain() + room.plain_bytes; }
};

/// A piece that has come from a rank.
struct Arrival {
  uint8_t* inbox;
  const uint8_t* outbox;  ///< of the sender, if it is a frame
  uint64_t count;
  uint64_t sequence;
};

/// Of one call. Functions answer as those of PluginApi.
class PeerFrames {
 public:
  PeerFrames(PeerGroup& group, const PeerCall& call, const PluginApi& api)
      : group_(group), call_(call), api_(api) {}

  /// Elements of a frame that fits into a slot: whole into the outbox, what is copied of it into the inbox.
  int most_elements(uint64_t* most) const {
    uint64_t plain = 0;
    uint64_t coded = 0;
    const uint64_t tile = tile_values();
    if (api_.encode_bound(call_.type, tile, &plain, &coded) != 0) return 1;
    const PeerLayout& layout = group_.layout();
    const uint64_t in_outbox = plain + coded + sizeof(LevTableEntry);
    const uint64_t in_inbox = room(tile).copied_bytes() - kFrameRoom;
    *most = tile * std::min((layout.outbox_bytes() - kFrameRoom) / in_outbox,
                            (layout.inbox_bytes() - kFrameRoom) / in_inbox);
    return 0;
  }

  /// Empty if there is no such frame, which encode() and decode() say.
  FrameRoom room(uint64_t count) const {
    FrameRoom result{};
    uint64_t bound = 0;
    if (api_.encode_bound(call_.type, count, &result.plain_bytes, &bound) != 0) return result;
    const uint64_t tiles = (count + tile_values() - 1) / tile_values();
    // Codes of three bits and few escapes. Two levels have no more than that.
    const uint64_t codes = call_.levels > 1 ? count * 24 / 64 : count * 26 / 64;
    const uint64_t expected = lev_first_block(tiles) + codes + tiles * 64;
    result.coded_room = std::min(bound, expected) / kBlockAlignment * kBlockAlignment;
    return result;
  }

  int encode(WorkStream& work, CodecContext* codec, const uint8_t* elements, uint64_t count,
              const SlotFrame& frame) {
    EncodeRequest request{};
    request.type = call_.type;
    request.count = count;
    request.src = elements;
    request.plain = frame.plain();
    request.coded = frame.coded();
    request.header = frame.header();
    request.call = call_.stamp;
    request.levels = call_.levels;
    request.fixed_plain = true;
    request.blocks = group_.options().blocks;
    return api_.encode(codec, &request, work.stream);
  }

  int decode(WorkStream& work, const Arrival& arrival, uint8_t* result, const uint8_t* operand) {
    const SlotFrame frame = {arrival.inbox, room(arrival.count)};
    DecodeRequest request{};
    request.type = call_.type;
    request.count = arrival.count;
    request.header = frame.header();
    request.header_on_device = true;
    request.plain = frame.plain();
    request.coded = frame.coded();
    request.plain_room = frame.room.plain_bytes;
    request.coded_room = frame.room.coded_room;
    request.coded_rest = arrival.outbox + (frame.coded() - arrival.inbox);
    request.dst = result;
    request.operand = operand;
    request.op = call_.op;
    request.average_over = call_.average_over;
    request.fault = &group_.faults().decode;
    request.blocks = group_.options().blocks;
    return api_.decode(group_.share_codec(), &request, work.stream);
  }

 private:
  uint64_t tile_values() const {
    return gpu::tile_values(datatype_size(static_cast<DataType>(call_.type)));
  }

  PeerGroup& group_;
  const PeerCall& call_;
  const PluginApi& api_;
};

}  // namespace uzip::gpu
