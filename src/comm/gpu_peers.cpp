#include "comm/gpu_peers.hpp"

#include "base/config.hpp"
#include "base/log.hpp"
#include "comm/gpu_devices.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

namespace uzip {
namespace {

/// Slots between two ranks: enough for what is coded, on its way, decoded, and for the words that say so.
constexpr unsigned kDepth = 6;
/// After so long a kernel that waits for a rank gives up, if the host has not done so before.
constexpr double kKernelSeconds = 60;
/// What a rank sends another of a call must have so many bytes before coding it is faster. Measured on two H200.
constexpr size_t kCodedBytes = size_t{64} << 20;

/// How long the end of a communicator waits for calls that it gave up.
constexpr std::chrono::seconds kGiveUpLimit{5};

struct Offer {
  int32_t usable;
  int32_t reserved;
  gpu::PeerHandle handle;
};

bool all_usable(const std::vector<Offer>& offers) {
  return std::all_of(offers.begin(), offers.end(), [](const Offer& offer) { return offer.usable != 0; });
}

std::optional<gpu::PeerColl> coll_here(CallKind kind) {
  switch (kind) {
    case CallKind::kAllreduce: return gpu::PeerColl::kAllreduce;
    case CallKind::kReduceScatter: return gpu::PeerColl::kReduceScatter;
    case CallKind::kAllgather: return gpu::PeerColl::kAllgather;
    default: return std::nullopt;
  }
}

}  // namespace

Result<std::unique_ptr<GpuPeers>> GpuPeers::connect(GpuDevices& gpus, const Config& config, int rank, int size,
                                                    const Exchange& exchange) {
  std::unique_ptr<GpuPeers> peers;
  std::vector<Offer> offers(static_cast<size_t>(size));
  Offer own{};
  int device = 0;
  const gpu::PluginApi* const api = config.gpu_peers && gpus.in_use() ? gpus.plugin() : nullptr;
  own.usable = api && api->current_device(&device) == 0;
  UZIP_RETURN_IF_ERROR(exchange(&own, offers.data(), sizeof own));
  if (!all_usable(offers)) return peers;  // some have no GPU, or don't want to

  peers.reset(new GpuPeers(gpus, *api, device, size));
  Status status = peers->create(config, rank, &own.handle);
  own.usable = status.ok();
  UZIP_RETURN_IF_ERROR(exchange(&own, offers.data(), sizeof own));
  if (all_usable(offers)) {
    std::vector<gpu::PeerHandle> handles;
    for (const Offer& offer : offers) handles.push_back(offer.handle);
    status = peers->check(api->peers()->connect(peers->group_, handles.data()));
    own.usable = status.ok();
    UZIP_RETURN_IF_ERROR(exchange(&own, offers.data(), sizeof own));
    if (all_usable(offers)) return peers;
  }
  log(LogLevel::kWarn, "the ranks' GPUs don't open their memory to one another; calls on it go through host memory%s%s",
      status.ok() ? "" : ": ", status.message().c_str());
  peers.reset();
  return peers;
}

GpuPeers::GpuPeers(GpuDevices& gpus, const gpu::PluginApi& api, int device, int size)
    : gpus_(gpus), api_(api), device_(device), size_(size) {
  gpus_.add(this);
}

Status GpuPeers::create(const Config& config, int rank, gpu::PeerHandle* own) {
  gpu::PeerOptions options{};
  options.rank = rank;
  options.ranks = size_;
  options.most_bytes = config.gpu_peer_memory ? config.gpu_peer_memory : GpuDevices::kDefaultMemory;
  options.deadline_ns = static_cast<uint64_t>(kKernelSeconds * 1e9);
  options.blocks = static_cast<unsigned>(config.gpu_blocks);
  options.depth = kDepth;
  return check(api_.peers()->create(&options, &group_, own));
}

GpuPeers::~GpuPeers() {
  given_up_ = given_up_ || busy();
  const auto limit = std::chrono::steady_clock::now() + kGiveUpLimit;
  while (busy() && std::chrono::steady_clock::now() < limit) progress();
  // What a stream may still write to stays for good.
  if (!busy()) api_.peers()->destroy(group_);
  gpus_.remove(this);
}

bool GpuPeers::suits(const CollArgs& args) const {
  const bool in_order = !args.options.algorithm || args.options.algorithm->in_rank_order;
  return args.device == device_ && coll_here(args.kind) && in_order && args.count > 0 && !args.user_op;
}

void GpuPeers::adapt(Plan& plan) const {
  const CallShape& shape = plan.shape;
  const size_t ranks = static_cast<size_t>(size_);
  const size_t piece = shape.count / (shape.kind == CallKind::kAllreduce ? ranks : 1) * datatype_size(shape.type);
  plan.algorithm = nullptr;
  plan.chunk = std::max<size_t>(shape.count, 1);
  plan.rounds = plan.window = 1;
  plan.split_rounds = 0;
  if (!shape.options.codec.codec) plan.codec = is_float(shape.type) && piece >= kCodedBytes ? find_codec("lev") : nullptr;
  plan.digest = static_cast<uint16_t>(plan.compute_digest() + 1);  // no other rank's call in rounds has it
}

Status GpuPeers::check_stream(void* stream) const {
  bool capturing = false;
  UZIP_RETURN_IF_ERROR(check(api_.is_capturing(stream, &capturing)));
  if (!capturing) return Status();
  return error(UZIP_ERR_UNSUPPORTED, "the stream is being captured, and a call between ranks can't become part of a "
                                     "graph; call outside of the capture");
}

Result<GpuPeers::Sent> GpuPeers::start(const CollArgs& args, const Plan& plan, const CallStamp& stamp, Completion* completion) {
  gpu::PeerCall call{};
  call.coll = *coll_here(args.kind);
  call.type = static_cast<uint8_t>(args.type);
  call.op = static_cast<uint8_t>(args.op);
  call.compress = plan.codec != nullptr;
  call.levels = plan.level == CodecLevel::kSmallest ? 2 : 1;
  call.count = args.count;
  call.average_over = args.op == UZIP_AVG ? static_cast<uint64_t>(size_) : 0;
  call.src = args.src;
  call.dst = args.dst;
  call.stamp = stamp;
  gpu::PeerTicket ticket{};
  UZIP_RETURN_IF_ERROR(check(api_.peers()->start(group_, &call, args.stream, &ticket)));
  calls_.push_back({ticket.number, completion});
  return Sent{ticket.payload_bytes, ticket.wire_bytes};
}

bool GpuPeers::progress() {
  if (calls_.empty()) return false;
  if (given_up_) static_cast<void>(api_.peers()->give_up(group_));
  bool moved = false;
  for (size_t i = 0; i < calls_.size();) {
    bool done = false;
    const Status status = check(api_.peers()->query(group_, calls_[i].ticket, &done));
    if (!done) {
      ++i;
      continue;
    }
    const Call call = calls_[i];
    calls_.erase(calls_.begin() + static_cast<ptrdiff_t>(i));
    call.completion->done(call.completion, status);
    moved = true;
  }
  return moved;
}

Status GpuPeers::check(int failed) const {
  switch (failed) {
    case 0: return Status();
    case gpu::kPeerUnsupported: return error(UZIP_ERR_UNSUPPORTED, "%s", api_.last_error());
    case gpu::kPeerTimedOut: return error(UZIP_ERR_TIMEOUT, "%s", api_.last_error());
    case gpu::kPeerCorrupt: return error(UZIP_ERR_CORRUPT, "%s", api_.last_error());
    default: return error(UZIP_ERR_INTERNAL, "%s", api_.last_error());
  }
}

}  // namespace uzip
