#include "bench_report.hpp"

#include <cinttypes>
#include <cmath>
#include <cstring>

namespace perf {
namespace {

// As many decimals as fit into the column, at most two.
std::string fit(double value, int width) {
  char text[64];
  for (int decimals = 2; decimals >= 0; --decimals) {
    if (std::snprintf(text, sizeof(text), "%.*f", decimals, value) <= width - (decimals > 0))
      return text;
  }
  std::snprintf(text, sizeof(text), "%.1e", value);
  return text;
}

std::string format(const char* pattern, double value) {
  char text[64];
  std::snprintf(text, sizeof(text), pattern, value);
  return text;
}

uint64_t mean_wire_bytes(const Row& row, int ranks) {
  return row.out_of_place.timing.wire_bytes / static_cast<uint64_t>(ranks);
}

void print_measured(std::FILE* out, const Measured* measured, bool percentiles = false) {
  if (measured == nullptr) {
    std::fprintf(out, "  %7s  %6s  %6s  %6s", "N/A", "N/A", "N/A", "N/A");
    return;
  }
  const std::string wrong = measured->wrong ? std::to_string(*measured->wrong) : "N/A";
  const CallTimes& times = measured->timing.times;
  std::fprintf(out, "  %7s", fit(measured->timing.time * 1e6, 7).c_str());
  if (percentiles) {
    for (double time : {times.p50, times.p90, times.p99})
      std::fprintf(out, "  %7s", fit(time * 1e6, 7).c_str());
  }
  std::fprintf(out, "  %6s  %6s  %6s", fit(measured->alg_bw, 6).c_str(),
               fit(measured->bus_bw, 6).c_str(), wrong.c_str());
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

void print_csv_measured(std::FILE* out, const Measured* measured) {
  if (measured == nullptr) {
    std::fputs(",,,,", out);
    return;
  }
  std::fprintf(out, ",%.3f,%.6g,%.6g,%s", measured->timing.time * 1e6, measured->alg_bw,
               measured->bus_bw, measured->wrong ? std::to_string(*measured->wrong).c_str() : "");
}

}  // namespace

void TableReport::begin() const {
  print_settings();
  print_ranks();
  print_heads(facts_.options.median ? "median" : "time");
  std::fflush(out_);
}

void TableReport::print_heads(const char* time) const {
  const Options& options = facts_.options;
  const int room = options.percentiles ? 58 : 31;
  std::fprintf(out_, "#\n# %10s  %12s  %8s  %6s  %6s  %*s  %31s\n", "", "", "", "", "", room,
               "out-of-place          ", "in-place            ");
  std::fprintf(out_, "# %10s  %12s  %8s  %6s  %6s  %7s", "size", "count", "type", "redop", "root",
               time);
  if (options.percentiles) std::fprintf(out_, "  %7s  %7s  %7s", "p50", "p90", "p99");
  std::fprintf(out_, "  %6s  %6s  %6s  %7s  %6s  %6s  %6s", "algbw", "busbw", "#wrong", time,
               "algbw", "busbw", "#wrong");
  std::fprintf(out_, "  %6s  %12s  %6s  %18s", "ratio", "wire", "codec", "algo");
  if (options.precision > 0) std::fprintf(out_, "  %6s", "+-");
  if (options.overlap) std::fprintf(out_, "  %6s", "hidden");
  for (size_t i = 0; i < options.versus.size(); ++i) std::fprintf(out_, "  %8s", "speed-up");
  std::fprintf(out_, "\n# %10s  %12s  %8s  %6s  %6s  %7s", "(B)", "(elements)", "", "", "", "(us)");
  if (options.percentiles) std::fprintf(out_, "  %7s  %7s  %7s", "(us)", "(us)", "(us)");
  std::fprintf(out_, "  %6s  %6s  %6s  %7s  %6s  %6s  %6s", "(GB/s)", "(GB/s)", "", "(us)",
               "(GB/s)", "(GB/s)", "");
  std::fprintf(out_, "  %6s  %12s  %6s  %18s", "", "(B/rank)", "", "");
  if (options.precision > 0) std::fprintf(out_, "  %6s", "(%)");
  if (options.overlap) std::fprintf(out_, "  %6s", "(%)");
  for (PeerKind peer : options.versus)
    std::fprintf(out_, "  %8s", (std::string("over ") + peer_name(peer)).c_str());
  std::fputc('\n', out_);
}

void TableReport::print_settings() const {
  const Options& options = facts_.options;
  const std::string step = options.step_factor > 1
                               ? std::to_string(options.step_factor) + " (factor)"
                               : format_bytes(options.step_bytes) + " (bytes)";
  std::fprintf(out_, "# %s: libuzipcoll %s%s%s, launch: %s\n", facts_.operation.name,
               uzip_version_string(), facts_.mpi.empty() ? "" : ", ", facts_.mpi.c_str(),
               facts_.launched_by.c_str());
  std::fprintf(out_,
               "# minBytes %zu maxBytes %zu step: %s warmup iters: %d iters: %d validation: %d\n",
               options.min_bytes, options.max_bytes, step.c_str(), options.warmup,
               options.iterations, options.checks);
  if (options.precision > 0)
    std::fprintf(out_, "# iters are repeated until times are known within %g%%\n",
                 options.precision * 100);
  std::fprintf(out_, "# data: %s\n", describe(options.data).c_str());
  const char* split = options.split_send < 0 ? "auto" : options.split_send == 0 ? "0" : "1";
  std::fprintf(out_, "# codec: %s, algorithm: %s, chunk: %s, split-send: %s\n",
               options.codec.c_str(), options.algorithm.c_str(),
               options.chunk_bytes == 0 ? "auto" : format_bytes(options.chunk_bytes).c_str(),
               split);
  for (const std::string& variable : facts_.environment)
    std::fprintf(out_, "# %s\n", variable.c_str());
  for (const std::string& sentence : facts_.notes) note(sentence);
}

void TableReport::print_ranks() const {
  std::fprintf(out_, "#\n# Using %d rank%s\n", facts_.ranks(), facts_.ranks() == 1 ? "" : "s");
  for (size_t r = 0; r < facts_.hosts.size(); ++r) {
    std::fprintf(out_, "#  Rank %2zu Pid %6" PRIu64 " on %s\n", r, facts_.processes[r],
                 facts_.hosts[r].c_str());
  }
}

void TableReport::note(const std::string& sentence) const {
  std::fprintf(out_, "# %s\n", sentence.c_str());
  std::fflush(out_);
}

void TableReport::row(const Row& row) const {
  std::fprintf(out_, "%12zu  %12zu  %8s  %6s  %6d", row.size, row.count, row.type->name,
               row.redop.c_str(), root_of(facts_.operation.kind));
  print_measured(out_, &row.out_of_place, facts_.options.percentiles);
  print_measured(out_, row.in_place ? &*row.in_place : nullptr);
  const Timing& timing = row.out_of_place.timing;
  std::fprintf(out_, "  %6s  %12" PRIu64 "  %6s  %18s",
               timing.ratio() ? format("%.3f", *timing.ratio()).c_str() : "-",
               mean_wire_bytes(row, facts_.ranks()), timing.codec.c_str(),
               timing.algorithm.c_str());
  if (facts_.options.precision > 0)
    std::fprintf(out_, "  %6s", format("%.2f", timing.times.precision() * 100).c_str());
  if (row.overlap) std::fprintf(out_, "  %6.1f", row.overlap->hidden() * 100);
  for (PeerKind peer : facts_.options.versus) {
    const std::optional<double> speedup = timing.speedup(peer);
    std::fprintf(out_, "  %8s", speedup ? format("%.2f", *speedup).c_str() : "-");
  }
  std::fputc('\n', out_);
  std::fflush(out_);
}

void TableReport::end(const Verdict& verdict) const {
  std::fprintf(out_, "# %-20s : %zu %s\n", "Out of bounds values", verdict.wrong,
               verdict.wrong > 0 ? "FAILED" : "OK");
  std::fprintf(out_, "# %-20s : %g\n#\n", "Avg bus bandwidth", verdict.mean_bus_bw);
  std::fflush(out_);
}

void CsvReport::begin() const {
  std::fputs("program,ranks,data,size,count,type,redop,root", out_);
  for (const char* form : {"out_of_place", "in_place"}) {
    std::fprintf(out_, ",%s_us,%s_algbw,%s_busbw,%s_wrong", form, form, form, form);
  }
  std::fputs(",p50_us,p90_us,p99_us,precision,calls,ratio,wire_bytes,codec,algo,chunk", out_);
  for (PeerKind peer : facts_.options.versus) {
    const char* name = peer_name(peer);
    std::fprintf(out_, ",%s,%s_us,%s_speedup", name, name, name);
  }
  if (facts_.options.overlap) std::fputs(",call_us,compute_us,both_us,hidden", out_);
  std::fputc('\n', out_);
  std::fflush(out_);
}

void CsvReport::row(const Row& row) const {
  std::fprintf(out_, "%s,%d,%s,%zu,%zu,%s,%s,%d", facts_.operation.name, facts_.ranks(),
               csv_field(to_string(facts_.options.data)).c_str(), row.size, row.count,
               row.type->name, row.redop.c_str(), root_of(facts_.operation.kind));
  print_csv_measured(out_, &row.out_of_place);
  print_csv_measured(out_, row.in_place ? &*row.in_place : nullptr);
  const Timing& timing = row.out_of_place.timing;
  const CallTimes& times = timing.times;
  const double precision = times.precision();
  std::fprintf(out_, ",%.3f,%.3f,%.3f,%s,%zu", times.p50 * 1e6, times.p90 * 1e6, times.p99 * 1e6,
               std::isfinite(precision) ? format("%.5f", precision).c_str() : "", times.calls);
  std::fprintf(out_, ",%s,%" PRIu64 ",%s,%s,%zu",
               timing.ratio() ? format("%.6f", *timing.ratio()).c_str() : "",
               mean_wire_bytes(row, facts_.ranks()), timing.codec.c_str(), timing.algorithm.c_str(),
               timing.chunk_bytes);
  for (PeerKind kind : facts_.options.versus) {
    const PeerTimes* peer = timing.find(kind);
    if (peer == nullptr) {
      std::fputs(",,,", out_);
    } else {
      std::fprintf(out_, ",%s,%.3f,%.4f", csv_field(peer->description).c_str(),
                   peer->times.p50 * 1e6, timing.speedup(kind).value_or(0));
    }
  }
  if (const auto& overlap = row.overlap)
    std::fprintf(out_, ",%.3f,%.3f,%.3f,%.4f", overlap->call * 1e6, overlap->compute * 1e6, overlap->both * 1e6,
                 overlap->hidden());
  std::fputc('\n', out_);
  std::fflush(out_);
}

}  // namespace perf
