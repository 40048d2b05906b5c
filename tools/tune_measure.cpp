#include "tune_measure.hpp"

#include "../perf/statistics.hpp"
#include "algos/algorithm.hpp"
#include "comm/selector.hpp"
#include "ucx/ucx_environment.hpp"
#include "ucx/wireup.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>
#include <set>

namespace uzip {
namespace {

using Clock = std::chrono::steady_clock;
using perf::World;

constexpr int kTag = 7;
constexpr size_t kSmallest = 256;
constexpr size_t kStep = 8;
constexpr size_t kChunks[] = {16 << 10, 64 << 10, 256 << 10, 1 << 20};
/// Below this a call is one message or few, and its chunk and codec make no difference worth measuring.
constexpr size_t kLargeBytes = 16 << 10;
/// An algorithm that should take so many times longer than the best is not tried.
constexpr double kHopeless = 8;
/// Something else than what stands first must be faster by so much, or noise would choose.
constexpr double kClear = 0.97;
/// Data that do not compress may take so many times longer than if nobody had tried: more is not noise any more.
constexpr double kBearable = 1.05;
constexpr int kFewestTurns = 3;
constexpr int kMostTurns = 25;
constexpr double kBusy = 3;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double quantile_of(std::vector<double> values, double fraction) {
  std::ranges::sort(values);
  return perf::quantile(values, fraction);
}

/// The lower quartile: a table is not for what else disturbs the machine at the moment.
double typical(const std::vector<double>& values) { return quantile_of(values, 0.25); }

/// Of all ranks; the same on all.
double slowest(const World& world, double mine) {
  const double values[] = {mine};
  return std::ranges::max(world.gather(values));
}

double of_rank_0(const World& world, double mine) {
  const double values[] = {mine};
  return world.gather(values).front();
}

// ---- Calls ---------------------------------------------------------------------------------------------

/// Every rank sends to one and receives from one.
uzip_status_t exchange(const World& world, std::pair<int, int> partners, const void* src, void* dst, size_t count,
                       uzip_dtype_t type, const uzip_options_t& options) {
  uzip_request_t requests[2] = {UZIP_REQUEST_NULL, UZIP_REQUEST_NULL};
  uzip_status_t status = uzip_irecv_options(dst, count, type, partners.second, kTag, world.comm(), &options, nullptr,
                                            &requests[0]);
  if (status != UZIP_OK) return status;
  status = uzip_isend_options(src, count, type, partners.first, kTag, world.comm(), &options, nullptr, &requests[1]);
  if (status != UZIP_OK) return status;
  return uzip_waitall(2, requests, nullptr);
}

/// One call, in any way.
class TunableCall {
 public:
  TunableCall(const World& world, const JobLinks& links, CallKind kind, DataType type, size_t bytes,
              const std::vector<perf::DataSource>& data)
      : world_(world),
        partners_(calibration_partners(links.hosts, world.rank(), world.ranks())),
        kind_(kind),
        type_(type) {
    const size_t element = datatype_size(type), ranks = static_cast<size_t>(world.ranks());
    const bool blocks = tuned_bytes(kind, 1, 1, world.ranks()) > 1;
    count_ = std::max<size_t>(bytes / element / (blocks ? ranks : 1), 1);
    const auto one_of = [kind](std::initializer_list<CallKind> kinds) { return std::ranges::count(kinds, kind) > 0; };
    using enum CallKind;
    const size_t elements = (one_of({kReduceScatter, kAlltoall, kScatter}) ? ranks : 1) * count_;
    dst_.resize((one_of({kAllgather, kAlltoall, kGather}) ? ranks : 1) * count_ * element);
    const perf::ElementType& perf_type = *perf::find_element_type(datatype_info(type).name);
    for (const perf::DataSource& source : data) {
      const perf::Pattern pattern = perf::sample_pattern(source, perf_type, elements);
      pattern.fill(src_.emplace_back(elements * element).data(), perf::sample_start(world.rank()), elements);
    }
  }

  size_t data_sources() const { return src_.size(); }

  size_t bytes() const { return tuned_bytes(kind_, count_, datatype_size(type_), world_.ranks()); }

