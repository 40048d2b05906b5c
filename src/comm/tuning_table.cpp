#include "comm/tuning_table.hpp"

#include "algos/algorithm.hpp"
#include "base/fnv1a.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <map>
#include <tuple>

namespace uzip {
namespace {

constexpr std::string_view kFirstLine = "uzipcoll-tuning 1";
constexpr size_t kMostLines = 20000;
constexpr size_t kMostText = 200;
constexpr int kMostRanks = 1 << 20;
constexpr size_t kMostBytes = size_t{1} << 50;
constexpr size_t kSmallestChunk = 1024;
constexpr size_t kLargestChunk = size_t{64} << 20;
/// A choice holds for sizes up to so many times smaller or larger, in powers of two,
constexpr double kReach = 3;
/// and from this size on for all larger ones: bandwidth decides there, and does not change any more.
constexpr size_t kLargeBytes = 1 << 20;

using Words = std::vector<std::string_view>;

Words split_words(std::string_view line) {
  Words words;
  for (size_t at = 0; at < line.size();) {
    const size_t end = std::min(line.find(' ', at), line.size());
    if (end > at) words.push_back(line.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

/// Bytes from a file for a message: short, printable.
std::string shown(std::string_view text) {
  std::string result(text.substr(0, 40));
  for (char& c : result)
    if (c < ' ' || c > '~') c = '?';
  return result;
}

Status refuse(const char* what, std::string_view value, const std::string& allowed) {
  return error(UZIP_ERR_CONFIG, "%s '%s' is not allowed; allowed is %s", what, shown(value).c_str(), allowed.c_str());
}

Status read_number(const char* what, std::string_view word, double low, double high, double* value) {
  const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), *value);
  if (problem == std::errc{} && end == word.data() + word.size() && *value >= low && *value <= high) return Status();
  char allowed[64];
  std::snprintf(allowed, sizeof allowed, "a number from %g to %g", low, high);
  return refuse(what, word, allowed);
}

Status read_whole(const char* what, std::string_view word, size_t low, size_t high, size_t* value) {
  const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), *value);
  if (problem == std::errc{} && end == word.data() + word.size() && *value >= low && *value <= high) return Status();
  return refuse(what, word, "a whole number from " + std::to_string(low) + " to " + std::to_string(high));
}

Status read_link(std::string_view word, LinkClass* link) {
  for (int i = 0; i < kLinkClassCount; ++i) {
    *link = static_cast<LinkClass>(i);
    if (word == link_class_name(*link)) return Status();
  }
  return refuse("link", word, "shared or network");
}

Status read_kind(std::string_view word, CallKind* kind) {
  for (int i = 0; i <= std::numeric_limits<uint8_t>::max(); ++i) {
    *kind = static_cast<CallKind>(i);
    if (word == call_name(*kind) && tuned_kind(*kind) == *kind && std::strchr(call_name(*kind), ' ') == nullptr)
      return Status();
  }
  return refuse("call", word, "the name of a collective, or send");
}

Status read_type(std::string_view word, DataType* type) {
  for (const DataTypeInfo& info : datatypes()) {
    *type = info.type;
    if (word == info.name) return Status();
  }
  return refuse("type", word, "the name of an element type");
}

/// With its level; never "auto".
Status read_codec(std::string_view word, CodecChoice* codec) {
  const Result<CodecChoice> parsed = parse_codec_choice(std::string(word.substr(0, 64)));
  if (!parsed.ok() || !parsed->codec) return refuse("codec", word, "raw or the name of a codec, with its level");
  *codec = *parsed;
  return Status();
}

/// choice LINK CALL TYPE RANKS BYTES ALGORITHM CHUNK CODEC SPLIT SECONDS
Status read_call(const Words& words, TunedCall* call) {
  if (words.size() != 11)
    return error(UZIP_ERR_CONFIG, "%zu words instead of 11", words.size());
  size_t ranks = 0, per_host = 1, split = 0;
  UZIP_RETURN_IF_ERROR(read_link(words[1], &call->link));
  UZIP_RETURN_IF_ERROR(read_kind(words[2], &call->kind));
  UZIP_RETURN_IF_ERROR(read_type(words[3], &call->type));
  const size_t slash = std::min(words[4].find('/'), words[4].size());
  UZIP_RETURN_IF_ERROR(read_whole("number of ranks", words[4].substr(0, slash), 2, kMostRanks, &ranks));
  if (slash < words[4].size())
    UZIP_RETURN_IF_ERROR(read_whole("number of ranks on a host", words[4].substr(slash + 1), 1, ranks - 1, &per_host));
  UZIP_RETURN_IF_ERROR(read_whole("size", words[5], 1, kMostBytes, &call->bytes));
  call->ranks = static_cast<int>(ranks);
  call->per_host = static_cast<int>(per_host);
  if (is_point_to_point(call->kind)) {
    if (words[6] != "-") return refuse("algorithm", words[6], "- for messages from one rank to another");
  } else {
    call->way.algorithm = find_algorithm(coll_of(call->kind), words[6]);
    if (!call->way.algorithm) return refuse("algorithm", words[6], "one that uzip_info -a lists for this call");
  }
  if (words[7] != "0")
    UZIP_RETURN_IF_ERROR(read_whole("chunk", words[7], kSmallestChunk, kLargestChunk, &call->way.chunk_bytes));
  UZIP_RETURN_IF_ERROR(read_codec(words[8], &call->way.codec));
  UZIP_RETURN_IF_ERROR(read_whole("split-send", words[9], 0, 1, &split));
  call->way.split = split == 1;
  return read_number("time", words[10], 1e-9, 1e6, &call->seconds);
}

/// link LINK latency SECONDS bandwidth BYTES
Status read_link_line(const Words& words, TuningTable* table) {
  LinkClass link = LinkClass::kShared;
  TunedLink facts;
  if (words.size() != 6 || words[2] != "latency" || words[4] != "bandwidth")
    return error(UZIP_ERR_CONFIG, "not of the form 'link NAME latency SECONDS bandwidth BYTES'");
  UZIP_RETURN_IF_ERROR(read_link(words[1], &link));
  UZIP_RETURN_IF_ERROR(read_number("latency", words[3], 1e-9, 10, &facts.latency));
  UZIP_RETURN_IF_ERROR(read_number("bandwidth", words[5], 1e3, 1e15, &facts.bandwidth));
  table->links[static_cast<size_t>(link)] = facts;
  return Status();
}

/// codec CODEC TYPE encode BYTES decode BYTES ratio NUMBER
Status read_codec_line(const Words& words, TuningTable* table) {
  TunedCodec speed;
  if (words.size() != 9 || words[3] != "encode" || words[5] != "decode" || words[7] != "ratio")
    return error(UZIP_ERR_CONFIG, "not of the form 'codec NAME TYPE encode BYTES decode BYTES ratio NUMBER'");
  UZIP_RETURN_IF_ERROR(read_codec(words[1], &speed.codec));
  UZIP_RETURN_IF_ERROR(read_type(words[2], &speed.type));
  UZIP_RETURN_IF_ERROR(read_number("speed", words[4], 1e3, 1e15, &speed.encode));
  UZIP_RETURN_IF_ERROR(read_number("speed", words[6], 1e3, 1e15, &speed.decode));
  UZIP_RETURN_IF_ERROR(read_number("ratio", words[8], 1e-6, 2, &speed.ratio));
  table->codecs.push_back(speed);
  return Status();
}

Status read_line(std::string_view line, TuningTable* table) {
  const Words words = split_words(line);
  if (words.empty() || words[0].starts_with('#')) return Status();
  if (words[0] == "machine") {
    if (line.size() > kMostText) return error(UZIP_ERR_CONFIG, "longer than %zu bytes", kMostText);
    table->machine = line.substr(words.size() > 1 ? static_cast<size_t>(words[1].data() - line.data()) : line.size());
    return Status();
  }
  if (words[0] == "link") return read_link_line(words, table);
  if (words[0] == "codec") return read_codec_line(words, table);
  TunedCall call;
  if (words[0] == "tried") {
    UZIP_RETURN_IF_ERROR(read_call(words, &call));
    table->tried.push_back(call);
    return Status();
  }
  if (words[0] != "choice") return refuse("word", words[0], "machine, link, codec, choice or tried");
  UZIP_RETURN_IF_ERROR(read_call(words, &call));
  table->choices.push_back(call);
  return Status();
}

std::string print_call(const char* word, const TunedCall& call) {
  const std::string ranks =
      std::to_string(call.ranks) + (call.per_host > 1 ? "/" + std::to_string(call.per_host) : "");
  char line[320];
  std::snprintf(line, sizeof line, "%s %s %s %s %s %zu %s %zu %s %d %.4g\n", word, link_class_name(call.link),
                call_name(call.kind), datatype_info(call.type).name, ranks.c_str(), call.bytes,
                call.way.algorithm ? call.way.algorithm->name : "-", call.way.chunk_bytes,
                tuned_codec_name(call.way.codec).c_str(), call.way.split ? 1 : 0, call.seconds);
  return line;
}

std::string print_links(const TuningTable& table) {
  std::string text;
  for (int i = 0; i < kLinkClassCount; ++i) {
    const TunedLink& link = table.links[static_cast<size_t>(i)];
    char line[160];
    if (link.bandwidth == 0) continue;
    std::snprintf(line, sizeof line, "link %s latency %.4g bandwidth %.4g\n",
                  link_class_name(static_cast<LinkClass>(i)), link.latency, link.bandwidth);
    text += line;
  }
  return text;
}

std::string print_codecs(const TuningTable& table) {
  std::string text;
  for (const TunedCodec& speed : table.codecs) {
    char line[160];
    std::snprintf(line, sizeof line, "codec %s %s encode %.4g decode %.4g ratio %.4g\n",
                  tuned_codec_name(speed.codec).c_str(), datatype_info(speed.type).name, speed.encode, speed.decode,
                  speed.ratio);
    text += line;
  }
  return text;
}

std::string print_choices(const TuningTable& table) {
  std::string text;
  for (const TunedCall& call : table.choices) text += print_call("choice", call);
  return text;
}

}  // namespace

