#include "json_report.hpp"

#include "failure.hpp"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <ctime>

namespace perf {
namespace {

constexpr int kVersion = 2;  // of nccl-tests' keys

/// Writes JSON piece by piece. A key of nullptr is for members of arrays and the document itself.
class JsonWriter {
 public:
  explicit JsonWriter(std::FILE* out) : out_(out) {}

  void open(const char* key, char bracket) {
    start(key);
    std::fputc(bracket, out_);
    ++depth_;
    first_ = true;
  }
  void close(char bracket) {
    --depth_;
    if (!first_) indent();
    std::fputc(bracket, out_);
    first_ = false;
  }
  void text(const char* key, const std::string& value) {
    start(key);
    quote(value);
  }
  void number(const char* key, double value) {
    start(key);
    std::isfinite(value) ? std::fprintf(out_, "%.10g", value) : std::fputs("null", out_);
  }
  void number(const char* key, std::optional<double> value) { number(key, value.value_or(NAN)); }
  // In one line.
  void numbers(const char* key, const std::vector<double>& values) {
    start(key);
    std::fputc('[', out_);
    for (size_t i = 0; i < values.size(); ++i)
      std::fprintf(out_, i > 0 ? ", %.6g" : "%.6g", values[i]);
    std::fputc(']', out_);
  }
  void integer(const char* key, uint64_t value) {
    start(key);
    std::fprintf(out_, "%llu", static_cast<unsigned long long>(value));
  }
  void literal(const char* key, const char* value) {
    start(key);
    std::fputs(value, out_);
  }

 private:
  void indent() const { std::fprintf(out_, "\n%*s", 2 * depth_, ""); }
  void start(const char* key) {
    if (!first_) std::fputc(',', out_);
    if (depth_ > 0) indent();
    first_ = false;
    if (key == nullptr) return;
    quote(key);
    std::fputs(": ", out_);
  }
  // Bytes above 0x7f are passed on, so text in UTF-8 stays as it is.
  void quote(const std::string& value) const {
    std::fputc('"', out_);
    for (unsigned char c : value) {
      if (c == '"' || c == '\\') {
        std::fprintf(out_, "\\%c", c);
      } else if (c < 0x20) {
        std::fprintf(out_, "\\u%04x", c);
      } else {
        std::fputc(c, out_);
      }
    }
    std::fputc('"', out_);
  }