  /// What the library makes of it; no value if it can't be done this way.
  std::optional<uint16_t> plan_digest(const TunedWay& way, const Selector& selector) const {
    CallShape shape;
    shape.kind = kind_;
    shape.type = type_;
    shape.size = is_point_to_point(kind_) ? 1 : world_.ranks();
    shape.count = count_;
    shape.options = {way.algorithm, way.codec, way.chunk_bytes, way.split};
    const Result<Plan> plan = selector.select(shape);
    if (!plan.ok()) return std::nullopt;
    return plan->digest;
  }

  /// Seconds on this rank, with the data of a number.
  double time(const TunedWay& way, size_t data) {
    const std::string codec = tuned_codec_name(way.codec);
    uzip_options_t options = UZIP_OPTIONS_INIT;
    options.algorithm = way.algorithm ? way.algorithm->name : "auto";
    options.codec = codec.c_str();
    options.chunk_bytes = way.chunk_bytes;
    options.split_send = way.split;
    world_.barrier();
    const auto start = Clock::now();
    perf::require(run(options, src_[data].data()), call_name(kind_));
    return seconds_since(start);
  }

 private:
  uzip_status_t run(const uzip_options_t& options, const std::byte* src) {
    if (kind_ == CallKind::kSend) return exchange(world_, partners_, src, dst_.data(), count_, type_, options);
    uzip_coll_args_t args = {};
    args.struct_size = sizeof args;
    args.coll = coll();
    const bool only_root_sends = kind_ == CallKind::kBcast || kind_ == CallKind::kScatter;
    args.src = only_root_sends && world_.rank() != args.root ? nullptr : src;
    args.dst = dst_.data();
    args.count = count_;
    args.dtype = type_;
    args.op = UZIP_SUM;
    args.options = &options;
    return uzip_coll_run(&args, world_.comm());
  }

  uzip_coll_t coll() const {
    switch (kind_) {
      case CallKind::kReduceScatter: return UZIP_REDUCE_SCATTER;
      case CallKind::kAllgather: return UZIP_ALLGATHER;
      case CallKind::kBcast: return UZIP_BCAST;
      case CallKind::kReduce: return UZIP_REDUCE;
      case CallKind::kAlltoall: return UZIP_ALLTOALL;
      case CallKind::kGather: return UZIP_GATHER;
      case CallKind::kScatter: return UZIP_SCATTER;
      default: return UZIP_ALLREDUCE;
    }
  }

  const World& world_;
  std::pair<int, int> partners_;
  CallKind kind_;
  DataType type_;
  size_t count_;
  std::vector<std::vector<std::byte>> src_;  ///< one for each of the data
  std::vector<std::byte> dst_;
};

// ---- Choosing ------------------------------------------------------------------------------------------

bool is_plain(const TunedWay& way) { return way.codec.codec->id == kCodecRaw; }

/// What a way took, on the slowest rank; by data, but of a plain way together, since it does the same with all.
struct WayTimes {
  std::vector<double> typicals, medians;

  double seconds() const {
    return std::accumulate(typicals.begin(), typicals.end(), 0.0) / static_cast<double>(typicals.size());
  }
  /// How many times longer than another one, in the mean over the data.
  double typical_over(const WayTimes& other, size_t data) const { return over(typicals, other.typicals, data); }
  double median_over(const WayTimes& other, size_t data) const { return over(medians, other.medians, data); }
  /// Whether some of the data take clearly longer than by the plain way.
  bool is_burdened(const WayTimes& plain) const {
    for (size_t i = 0; i < typicals.size(); ++i)
      if (typicals[i] > plain.typicals[0] * kBearable && medians[i] > plain.medians[0] * kBearable) return true;
    return false;
  }

