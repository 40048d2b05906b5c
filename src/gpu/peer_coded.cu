// Calls by the kernel that codes and stores tiles, on the caller's stream.
#include "gpu/peer_coded_kernel.hpp"
#include "gpu/peer_launch.hpp"

#include <algorithm>

namespace uzip::gpu {
namespace {

/// Thread blocks on a processor, from which the registers of a thread follow.
inline constexpr int kCodedBlocks = 3;

/// How long the link takes for a tile of each processor, by the tile's 8 KiB. As measured on two H200.
inline constexpr uint64_t kTurnNs = 2000;

template <int kType>
__global__ void __launch_bounds__(kCodedThreads, kCodedBlocks)
    coded_kernel(const UZIP_KERNEL_ARGUMENT CodedArgs args) {
  extern __shared__ uint4 memory[];
  using Exchange = CodedExchange<kType>;
  Exchange(args, *reinterpret_cast<typename Exchange::Shared*>(memory)).run();
}

struct CodedKernel {
  Error (*launch)(const CodedArgs& args, unsigned blocks, Stream stream);
  Error (*occupancy)(int* blocks);
  uint32_t slots;  ///< that a tile takes
};

template <int kType>
CodedKernel make_kernel() {
  using Exchange = CodedExchange<kType>;
  constexpr unsigned kBytes = sizeof(typename Exchange::Shared);
  return {[](const CodedArgs& args, unsigned blocks, Stream stream) {
            coded_kernel<kType><<<blocks, kCodedThreads, kBytes, stream>>>(args);
            return take_error();
          },
          [](int* blocks) {
            return blocks_per_processor(blocks, coded_kernel<kType>, kCodedThreads, kBytes);
          },
          Exchange::kSlots};
}

/// Null: there is none, since a tile does not fit in shared memory.
template <int kType>
const CodedKernel* kernel_for() {
  if constexpr (kHasPartialBarriers && kStagesPlain<typename FormatOf<kType>::Type>) {
    static const CodedKernel kernel = make_kernel<kType>();
    return &kernel;
  } else {
    return nullptr;
  }
}

const CodedKernel* kernel_of(uint8_t type) {
  switch (type) {
    case UZIP_FP16: return kernel_for<UZIP_FP16>();
    case UZIP_BF16: return kernel_for<UZIP_BF16>();
    case UZIP_FP32: return kernel_for<UZIP_FP32>();
    case UZIP_FP64: return kernel_for<UZIP_FP64>();
    case UZIP_FP8_E4M3FN: return kernel_for<UZIP_FP8_E4M3FN>();
    case UZIP_FP8_E5M2: return kernel_for<UZIP_FP8_E5M2>();
    default: return nullptr;
  }
}

class CodedCall {
 public:
  CodedCall(PeerGroup& group, const PeerCall& call, const CodedKernel& kernel)
      : group_(group),
        call_(call),
        kernel_(kernel),
        element_(datatype_size(static_cast<DataType>(call.type))) {}

  int start(Stream stream, uint64_t ticket) {
    uint64_t most = 0;
    for (int rank = 0; rank < group_.ranks(); ++rank) {
      const ElementRange range = chunk_of_rank(group_, call_, rank, tile_values(element_));
      args_.chunks[rank] = {range.first, range.count};
      most = std::max(most, tiles(rank));
    }
    for (int rank = 0; rank < group_.ranks(); ++rank)
      if (rank != group_.rank()) open_port(rank);
    if (gathers(call_.coll)) advance(group_.coded_shared, tiles(group_.rank()));
    describe_call(group_, call_, args_.chunks[group_.rank()].begin * element_, ticket, args_);
    describe_coding();
    args_.coded_units = group_.coded_units(ticket);
    args_.coded_bytes = &group_.ticket_words(ticket).coded;
    group_.coded_elements(ticket) = sent_values() * element_;
    int each = 0;
    UZIP_CHECK(kernel_.occupancy(&each), "a kernel between ranks");
    // All of them are at work at a time, and others' waits end as long as a ring has more slots. A
    // message goes beside one in the other direction, which may be one of a store kernel, whose
    // thread blocks are large: with more than that, one of them might find no processor free.
    const uint64_t here = static_cast<uint64_t>(each) * group_.processors();
    const uint64_t limits[] = {
        is_message(call_.coll) ? here * 3 / 8 : here, most,
        args_.slots / ((kCodedLag + 1) * kernel_.slots),
        group_.options().blocks > 0 ? group_.options().blocks : ~uint64_t{0}};
    const auto blocks =
        static_cast<unsigned>(std::max<uint64_t>(1, *std::min_element(limits, limits + 4)));
    args_.rounds = static_cast<uint32_t>((most + blocks - 1) / blocks);
    args_.turn_blocks = group_.processors();
    args_.turn_ns = static_cast<uint32_t>(kTurnNs * (tile_values(element_) * element_ / 8192));
    return check(kernel_.launch(args_, blocks, stream), "start of a call between ranks");
  }