const char* link_class_name(LinkClass link) { return link == LinkClass::kShared ? "shared" : "network"; }

std::string tuned_codec_name(const CodecChoice& choice) {
  if (choice.codec->id == kCodecRaw) return choice.codec->name;
  constexpr const char* kLevels[] = {":fastest", ":balanced", ":smallest"};
  return std::string(choice.codec->name) + kLevels[static_cast<size_t>(choice.level)];
}

int largest_host(const std::vector<int>& hosts) {
  std::map<int, int> ranks;
  int most = 1;
  for (int host : hosts) most = std::max(most, ++ranks[host]);
  return most;
}

CallKind tuned_kind(CallKind kind) {
  switch (kind) {
    case CallKind::kReduceScatterV: return CallKind::kReduceScatter;
    case CallKind::kAllgatherV: return CallKind::kAllgather;
    case CallKind::kRecv: return CallKind::kSend;
    default: return kind;
  }
}

size_t tuned_bytes(CallKind kind, size_t count, size_t element, int ranks) {
  // The v forms count all blocks together.
  const bool counts_all = is_point_to_point(kind) || tuned_kind(kind) != kind;
  const bool blocks = !counts_all && kind != CallKind::kBarrier && !is_of_vectors(coll_of(kind));
  const size_t times = element * (blocks ? static_cast<size_t>(ranks) : 1);
  return count > SIZE_MAX / times ? SIZE_MAX : count * times;
}

