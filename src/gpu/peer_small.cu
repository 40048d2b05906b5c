// Small calls: one kernel on the caller's stream.
#include "gpu/peer_group.hpp"
#include "gpu/peer_kernels.hpp"
#include "gpu/peer_small_kernel.hpp"

#include "base/datatype.hpp"

namespace uzip::gpu {
namespace {

template <int kType>
__global__ void __launch_bounds__(kSmallThreads)
    small_kernel(const UZIP_KERNEL_ARGUMENT SmallArgs args) {
  SmallExchange<kType>(args).run();
}

template <int kType>
struct SmallKernel {
  static Error launch(const SmallArgs& args, unsigned blocks, Stream stream) {
    small_kernel<kType><<<blocks, kSmallThreads, 0, stream>>>(args);
    return take_error();
  }
  static Error load() { return load_kernel(small_kernel<kType>); }
};
constexpr const auto& kKernels = kPeerKernels<SmallKernel, SmallArgs>;

uint64_t bytes_of(const PeerCall& call) {
  return call.count * datatype_size(static_cast<DataType>(call.type));
}

void open_port(PeerGroup& group, const PeerCall& call, int rank, SmallPort* port) {
  PeerLane& lane = group.lane(rank);
  const int own = group.rank();
  const bool gather = call.coll == PeerColl::kAllgather;
  if (gather || sends_pair(call, own, own, rank)) {
    port->out = reinterpret_cast<uint4*>(
        lane.region + group.layout().small_at(rank, group.rank(), lane.small_sent));
    port->out_sequence = ++lane.small_sent;
    group.wire_bytes += 2 * bytes_of(call);
  }
  if (gather || sends_pair(call, own, rank, own)) {
    port->in = reinterpret_cast<const uint4*>(
        group.region() + group.layout().small_at(group.rank(), rank, lane.small_taken));
    port->in_sequence = ++lane.small_taken;
    port->credit = &group.flags(rank).small_credit[group.rank()];
  }
}

}  // namespace

int load_small_kernels() {
  for (const auto& kernel : kKernels) UZIP_CHECK(kernel.load(), "a kernel for small calls");
  return 0;
}

bool is_small(const PeerGroup& group, const PeerCall& call) {
  return bytes_of(call) <= group.layout().small_bytes();
}

int start_small(PeerGroup& group, const PeerCall& call, Stream stream, uint64_t ticket) {
  SmallArgs args{};
  for (int rank = 0; rank < group.ranks(); ++rank)
    if (rank != group.rank()) open_port(group, call, rank, &args.ports[rank]);
  args.credits = group.flags().small_credit;
  args.src = static_cast<const uint8_t*>(call.src);
  args.dst = static_cast<uint8_t*>(call.dst);
  args.bytes = bytes_of(call);
  args.src_stride = call.coll == PeerColl::kReduceScatter ? args.bytes : 0;
  args.dst_stride = call.coll == PeerColl::kAllgather ? args.bytes : 0;
  args.average_over = call.average_over;
  args.deadline_ns = group.options().deadline_ns;
  args.end = group.call_end(ticket);
  args.op = call.op;
  args.reduces = reduces(call.coll) && (call.coll != PeerColl::kReduce || call.peer == group.rank());
  const uint64_t units = (args.bytes + 7) / 8;
  const uint64_t wanted = (units + kSmallThreads - 1) / kSmallThreads;
  constexpr uint64_t kMostBlocks = 64;
  const auto blocks = static_cast<unsigned>(wanted < 1             ? 1
                                            : wanted < kMostBlocks ? wanted
                                                                   : kMostBlocks);
  return check(kKernels[call.type].launch(args, blocks, stream), "start of a small call");
}

}  // namespace uzip::gpu