 private:
  /// Whether tiles stay in the sender's memory until the receiver's processors fetch them from there:
  /// faster where bytes go one way only, as measured on two H200. Else they are stored in the
  /// receiver's memory.
  bool fetches() const {
    return call_.coll == PeerColl::kSend || call_.coll == PeerColl::kRecv;
  }
  uint64_t tiles(int rank) const {
    return (args_.chunks[rank].count + tile_values(element_) - 1) / tile_values(element_);
  }

  /// That this rank codes.
  uint64_t sent_values() const {
    uint64_t values = gathers(call_.coll) ? args_.chunks[group_.rank()].count : 0;
    for (int rank = 0; rank < group_.ranks(); ++rank)
      if (args_.ports[rank].push.tiles != nullptr) values += args_.chunks[rank].count;
    return values;
  }

  /// Where a ring goes on, so that no tile of several slots is torn.
  uint64_t begin_of(uint64_t count) const {
    return (count + kernel_.slots - 1) / kernel_.slots * kernel_.slots;
  }
  void advance(uint64_t& count, uint64_t tiles) const {
    count = begin_of(count) + tiles * kernel_.slots;
  }

  /// The ring by which `from` stores for `owner`, one of which is this rank.
  TileRing ring_between(PeerRing ring, int owner, int from, uint64_t count) {
    const PeerLayout& layout = group_.layout();
    uint8_t* const tiles = fetches() ? group_.region(from) + layout.coded_at(ring, from, owner)
                                     : group_.region(owner) + layout.coded_at(ring, owner, from);
    return make_ring(tiles, group_.region(owner) + layout.coded_ready_at(ring, owner, from),
                     group_.region(from) + layout.coded_credit_at(ring, from, owner), begin_of(count));
  }

  void open_port(int rank) {
    PeerLane& lane = group_.lane(rank);
    CodedPort& port = args_.ports[rank];
    const int own = group_.rank();
    if (sends_pair(call_, own, own, rank)) {
      port.push = ring_between(kPairRing, rank, own, lane.coded_sent);
      advance(lane.coded_sent, tiles(rank));
      count_wire_bytes(rank);
    }
    if (sends_pair(call_, own, rank, own)) {
      port.take = ring_between(kPairRing, own, rank, lane.coded_taken);
      port.take_skips = begin_of(lane.coded_taken) != lane.coded_taken;
      advance(lane.coded_taken, tiles(own));
    }
    if (gathers(call_.coll)) {
      port.share = ring_between(kShareRing, rank, own, group_.coded_shared);
      port.collect = ring_between(kShareRing, own, rank, lane.coded_collected);
      port.collect_skips = begin_of(lane.coded_collected) != lane.coded_collected;
      advance(lane.coded_collected, tiles(rank));
      count_wire_bytes(own);
    }
  }
  /// What a chunk takes with codes of three bits and few escapes; what it really takes never comes
  /// to the host.
  void count_wire_bytes(int rank) {
    const uint64_t count = args_.chunks[rank].count;
    group_.wire_bytes += count * (element_ - 1) + count * 26 / 64 + tiles(rank) * 64;
  }

  void describe_coding() {
    args_.slots = group_.layout().coded_slots();
    args_.levels = static_cast<uint32_t>(call_.levels);
    args_.reduces = args_.combines && reduces(call_.coll);
    args_.pulling.dst = args_.dst;
    args_.spreading.dst = group_.region();
    args_.combining.dst = args_.own_result;
    args_.combining.operand = args_.own;
    for (DecodeArgs* decoding : {&args_.pulling, &args_.spreading, &args_.combining}) {
      decoding->type = call_.type;
      decoding->op = call_.op;
      decoding->average_over = call_.average_over;
    }
  }

  PeerGroup& group_;
  const PeerCall& call_;
  const CodedKernel& kernel_;
  const uint64_t element_;
  CodedArgs args_{};
};

}  // namespace

int load_coded_kernels() {
  for (int type = 0; type <= UZIP_FP8_E5M2; ++type) {
    const CodedKernel* const kernel = kernel_of(static_cast<uint8_t>(type));
    int blocks = 0;
    // Asking for this loads it.
    if (kernel != nullptr) UZIP_CHECK(kernel->occupancy(&blocks), "a kernel between ranks");
  }
  return 0;
}

bool is_coded_here(const PeerGroup& group, const PeerCall& call) {
  if (!call.compress || kernel_of(call.type) == nullptr) return false;
  const uint64_t most = group.options().most_coded_here;
  return chunk_bytes(group, call) < (most == 0 ? ~uint64_t{0} : most);
}

int start_coded(PeerGroup& group, const PeerCall& call, Stream stream, uint64_t ticket) {
  return CodedCall(group, call, *kernel_of(call.type)).start(stream, ticket);
}

}  // namespace uzip::gpu