 private:
  static double over(const std::vector<double>& a, const std::vector<double>& b, size_t data) {
    double sum = 0;
    for (size_t i = 0; i < data; ++i) sum += a[std::min(i, a.size() - 1)] / b[std::min(i, b.size() - 1)];
    return sum / static_cast<double>(data);
  }
};

/// All ways of one call that have been measured, and the search among them. All ranks go the same way, since they see
/// the same times.
class Search {
 public:
  Search(const World& world, const JobLinks& links, const LinkFacts& facts, CallKind kind, DataType type, size_t bytes,
         const std::vector<perf::DataSource>& data, double budget)
      : world_(world),
        selector_(config_, facts, links.hosts),
        call_(world, links, kind, type, bytes, data),
        budget_(budget) {
    best_.link = links.link;
    best_.per_host = is_point_to_point(kind) ? 1 : largest_host(links.hosts);
    best_.kind = kind;
    best_.type = type;
    best_.ranks = is_point_to_point(kind) ? 2 : world.ranks();
    best_.bytes = call_.bytes();
  }

  /// One step after another: algorithm, with and without codec; then chunk; then level; then split-send.
  void run() {
    const CodecChoice raw = {find_codec("raw"), CodecLevel::kBalanced};
    const Codec* lev = find_codec("lev");
    const bool large = best_.bytes >= kLargeBytes;
    const bool coded = large && lev && is_float(best_.type) && lev->supports(best_.type);
    std::vector<TunedWay> ways;
    for (const Algorithm* algorithm : hopeful()) {
      add(ways, {algorithm, 0, raw, false});
      if (coded) add(ways, {algorithm, 0, {lev, CodecLevel::kBalanced}, false});
    }
    take_best_of(ways);
    if (!large) return;
    take_best_of(variants([&](TunedWay way, auto add) {
      for (size_t chunk : kChunks) add((way.chunk_bytes = chunk, way));
    }));
    if (!coded) return;
    take_best_of(variants([&](TunedWay way, auto add) {
      add((way.codec = raw, way));
      for (CodecLevel level : {CodecLevel::kFastest, CodecLevel::kBalanced, CodecLevel::kSmallest})
        add((way.codec = {lev, level}, way));
    }));
    if (best_.way.codec == raw) return;
    take_best_of(variants([](TunedWay way, auto add) { add((way.split = !way.split, way)); }));
  }

  const TunedCall& best() const { return best_; }
  const std::vector<TunedCall>& others() const { return others_; }

 private:
  std::vector<const Algorithm*> hopeful() const {
    if (is_point_to_point(best_.kind)) return {nullptr};
    Shape shape;
    shape.coll = coll_of(best_.kind);
    shape.size = world_.ranks();
    shape.hosts = selector_.hosts();
    const CostModel model = selector_.cost_model();
    const size_t elements = best_.bytes / datatype_size(best_.type);
    shape.counts = even_shares(elements, shape.size);
    const auto cost = [&](const Algorithm* a) { return a->cost(shape, static_cast<double>(best_.bytes), model); };
    std::vector<const Algorithm*> list;
    for (const Algorithm* algorithm : algorithms())
      if (algorithm->coll == shape.coll && algorithm->supports(shape)) list.push_back(algorithm);
    std::ranges::stable_sort(list, {}, cost);
    std::erase_if(list, [&, least = list.empty() ? 0 : cost(list.front())](const Algorithm* algorithm) {
      return cost(algorithm) > kHopeless * least;
    });
    return list;
  }

  /// Unless it comes to the same as one of them, as a piece larger than the call does, or can't be done.
  void add(std::vector<TunedWay>& ways, const TunedWay& way) const {
    const auto plan = call_.plan_digest(way, selector_);
    const auto same = [&](const TunedWay& other) { return call_.plan_digest(other, selector_) == plan; };
    if (plan && std::ranges::none_of(ways, same)) ways.push_back(way);
  }

  /// The best way so far, others derived from it, and the plain way that coded ones are to be compared with.
  template <class Derive>
  std::vector<TunedWay> variants(Derive derive) const {
    std::vector<TunedWay> ways = {best_.way};
    derive(best_.way, [&](const TunedWay& way) { add(ways, way); });
    if (!is_plain(best_.way)) add(ways, plain_);
    return ways;
  }

