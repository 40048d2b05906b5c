#include "comm/selector.hpp"

#include "algos/rank_groups.hpp"
#include "base/cpu.hpp"
#include "comm/codec_speed.hpp"
#include "comm/message_head.hpp"

#include <algorithm>
#include <cstdio>

namespace uzip {
namespace {

/// A piece of this size stays in the L2 cache from its arrival until it is reduced and sent on, and so does one from each
/// rank: all together have as much as two. Those of three rounds then fit into the sender's stage, too.
constexpr size_t kSharedMemoryChunkBytes = 256 * 1024;
constexpr size_t kSharedMemoryRoundBytes = 2 * kSharedMemoryChunkBytes;
constexpr size_t kLeastSharedMemoryChunkBytes = 64 * 1024;
/// On a network: large enough to hide headers, small enough to go without a rendezvous, whose answer would queue behind
/// the data of other pieces (256 KiB took 1.1 to 1.7 times as long at 1 Gb/s).
constexpr size_t kNetworkChunkBytes = 64 * 1024;
/// The same in a job that uses GPUs, where each piece costs launches. Where buffers are is a rank's own matter and can't
/// decide; that some rank has a GPU is known to all.
constexpr size_t kGpuNetworkChunkBytes = 1024 * 1024;
/// Scratch and wire places of one round together take about this much at most, up to some thousand ranks.
constexpr size_t kRoundBytes = 32 * 1024 * 1024;
/// Scratch and wire places that an algorithm uses for each share of a round, at most.
constexpr size_t kPlacesPerShare = 4;
constexpr size_t kSmallestChunkBytes = 4 * 1024;
/// Pieces begin at multiples of this many elements, so that vector loops and codec blocks start aligned.
constexpr size_t kChunkAlignment = 64;
/// Rounds in flight: enough to overlap the phases of rounds, and on a network to fill the line.
constexpr uint32_t kSharedMemoryWindow = 3;
/// With more ranks a broadcast is faster by way of copies that they share.
constexpr int kMostBroadcastAtOnce = 3;
/// Few ranks of one socket reduce vectors that stay in the caches faster up a tree than all at once: the formulas don't know
/// that operands are read where their sender put them, which makes the one hop of a tree cheap (docs/PERFORMANCE.md).
constexpr int kMostReducedUpATree = 4;
constexpr size_t kMostBytesUpATree = size_t{4} << 20;
/// A result of this size does not stay in the caches until the call is over: the parts of it that no later step reads are better
/// written past them. Between Intel's cores it is the results of all ranks together, but for what a rank's own caches may keep; in
/// place twice as much, since there is nothing else.
constexpr size_t kPastCachesBytes = size_t{32} << 20;
constexpr size_t kMostOwnCachesBytes = size_t{8} << 20;
/// What a rank reads of another's memory at a time, so that it does something else now and then.
constexpr size_t kMovedPieceBytes = size_t{16} << 20;
constexpr uint32_t kNetworkWindow = 8;
/// Below this many bytes in a piece, coding costs more time than it saves on any link we know.
constexpr size_t kCodecThresholdBytes = 16 * 1024;
/// The same in a job that uses GPUs, where coding a piece costs launches and copies: 30 us and more, for which a fast
/// network takes 200 KiB.
constexpr size_t kGpuCodecThresholdBytes = 256 * 1024;

/// Costs that differ by less are equal: sums in another order are rounded in another way.
constexpr double kEqualCost = 1 - 1e-9;

/// Which part of a small message's time a core works on it, at either end. Typical values.
constexpr double kSharedMemoryMessage = 0.3;
constexpr double kNetworkMessage = 0.14;
/// Seconds that a copy or a reduction takes besides its bytes, and bytes of operands that a core reduces in a second.
constexpr double kStep = 0.3e-6;
constexpr double kReduceBandwidth = 20e9;

/// Between the sockets of a host: all cores of one together. Typical values.
constexpr double kSocketLatency = 0.7e-6;
constexpr double kSocketBandwidth = 40e9;

/// Bytes of a share from which it is coded, if nobody asked for a codec.
size_t codec_threshold(const Config& config, const LinkFacts& link) {
  if (config.codec_threshold) return config.codec_threshold;
  return link.gpus ? kGpuCodecThresholdBytes : kCodecThresholdBytes;
}

size_t round_up(size_t value, size_t to) { return (value + to - 1) / to * to; }

}  // namespace

LinkFacts link_facts(bool all_same_host, const TuningTable* tuning) {
  // Typical values; algorithms cross over where they should within a factor of two on either side.
  LinkFacts facts = {.shared_memory = false, .latency = 20e-6, .bandwidth = 1.25e9};
  if (all_same_host) facts = {.shared_memory = true, .peer_reads = true, .latency = 0.5e-6, .bandwidth = 8e9};
  const TunedLink measured = tuning ? tuning->link(all_same_host ? LinkClass::kShared : LinkClass::kNetwork) : TunedLink();
  if (measured.bandwidth > 0) {
    facts.latency = measured.latency;
    facts.bandwidth = measured.bandwidth;
  }
  return facts;
}

const TunedCall* Selector::tuned(const CallShape& shape) const {
  if (!tuning_ || shape.kind == CallKind::kBarrier || is_pairwise(shape.kind) ||
      shape.kind == CallKind::kNeighborAlltoallV)
    return nullptr;
  const int ranks = is_point_to_point(shape.kind) ? 2 : shape.size;
  const size_t bytes = tuned_bytes(shape.kind, shape.count, datatype_size(shape.type), ranks);
  return tuning_->find(link_.shared_memory ? LinkClass::kShared : LinkClass::kNetwork, shape.kind, shape.type, ranks,
                       bytes, is_point_to_point(shape.kind) ? 1 : largest_host(hosts_));
}

CostModel Selector::cost_model() const {
  CostModel model;
  model.latency = link_.latency;
  model.message = link_.latency * (link_.shared_memory ? kSharedMemoryMessage : kNetworkMessage);
  model.step = kStep;
  model.seconds_per_byte = largest_host(hosts_) / link_.bandwidth;  // a rank's share of its host's adapter
  model.alone_per_byte = 1 / link_.bandwidth;
  model.reduce_per_byte = 1 / kReduceBandwidth;
  model.cores_carry = link_.shared_memory;
  const LinkFacts local = link_facts(true, tuning_.get());
  model.local_latency = local.latency;
  model.local_message = local.latency * kSharedMemoryMessage;
  model.local_seconds_per_byte = 1 / local.bandwidth;
  model.local_cores_carry = true;
  if (!sockets_.empty()) add_sockets(model);
  return model;
}

/// What joins the sockets of a host, and how that slows down algorithms that know nothing of it, where all ranks share one
/// host: of what a rank sends, a part crosses, and the ranks of a socket share the way.
void Selector::add_sockets(CostModel& model) const {
  Shape shape;
  shape.size = static_cast<int>(sockets_.size());
  shape.hosts = hosts_;
  shape.sockets = sockets_;
  model.socket_latency = kSocketLatency;
  model.socket_seconds_per_byte = 1 / kSocketBandwidth;
  model.ranks_per_socket = socket_sizes(shape).largest;
  if (!link_.shared_memory) return;
  const double crossing = (shape.size - model.ranks_per_socket) / std::max(shape.size - 1, 1);
  model.seconds_per_byte =
      std::max(model.seconds_per_byte, crossing * model.ranks_per_socket * model.socket_seconds_per_byte);
}

/// Whether what one rank sends another at a time, about, has `threshold` bytes: of an all-reduce and of the v forms a
/// rank's share. Pairs of ranks that have counts of their own must not choose by them.
bool Selector::worth_coding(const CallShape& shape, size_t threshold) const {
  if (is_pairwise(shape.kind) || shape.kind == CallKind::kNeighborAlltoallV) return true;
  const bool divided = shape.kind == CallKind::kAllreduce || !shape.counts.empty();
  const size_t share = divided ? shape.count / static_cast<size_t>(shape.size) : shape.count;
  return share * datatype_size(shape.type) >= threshold;
}

const TunedLink* Selector::tuned_network() const {
  const bool known = tuning_ && tuning_->link(LinkClass::kNetwork).bandwidth > 0 && !tuning_->codecs.empty();
  return known ? &tuning_->link(LinkClass::kNetwork) : nullptr;
}

bool Selector::lacks_calibration() const {
  return config_.calibrate && !link_.shared_memory && !calibration_ && !tuned_network();
}

CodecChoice Selector::codec_for_link(const CallShape& shape) const {
  CodecChoice choice;
  if (const TunedLink* network = tuned_network()) {
    choice = cheapest_codec(tuning_->codecs, shape.type, network->bandwidth / largest_host(hosts_), 0);
  } else if (shape.calibrated && calibration_) {
    choice = cheapest_codec(calibration_->codecs, shape.type, calibration_->bandwidth, calibration_->codec_threads);
  }
  if (!choice.codec) choice.codec = find_codec("lev");
  return choice;
}

Status Selector::choose_codec(Plan& plan, const TunedCall* tuned) const {
  const CallShape& shape = plan.shape;
  CodecChoice choice = shape.options.codec;
  if (!choice.codec && tuned && worth_coding(shape, config_.codec_threshold)) choice = tuned->way.codec;
  // Shared memory moves bytes faster than any codec; on a network fewer bytes win.
  if (!choice.codec && !tuned && !link_.shared_memory && worth_coding(shape, codec_threshold(config_, link_)))
    choice = codec_for_link(shape);
  if (!choice.codec || choice.codec->id == kCodecRaw || shape.kind == CallKind::kBarrier || !is_float(shape.type) ||
      !choice.codec->supports(shape.type))
    return Status();
  plan.codec = choice.codec;
  plan.level = choice.level;
  // Ranks know their own blocks only: each block is coded or not by its own size, unless a codec was asked for.
  if (plan.with_neighbors() && !shape.options.codec.codec)
    plan.codec_threshold = codec_threshold(config_, link_) / datatype_size(shape.type);
  return Status();
}

/// Pairs of ranks have counts of their own, so that chunk and split-send must not depend on them.
Status Selector::choose_rounds_of_pairs(Plan& plan, size_t bytes) const {
  const CallShape& shape = plan.shape;
  plan.chunk = std::max<size_t>(bytes / datatype_size(shape.type), 1);
  size_t block = 0;
  for (const auto& counts : {shape.counts, shape.recv_counts})
    for (size_t count : counts) block = std::max(block, count);
  const size_t rounds = block / plan.chunk + (block % plan.chunk != 0);
  if (rounds >= MessageIndex::kMaxRounds)
    return error(UZIP_ERR_UNSUPPORTED, "%s: a block of %zu elements is more than %u pieces of %zu; use larger chunks",
                 call_name(shape.kind), block, MessageIndex::kMaxRounds - 1, plan.chunk);
  plan.rounds = static_cast<uint32_t>(rounds);
  plan.window = std::min(link_.shared_memory ? kSharedMemoryWindow : kNetworkWindow, std::max(plan.rounds, 1u));
  const int split = shape.options.split_send;
  plan.split_rounds = plan.codec && split == 1 ? MessageIndex::kMaxRounds : 0;
  return Status();
}

/// The chunk, and which rounds are split, do not depend on this rank's blocks, which the others don't know.
Status Selector::choose_neighbor_rounds(Plan& plan) const {
  const size_t chunk_bytes = plan.shape.options.chunk_bytes;
  const size_t bytes = chunk_bytes ? chunk_bytes : usual_chunk_bytes(2);
  plan.chunk = std::max<size_t>(bytes / datatype_size(plan.shape.type), 1);
  const size_t rounds = plan.shape.neighborhood.divide(plan.chunk);
  if (rounds >= MessageIndex::kInquiryRound)
    return error(UZIP_ERR_UNSUPPORTED, "a block of neighbor_alltoallv takes %zu rounds of %zu bytes; at most %u; use a "
                                       "larger chunk_bytes", rounds, bytes, MessageIndex::kInquiryRound - 1);
  plan.rounds = static_cast<uint32_t>(rounds);
  plan.window = std::min(link_.shared_memory ? kSharedMemoryWindow : kNetworkWindow, std::max(plan.rounds, 1u));
  const int split = plan.shape.options.split_send;
  plan.split_rounds = plan.codec && split == 1 ? UINT32_MAX : 0;
  return Status();
}

size_t Selector::usual_chunk_bytes(size_t ranks) const {
  if (link_.shared_memory)
    return std::clamp(kSharedMemoryRoundBytes / ranks, kLeastSharedMemoryChunkBytes, kSharedMemoryChunkBytes);
  return link_.gpus ? kGpuNetworkChunkBytes : kNetworkChunkBytes;
}

Status Selector::choose_rounds(Plan& plan, const TunedCall* tuned) const {
  const CallShape& shape = plan.shape;
  const size_t element = datatype_size(shape.type), ranks = static_cast<size_t>(shape.size);
  if (plan.with_neighbors()) return choose_neighbor_rounds(plan);
  size_t bytes = shape.options.chunk_bytes;
  if (bytes == 0) {
    bytes = usual_chunk_bytes(ranks);
    if (tuned && tuned->way.chunk_bytes) bytes = std::max(tuned->way.chunk_bytes, kSmallestChunkBytes);
    bytes = std::clamp(kRoundBytes / (kPlacesPerShare * ranks), kSmallestChunkBytes, bytes);
  }
  if (is_pairwise(shape.kind)) return choose_rounds_of_pairs(plan, bytes);
  size_t block = shape.count;  // elements of the largest block of the whole call
  if (plan.of_vectors()) block = (shape.count + ranks - 1) / ranks;
  if (!shape.counts.empty()) block = *std::max_element(shape.counts.begin(), shape.counts.end());

  plan.chunk = std::clamp<size_t>(bytes / element, 1, std::max<size_t>(block, 1));
  plan.chunk = std::max(plan.chunk, block / (MessageIndex::kMaxRounds - 1) + 1);
  if (block == 0) {
    plan.rounds = shape.kind == CallKind::kBarrier || plan.point_to_point() ? 1 : 0;
  } else {
    // Rounds of nearly the same size: a last round of a few elements would cost as much as a full one.
    const size_t rounds = (block + plan.chunk - 1) / plan.chunk;
    const size_t even = (block + rounds - 1) / rounds;
    plan.chunk = rounds == 1 ? even : std::min(plan.chunk, round_up(even, kChunkAlignment));
    plan.rounds = static_cast<uint32_t>((block + plan.chunk - 1) / plan.chunk);
  }
  plan.window = std::min(link_.shared_memory ? kSharedMemoryWindow : kNetworkWindow, std::max(plan.rounds, 1u));
  // Over TCP one more message costs more than it hides (docs/PERFORMANCE.md), so only where it was measured to be faster.
  const bool split = shape.options.split_send < 0 ? tuned && tuned->way.split : shape.options.split_send == 1;
  plan.split_rounds = plan.codec && split ? plan.rounds : 0;

  if (!shape.counts.empty()) {
    size_t offset = 0;
    for (size_t count : shape.counts) {
      plan.displacements.push_back(offset);
      offset += count;
    }
  }
  return Status();
}

/// Whether the bits must not depend on the algorithm: because that is wanted, or since the ranks' GPUs may carry out one
/// call and not the next, which has a buffer elsewhere.
bool Selector::has_one_order(CallKind kind) const {
  const bool by_gpus = kind == CallKind::kAllreduce || kind == CallKind::kReduceScatter || kind == CallKind::kReduce;
  return config_.reproducible || (has_gpu_peers() && by_gpus);
}

Status Selector::choose_algorithm(Plan& plan, const TunedCall* tuned) const {
  if (plan.point_to_point() || plan.with_neighbors()) return Status();
  const Shape first = plan.round_shape(0);
  if (const Algorithm* wanted = plan.shape.options.algorithm) {
    if (!wanted->supports(first))
      return error(UZIP_ERR_UNSUPPORTED, "algorithm '%s' of %s does not support %d ranks with these counts",
                   wanted->name, coll_name(first.coll), first.size);
    if (config_.reproducible && wanted->order == Order::kByPlace)
      return error(UZIP_ERR_UNSUPPORTED,
                   "algorithm '%s' of %s orders a reduction by the element's place; with UZIP_REPRODUCIBLE take another",
                   wanted->name, coll_name(first.coll));
    if (plan.shape.ordered && !wanted->in_rank_order)
      return error(UZIP_ERR_UNSUPPORTED, "algorithm '%s' of %s does not keep the order of the ranks, which this "
                                         "user-defined operation needs", wanted->name, coll_name(first.coll));
    plan.algorithm = wanted;
    return Status();
  }
  const auto allowed = has_one_order(plan.shape.kind) ? reproducible_algorithms(first.coll) : algorithms();
  if (tuned && tuned->way.algorithm->supports(first) && (!plan.shape.ordered || tuned->way.algorithm->in_rank_order) &&
      std::find(allowed.begin(), allowed.end(), tuned->way.algorithm) != allowed.end()) {
    plan.algorithm = tuned->way.algorithm;
    return Status();
  }
  plan.algorithm = reduces_up_a_tree(plan, allowed) ? find_algorithm(Coll::kReduce, "binomial") : cheapest_algorithm(plan, allowed);
  if (plan.algorithm) return Status();
  return error(UZIP_ERR_UNSUPPORTED, "no algorithm of %s supports %d ranks", coll_name(first.coll), first.size);
}

bool Selector::reduces_up_a_tree(const Plan& plan, std::span<const Algorithm* const> allowed) const {
  const CallShape& shape = plan.shape;
  if (shape.kind != CallKind::kReduce || shape.ordered || plan.codec || !link_.shared_memory || !sockets_.empty()) return false;
  if (shape.size > kMostReducedUpATree || shape.count * datatype_size(shape.type) > kMostBytesUpATree) return false;
  return std::find(allowed.begin(), allowed.end(), find_algorithm(Coll::kReduce, "binomial")) != allowed.end();
}

const Algorithm* Selector::cheapest_algorithm(const Plan& plan, std::span<const Algorithm* const> allowed) const {
  const Shape first = plan.round_shape(0);
  const Algorithm* best = nullptr;
  double least = 0;
  for (const Algorithm* algorithm : allowed) {
    if (algorithm->coll != first.coll || !algorithm->supports(first)) continue;
    if (plan.shape.ordered && !algorithm->in_rank_order) continue;
    const double cost = expect(plan, *algorithm).seconds;
    if (best && cost >= least * kEqualCost) continue;
    best = algorithm;
    least = cost;
  }
  return best;
}

Selector::Expectation Selector::expect(const Plan& plan, const Algorithm& algorithm) const {
  // All rounds together: rounds hide each other's latencies, and pipelines do not run dry between them.
  CostModel model = cost_model();
  const double element = static_cast<double>(datatype_size(plan.shape.type));
  model.chunk_bytes = static_cast<double>(plan.chunk) * element;
  const bool per_rank = !plan.of_vectors() && plan.shape.counts.empty();
  const double bytes = static_cast<double>(plan.shape.count) * element * (per_rank ? plan.shape.size : 1);
  Shape first = plan.round_shape(0);
  const double flat = algorithm.cost(first, bytes, model);
  if (sockets_.empty()) return {flat, false};
  first.sockets = sockets_;
  const double grouped = algorithm.cost(first, bytes, model);
  if (grouped < flat * kEqualCost) return {grouped, true};
  const bool tries_out = config_.topology != "auto" && config_.topology != "none";
  return {flat, tries_out && flat < grouped * kEqualCost};
}

/// What is only moved, straight to where it belongs: whoever receives it reads it from the sender's memory, and a second piece costs
/// a system call more (1 MiB of each of two ranks: 12 % of the time). Not where many ranks read the same and gain more by sharing one
/// copy of each piece, nor large calls that copy their operands first, round by round, nor where GPUs' buffers are staged piece by
/// piece, nor where ranks know their own counts only.
void Selector::move_in_large_pieces(Plan& plan) const {
  const CallShape& shape = plan.shape;
  const bool straight = plan.point_to_point() || (plan.algorithm && plan.algorithm->one_hop && shape.counts.empty());
  if (!straight || !link_.shared_memory || !link_.peer_reads || link_.gpus || plan.codec || plan.rounds < 2) return;
  const bool is_bcast = shape.kind == CallKind::kBcast, to_all = is_bcast || shape.kind == CallKind::kAllgather;
  if (is_bcast && shape.size > kMostBroadcastAtOnce) return;
  const bool copies = shape.kind == CallKind::kAlltoall && shape.in_place;
  const bool also_large = cpu_vendor() == CpuVendor::kIntel && !to_all && !copies && !is_reduction(shape.kind);
  const bool cached = plan.body_use() == BodyUse::kMoved;
  if (!cached && !also_large) return;
  const size_t ranks = plan.of_vectors() ? static_cast<size_t>(shape.size) : 1, block = (shape.count + ranks - 1) / ranks;
  plan.chunk = cached ? block : std::clamp(kMovedPieceBytes / datatype_size(shape.type), plan.chunk, block);
  plan.rounds = static_cast<uint32_t>((block + plan.chunk - 1) / plan.chunk);
  plan.window = std::min(kSharedMemoryWindow, plan.rounds);
  plan.reads = true;
}

bool Selector::streams(const Plan& plan) const {
  const bool share = cpu_vendor() == CpuVendor::kIntel && link_.shared_memory && !plan.point_to_point() && !plan.with_neighbors();
  size_t least = kPastCachesBytes;
  if (share) least = std::max(least / static_cast<size_t>(plan.shape.size), kMostOwnCachesBytes) * (plan.shape.in_place ? 2 : 1);
  return plan.result_bytes() >= least;
}

Result<Plan> Selector::select(const CallShape& shape) const {
  Plan plan;
  plan.shape = shape;
  if (!is_point_to_point(shape.kind)) plan.hosts = hosts_;
  const TunedCall* measured = tuned(shape);
  UZIP_RETURN_IF_ERROR(choose_codec(plan, measured));
  UZIP_RETURN_IF_ERROR(choose_rounds(plan, measured));
  UZIP_RETURN_IF_ERROR(choose_algorithm(plan, measured));
  plan.streams = streams(plan);
  if (!shape.options.chunk_bytes && !(measured && measured->way.chunk_bytes)) move_in_large_pieces(plan);
  if (plan.algorithm && !sockets_.empty() && expect(plan, *plan.algorithm).by_socket) plan.sockets = sockets_;
  plan.digest = plan.compute_digest();
  return plan;
}

std::string Selector::explain(const Plan& plan) const {
  const CallShape& shape = plan.shape;
  const TunedCall* measured = tuned(shape);
  const bool knows_link = tuned_network() || (shape.calibrated && calibration_);
  const bool large = worth_coding(shape, codec_threshold(config_, link_));
  const char* codec_reason = shape.options.codec.codec          ? "as asked"
                             : !is_float(shape.type)            ? "not floats"
                             : measured                         ? "measured"
                             : link_.shared_memory              ? "shared memory is faster than any codec"
                             : !plan.codec && !large            ? "too small to gain"
                             : tuned_network()                  ? "fastest for the network that uzip_tune measured"
                             : knows_link                       ? "fastest for the network as calibrated"
                                                                : "fewer bytes on the network";
  const auto allowed = has_one_order(shape.kind) ? reproducible_algorithms(Coll::kReduce) : algorithms();
  const char* algorithm_reason = shape.options.algorithm                                 ? "as asked"
                                 : measured && plan.algorithm == measured->way.algorithm ? "measured"
                                 : reduces_up_a_tree(plan, allowed) ? "fastest for few ranks that share memory"
                                                                    : "lowest predicted cost";
  const std::string codec = plan.codec ? tuned_codec_name({plan.codec, plan.level}) : plan.codec_name();
  char line[400];
  int length = std::snprintf(line, sizeof line,
                "%s %zu %s, %d ranks: algorithm %s%s (%s), codec %s (%s), %u round(s) of %zu elements a rank (%s), "
                "%u in flight, split-send in the first %u",
                call_name(shape.kind), shape.count, datatype_info(shape.type).name, shape.size,
                plan.algorithm_name(), plan.sockets.empty() ? "" : " by socket", algorithm_reason, codec.c_str(), codec_reason, plan.rounds, plan.chunk, shape.options.chunk_bytes ? "as asked"
                : measured && measured->way.chunk_bytes ? "measured" : "usual", plan.window, plan.split_rounds);
  if (measured && length > 0 && static_cast<size_t>(length) < sizeof line)
    std::snprintf(line + length, sizeof line - static_cast<size_t>(length),
                  "; the tuning table has %zu bytes in %.4g ms", measured->bytes, measured->seconds * 1e3);
  return line;
}

}  // namespace uzip