  std::FILE* out_;
  int depth_ = 0;
  bool first_ = true;
};

void write_config(JsonWriter& json, const RunFacts& facts) {
  const Options& options = facts.options;
  json.open("config", '{');
  json.text("program", facts.operation.name);
  json.integer("minimum_bytes", options.min_bytes);
  json.integer("maximum_bytes", options.max_bytes);
  if (options.step_factor > 1) {
    json.integer("step_factor", options.step_factor);
  } else {
    json.integer("step_bytes", options.step_bytes);
  }
  json.integer("warmup_iters", static_cast<uint64_t>(options.warmup));
  json.integer("iterations", static_cast<uint64_t>(options.iterations));
  json.integer("validation", static_cast<uint64_t>(options.checks));
  json.integer("average", static_cast<uint64_t>(options.average));
  json.text("time_is", options.median ? "median" : "mean");
  json.number("precision", options.precision);
  json.text("data", to_string(options.data));
  json.text("algo", options.algorithm);
  json.text("codec", options.codec);
  json.integer("chunk", options.chunk_bytes);
  json.text("split", options.split_send < 0 ? "auto" : options.split_send == 0 ? "0" : "1");
  json.text("launch", facts.launched_by);
  json.integer("ranks", facts.hosts.size());
  json.open("devices", '[');
  for (size_t r = 0; r < facts.hosts.size(); ++r) {
    json.open(nullptr, '{');
    json.integer("rank", r);
    json.integer("pid", facts.processes[r]);
    json.text("hostname", facts.hosts[r]);
    json.close('}');
  }
  json.close(']');
  json.close('}');
}

void write_times(JsonWriter& json, const CallTimes& times) {
  json.number("median", times.p50 * 1e6);
  json.number("p50", times.p50 * 1e6);
  json.number("p90", times.p90 * 1e6);
  json.number("p99", times.p99 * 1e6);
  json.integer("calls", times.calls);
  json.number("precision", times.precision());
  std::vector<double> batches = times.batches;
  for (double& time : batches) time *= 1e6;
  json.numbers("batches", batches);
}

void write_versus(JsonWriter& json, const Row& row) {
  const Timing& timing = row.out_of_place.timing;
  json.open("versus", '[');
  for (const PeerTimes& peer : timing.versus) {
    json.open(nullptr, '{');
    json.text("peer", peer_name(peer.kind));
    json.text("name", peer.description);
    json.number("time", peer.times.p50 * 1e6);
    json.number("alg_bw", static_cast<double>(row.size) / peer.times.p50 / 1e9);
    json.number("speedup", timing.speedup(peer.kind));
    write_times(json, peer.times);
    json.close('}');
  }
  json.close(']');
}

void write_measured(JsonWriter& json, const char* key, const Measured* measured) {
  if (measured == nullptr) {
    json.literal(key, "null");
    return;
  }
  json.open(key, '{');
  json.number("time", measured->timing.time * 1e6);
  json.number("alg_bw", measured->alg_bw);
  json.number("bus_bw", measured->bus_bw);
  if (measured->wrong) {
    json.integer("nwrong", *measured->wrong);
  } else {
    json.literal("nwrong", "null");
  }
  write_times(json, measured->timing.times);
  json.close('}');
}

void write_row(JsonWriter& json, const Row& row, const RunFacts& facts) {
  const auto ranks = static_cast<uint64_t>(facts.ranks());
  const Timing& timing = row.out_of_place.timing;
  json.open(nullptr, '{');
  json.integer("size", row.size);
  json.integer("count", row.count);
  json.text("type", row.type->name);
  json.text("redop", row.redop);
  json.text("root", std::to_string(root_of(facts.operation.kind)));
  write_measured(json, "out_of_place", &row.out_of_place);
  write_measured(json, "in_place", row.in_place ? &*row.in_place : nullptr);
  json.text("algo", timing.algorithm);
  json.text("codec", timing.codec);
  json.integer("chunk", timing.chunk_bytes);
  json.number("ratio", timing.ratio());
  json.integer("payload_bytes", timing.payload_bytes / ranks);
  json.integer("wire_bytes", timing.wire_bytes / ranks);
  write_versus(json, row);
  if (row.overlap) {
    json.open("overlap", '{');
    json.number("call", row.overlap->call * 1e6);
    json.number("compute", row.overlap->compute * 1e6);
    json.number("both", row.overlap->both * 1e6);
    json.number("hidden", row.overlap->hidden());
    json.close('}');
  }
  json.close('}');
}

void write_texts(JsonWriter& json, const char* key, const std::vector<std::string>& texts) {
  json.open(key, '[');
  for (const std::string& text : texts) json.text(nullptr, text);
  json.close(']');
}

}  // namespace

JsonReport::JsonReport(const std::string& path) : path_(path), file_(nullptr, std::fclose) {
  file_.reset(std::fopen(path.c_str(), "w"));
  if (!file_) throw Failure(kExitUsage, "--output_file " + path + ": " + std::strerror(errno));
}

void JsonReport::write(const RunFacts& facts, const std::vector<Row>& rows,
                       const Verdict& verdict) {
  JsonWriter json(file_.get());
  json.open(nullptr, '{');
  json.integer("version", kVersion);
  json.text("start_time", facts.start_time);
  write_texts(json, "args", facts.arguments);
  write_texts(json, "env", facts.environment);
  json.text("uzipcoll_version", uzip_version_string());
  json.text("commit", facts.commit);
  json.text("mpi_version", facts.mpi);
  json.open("machine", '{');
  json.text("processor", facts.machine.processor);
  json.integer("cores", facts.machine.cores);
  json.integer("memory_bytes", facts.machine.memory_bytes);
  json.text("system", facts.machine.system);
  json.close('}');
  write_config(json, facts);
  json.open("results", '[');
  for (const Row& row : rows) write_row(json, row, facts);
  json.close(']');
  json.open("out_of_bounds", '{');
  json.integer("count", verdict.wrong);
  json.literal("okay", verdict.wrong == 0 ? "true" : "false");
  json.close('}');
  json.open("average_bus_bandwidth", '{');
  json.number("bandwidth", verdict.mean_bus_bw);
  json.close('}');
  write_texts(json, "notes", facts.notes);
  json.close('}');
  std::fputc('\n', file_.get());
  const bool failed = std::ferror(file_.get()) != 0;
  if (std::fclose(file_.release()) != 0 || failed) {
    throw Failure(kExitWrong, "--output_file " + path_ + ": " + std::strerror(errno));
  }
}

}  // namespace perf