  /// In turns; the first stands unless another one is clearly faster, or it is not bearable for some of the data.
  void take_best_of(const std::vector<TunedWay>& ways) {
    const std::vector<WayTimes> times = measure(ways);
    const WayTimes* plain = nullptr;
    for (size_t i = 0; i < ways.size(); ++i) {
      if (!is_plain(ways[i]) || (plain && times[i].seconds() >= plain->seconds())) continue;
      plain = &times[i];
      plain_ = ways[i];
    }
    const auto faster = [&](const WayTimes& one, const WayTimes& other, double clear) {
      const size_t data = call_.data_sources();
      return one.typical_over(times[0], data) < other.typical_over(times[0], data) * clear &&
             one.median_over(times[0], data) < other.median_over(times[0], data) * clear;
    };
    size_t best = ways.size();
    for (size_t i = 0; i < ways.size(); ++i) {
      if (plain && !is_plain(ways[i]) && times[i].is_burdened(*plain)) continue;
      if (best == ways.size() || faster(times[i], times[best], best == 0 ? kClear : 1)) best = i;
    }
    for (size_t i = 0; i < ways.size(); ++i) remember(ways[i], times[i].seconds());
    best_.way = ways[best];
    best_.seconds = times[best].seconds();
    std::erase_if(others_, [&](const TunedCall& other) { return other.way == best_.way; });
  }

  std::vector<WayTimes> measure(const std::vector<TunedWay>& ways) {
    const size_t data = call_.data_sources();
    double once = 0;
    for (const TunedWay& way : ways)
      for (size_t i = 0; i < (is_plain(way) ? 1 : data); ++i) once += slowest(world_, call_.time(way, i));
    const double affordable = budget_ / std::max(once, 1e-6);
    const auto turns = static_cast<size_t>(std::clamp(affordable, double{kFewestTurns}, double{kMostTurns}));
    std::vector<std::vector<std::vector<double>>> measured(ways.size());
    for (size_t i = 0; i < ways.size(); ++i) measured[i].resize(is_plain(ways[i]) ? 1 : data);
    for (size_t turn = 0; turn < turns; ++turn)
      for (size_t i = 0; i < ways.size(); ++i) {
        const size_t which = (i + turn) % ways.size();
        auto& of_way = measured[which];
        for (size_t k = 0; k < of_way.size(); ++k)
          of_way[k].push_back(call_.time(ways[which], is_plain(ways[which]) ? turn % data : k));
      }
    std::vector<WayTimes> times(ways.size());
    for (size_t i = 0; i < ways.size(); ++i)
      for (const std::vector<double>& seconds : measured[i]) {
        times[i].typicals.push_back(slowest(world_, typical(seconds)));
        times[i].medians.push_back(slowest(world_, quantile_of(seconds, 0.5)));
      }
    return times;
  }

  /// The last time of each way counts, as it was measured beside the one that was chosen.
  void remember(const TunedWay& way, double seconds) {
    std::erase_if(others_, [&](const TunedCall& other) { return other.way == way; });
    others_.push_back(best_);
    others_.back().way = way;
    others_.back().seconds = seconds;
  }