Result<TuningTable> TuningTable::parse(std::string_view text) {
  TuningTable table;
  size_t number = 0;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    if (++number > kMostLines) return error(UZIP_ERR_CONFIG, "more than %zu lines", kMostLines);
    if (number == 1) {
      if (line != kFirstLine) return refuse("line 1: first line", line, "'" + std::string(kFirstLine) + "'");
      continue;
    }
    UZIP_RETURN_IF_ERROR(read_line(line, &table).with_context("line " + std::to_string(number)));
  }
  if (number == 0) return error(UZIP_ERR_CONFIG, "it is empty");
  const auto sort_key = [](const TunedCall& call) {
    return std::tuple(call.link, call.kind, call.type, call.ranks, call.per_host, call.bytes);
  };
  std::ranges::stable_sort(table.choices, {}, sort_key);
  const auto twice = std::ranges::adjacent_find(table.choices, &TunedCall::same_call);
  if (twice != table.choices.end())
    return error(UZIP_ERR_CONFIG, "two choices for the same call: %s", print_call("choice", *twice).c_str());
  return table;
}

std::string TuningTable::print() const {
  std::string text = std::string(kFirstLine) + "\n# written by uzip_tune; docs/TUNING.md explains the lines\n";
  if (!machine.empty()) text += "machine " + machine.substr(0, kMostText - 10) + "\n";
  text += print_links(*this);
  text += print_codecs(*this);
  text += "# LINK CALL TYPE RANKS BYTES ALGORITHM CHUNK CODEC SPLIT SECONDS\n" + print_choices(*this);
  for (const TunedCall& call : tried) text += print_call("tried", call);
  return text;
}

const TunedCall* TuningTable::find(LinkClass link, CallKind kind, DataType type, int ranks, size_t bytes,
                                   int per_host) const {
  const auto exponent = [](size_t size) { return std::log2(static_cast<double>(std::max<size_t>(size, 1))); };
  const TunedCall* nearest = nullptr;
  double least = 0;
  for (const TunedCall& call : choices) {
    if (call.link != link || call.kind != tuned_kind(kind) || call.type != type || call.ranks != ranks ||
        call.per_host != per_host)
      continue;
    const double distance = std::fabs(exponent(call.bytes) - exponent(bytes));
    if (nearest && distance >= least) continue;
    nearest = &call;
    least = distance;
  }
  const bool larger = nearest && nearest->bytes >= kLargeBytes && bytes > nearest->bytes;
  return least <= kReach || larger ? nearest : nullptr;
}

uint64_t TuningTable::digest() const {
  Fnv1a hash;
  hash.add(print_links(*this) + print_codecs(*this) + print_choices(*this));
  return hash.value() ? hash.value() : 1;
}

}  // namespace uzip
