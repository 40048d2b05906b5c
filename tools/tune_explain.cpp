#include "tune_explain.hpp"

#include "../perf/bench_options.hpp"
#include "algos/algorithm.hpp"
#include "comm/selector.hpp"

#include <algorithm>
#include <cstdio>
#include <optional>

namespace uzip {
namespace {

struct Candidate {
  TunedWay way;
  double predicted = 0;
  std::optional<double> measured;
};

std::string time_text(double seconds) {
  char text[40];
  if (seconds < 1e-3) std::snprintf(text, sizeof text, "%.2f us", seconds * 1e6);
  else std::snprintf(text, sizeof text, "%.2f ms", seconds * 1e3);
  return text;
}

/// As a communicator has them: empty if no two ranks, or all, share one.
std::vector<int> hosts_of(const ExplainedCall& call) {
  std::vector<int> hosts;
  const bool some = call.link == LinkClass::kNetwork && call.per_host > 1 && call.per_host < call.ranks;
  for (int rank = 0; some && rank < call.ranks; ++rank) hosts.push_back(rank / call.per_host);
  return hosts;
}

Shape whole_shape(const ExplainedCall& call) {
  Shape shape;
  shape.size = call.ranks;
  if (is_point_to_point(call.kind)) return shape;
  shape.coll = coll_of(call.kind);
  shape.hosts = hosts_of(call);
  shape.counts = even_shares(call.bytes / datatype_size(call.type), call.ranks);
  return shape;
}

/// As the library predicts, and with what the codec costs and saves.
double predict(const ExplainedCall& call, const TunedWay& way, CostModel model, const TuningTable* table) {
  if (way.codec.codec && way.codec.codec->id != kCodecRaw) {
    model.ratio = 0.7;  // typical of bf16
    model.codec_per_byte = 2 / 8e9;
    for (const TunedCodec& speed : table ? table->codecs : std::vector<TunedCodec>()) {
      if (!(speed.codec == way.codec) || speed.type != call.type) continue;
      model.ratio = speed.ratio;
      model.codec_per_byte = 1 / speed.encode + 1 / speed.decode;
    }
  }
  const double bytes = static_cast<double>(call.bytes);
  if (!way.algorithm) return model.latency + bytes * (model.ratio * model.seconds_per_byte + model.codec_per_byte);
  return way.algorithm->cost(whole_shape(call), bytes, model);
}

void add(std::vector<Candidate>& list, const TunedWay& way, std::optional<double> measured) {
  const auto same = std::ranges::find(list, way, &Candidate::way);
  if (same == list.end()) list.push_back({way, 0, measured});
  else if (measured) same->measured = measured;
}

std::vector<Candidate> candidates_of(const ExplainedCall& call, const TuningTable* table, const TunedCall* nearest) {
  std::vector<Candidate> list;
  if (nearest) {
    add(list, nearest->way, nearest->seconds);
    for (const TunedCall& other : table->tried)
      if (other.same_call(*nearest)) add(list, other.way, other.seconds);
    return list;
  }
  const Shape shape = whole_shape(call);
  std::vector<const Algorithm*> possible;
  if (is_point_to_point(call.kind)) possible.push_back(nullptr);
  for (const Algorithm* algorithm : algorithms())
    if (!is_point_to_point(call.kind) && algorithm->coll == shape.coll && algorithm->supports(shape))
      possible.push_back(algorithm);
  for (const Algorithm* algorithm : possible) {
    add(list, {algorithm, 0, {find_codec("raw"), CodecLevel::kBalanced}, false}, std::nullopt);
    const Codec* lev = find_codec("lev");
    if (lev && is_float(call.type) && lev->supports(call.type))
      add(list, {algorithm, 0, {lev, CodecLevel::kBalanced}, false}, std::nullopt);
  }
  return list;
}

std::string table_text(std::vector<Candidate> list, const Plan& plan) {
  std::ranges::stable_sort(list, [](const Candidate& a, const Candidate& b) {
    return std::pair(a.measured.value_or(1e9), a.predicted) < std::pair(b.measured.value_or(1e9), b.predicted);
  });
  char line[200];
  std::snprintf(line, sizeof line, "  %-18s  %6s  %-12s  %5s  %12s  %12s\n", "algorithm", "chunk", "codec", "split",
                "predicted", "measured");
  std::string text = line;
  bool marked = false;
  for (const Candidate& candidate : list) {
    const TunedWay& way = candidate.way;
    const bool coded = way.codec.codec && way.codec.codec->id != kCodecRaw;
    const bool chosen = !marked && way.algorithm == plan.algorithm && coded == (plan.codec != nullptr) &&
                        (!coded || way.codec.level == plan.level);
    marked |= chosen;
    std::snprintf(line, sizeof line, "%s %-18s  %6s  %-12s  %5s  %12s  %12s\n", chosen ? "*" : " ",
                  way.algorithm ? way.algorithm->name : "direct",
                  way.chunk_bytes ? perf::format_bytes(way.chunk_bytes).c_str() : "usual", tuned_codec_name(way.codec).c_str(),
                  !coded ? "-" : way.split ? "yes" : "no", time_text(candidate.predicted).c_str(),
                  candidate.measured ? time_text(*candidate.measured).c_str() : "-");
    text += line;
  }
  return text;
}

}  // namespace

Result<std::string> explain(const ExplainedCall& call, const Config& config, std::shared_ptr<const TuningTable> table) {
  const LinkFacts link = link_facts(call.link == LinkClass::kShared, table.get());
  const TunedCall* nearest = table ? table->find(call.link, call.kind, call.type, call.ranks, call.bytes,
                                               is_point_to_point(call.kind) ? 1 : largest_host(hosts_of(call)))
                                 : nullptr;
  CallShape shape;
  shape.kind = call.kind;
  shape.type = call.type;
  shape.size = is_point_to_point(call.kind) ? 1 : call.ranks;
  const bool blocks = tuned_bytes(call.kind, 1, 1, call.ranks) > 1;
  shape.count = call.bytes / datatype_size(call.type) / (blocks ? static_cast<size_t>(call.ranks) : 1);
  const Selector selector(config, link, hosts_of(call), table);
  UZIP_ASSIGN_OR_RETURN(const Plan plan, selector.select(shape));

  char head[240];
  std::snprintf(head, sizeof head, "link %s: latency %s, %.4g GB/s a rank (%s)\n", link_class_name(call.link),
                time_text(link.latency).c_str(), link.bandwidth / 1e9 / largest_host(hosts_of(call)),
                table && table->link(call.link).bandwidth > 0 ? "measured" : "typical, not measured");
  std::string text = head;
  std::vector<Candidate> list = candidates_of(call, table.get(), nearest);
  ExplainedCall measured = call;  // what stands beside each other is of the same size
  if (nearest) measured.bytes = nearest->bytes;
  for (Candidate& candidate : list)
    candidate.predicted = predict(measured, candidate.way, selector.cost_model(), table.get());
  if (nearest) {
    text += "measured for " + perf::format_bytes(nearest->bytes) + " bytes" +
            (nearest->bytes == call.bytes ? "" : ", the nearest size") + "\n";
  } else {
    text += "no such call was measured: run uzip_tune with " + std::to_string(call.ranks) + " ranks on such a link\n";
  }
  text += table_text(std::move(list), plan);
  return text + "chosen: " + selector.explain(plan) + "\n";
}

}  // namespace uzip