  const World& world_;
  const Config config_;  ///< of nobody: what is tuned is what the library does without settings
  Selector selector_;
  TunableCall call_;
  double budget_;
  TunedCall best_;
  TunedWay plain_;  ///< the best of those without a codec
  std::vector<TunedCall> others_;
};

/// Of what links_of() gathers; the last word of each rank says whether it may share memory.
bool allowed_everywhere(const std::vector<uint64_t>& all, size_t words) {
  for (size_t at = words - 1; at < all.size(); at += words)
    if (all[at] == 0) return false;
  return true;
}

std::string describe(CallKind kind, DataType type, size_t bytes) {
  return std::string(call_name(kind)) + " " + datatype_info(type).name + " " + std::to_string(bytes) + " bytes";
}

}  // namespace

JobLinks links_of(const World& world, int ranks_per_host) {
  const auto setting = [](const char* name) { return std::getenv(name) ? std::string(std::getenv(name)) : ""; };
  std::string tls = setting("UZIP_UCX_TLS");
  if (tls.empty()) tls = setting("UCX_TLS");
  const bool allowed = tls.empty() || tls_allows(tls, "posix") || tls_allows(tls, "sysv");
  const HostIdentity host = host_identity();
  const auto halves = std::bit_cast<std::array<uint64_t, 2>>(host.boot);
  const uint64_t mine[] = {halves[0], halves[1], host.pid_namespace, host.ipc_namespace, host.user_namespace, allowed};
  const std::vector<uint64_t> all = world.gather(mine);
  JobLinks links;
  std::map<std::vector<uint64_t>, int> hosts;
  for (size_t at = 0; at < all.size(); at += std::size(mine)) {
    std::vector<uint64_t> of_rank(all.begin() + static_cast<ptrdiff_t>(at), all.begin() + static_cast<ptrdiff_t>(at + std::size(mine)));
    if (!allowed_everywhere(all, std::size(mine))) of_rank.push_back(at);  // each on its own
    links.hosts.push_back(hosts.try_emplace(std::move(of_rank), static_cast<int>(hosts.size())).first->second);
  }
  links.link = hosts.size() == 1 ? LinkClass::kShared : LinkClass::kNetwork;
  std::set<int> different;
  for (int rank = 0; rank < world.ranks(); ++rank) {
    int& host_of_rank = links.hosts[static_cast<size_t>(rank)];
    if (ranks_per_host > 0) host_of_rank = rank / ranks_per_host;
    different.insert(host_of_rank);
  }
  if (different.size() > 1) links.link = LinkClass::kNetwork;
  if (different.size() == 1 || different.size() == links.hosts.size()) links.hosts.clear();
  return links;
}

TunedLink measure_link(const World& world, const JobLinks& links, bool* busy) {
  const std::pair<int, int> partners = calibration_partners(links.hosts, world.rank(), world.ranks());
  uzip_options_t plain = UZIP_OPTIONS_INIT;
  plain.codec = "raw";
  double spread = 1;
  const auto time_of = [&](size_t bytes, int calls) {
    std::vector<std::byte> src(bytes), dst(bytes);
    std::vector<double> times;
    for (int i = 0; i < calls; ++i) {
      if (bytes > 1000) world.barrier();
      const auto start = Clock::now();
      perf::require(exchange(world, partners, src.data(), dst.data(), bytes, UZIP_UINT8, plain), "sendrecv");
      times.push_back(seconds_since(start));
    }
    spread = slowest(world, quantile_of(times, 0.75) / quantile_of(times, 0.25));
    return slowest(world, typical(times));
  };
  TunedLink link;
  time_of(8, 100);
  link.latency = std::max(time_of(8, 500), 1e-8);
  *busy = spread > kBusy;
  constexpr size_t kBytes = 4 << 20;
  time_of(kBytes, 1);
  link.bandwidth = largest_host(links.hosts) * kBytes / std::max(time_of(kBytes, 7), 1e-9);
  *busy |= spread > kBusy;
  return link;
}

void measure_calls(const World& world, const JobLinks& links, const TuneOptions& options, TuningTable* table,
                   const std::function<void(const std::string&)>& tell) {
  const LinkFacts facts = link_facts(links.link == LinkClass::kShared, table);
  const double share = options.seconds / static_cast<double>(options.kinds.size() * options.types.size());
  for (CallKind kind : options.kinds) {
    for (DataType type : options.types) {
      const auto start = Clock::now();
      double last = 0;
      for (size_t bytes = kSmallest; bytes <= options.largest; bytes *= kStep) {
        const double used = of_rank_0(world, seconds_since(start));
        // All ways of a size, the fewest turns each, take eight times as long as those of the size before.
        if (last > 0 && used + last * kStep > share) break;
        if (world.is_root()) tell(describe(kind, type, bytes));
        Search search(world, links, facts, kind, type, bytes, options.data, share / 60);
        search.run();
        last = search.best().seconds * kFewestTurns * 8 * static_cast<double>(1 + options.data.size());
        std::erase_if(table->choices, [&](const TunedCall& old) { return old.same_call(search.best()); });
        std::erase_if(table->tried, [&](const TunedCall& old) { return old.same_call(search.best()); });
        table->choices.push_back(search.best());
        table->tried.insert(table->tried.end(), search.others().begin(), search.others().end());
      }
    }
  }
}

}  // namespace uzip
