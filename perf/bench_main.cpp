// The main program of all measuring programs: scans sizes, types and operations, and reports.
#include "bench_check.hpp"
#include "bench_report.hpp"
#include "bench_time.hpp"
#include "json_report.hpp"
#include "plot.hpp"
#include "progress.hpp"
#include "together.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>

namespace perf {
namespace {

class Bench {
 public:
  Bench(const World& world, const RunFacts& facts, const Peers& peers)
      : world_(world),
        peers_(peers),
        operation_(facts.operation),
        options_(facts.options),
        facts_(facts),
        table_(stdout, facts),
        csv_(stdout, facts),
        progress_(stderr, world.is_root() && shows_progress(facts.options),
                  isatty(STDERR_FILENO) != 0),
        scan_(all_sizes(facts.options),
              facts.options.types.size() * (operation_.reduces ? facts.options.ops.size() : 1)) {
    if (options_.memory != MemoryKind::kHost)
      do_together(world_, [&] { device_.emplace(options_.memory, world_.rank()); });
  }

  Verdict run() {
    Buffers buffers = make_buffers();
    const Pattern nothing;
    try_options({world_, operation_, options_, *options_.types.front(), options_.ops.front(),
                 buffers, nothing});
    if (world_.is_root()) options_.csv ? csv_.begin() : table_.begin();
    for (const ElementType* type : options_.types) {
      Pattern sample;
      do_together(world_, [&] {
        sample = sample_pattern(options_.data, *type, largest_bytes() / type->size);
      });
      for (uzip_op_t op : operation_.reduces ? options_.ops : std::vector{UZIP_SUM}) {
        run_case({world_, operation_, options_, *type, op, buffers, sample});
      }
    }
    if (rows_.empty() && options_.min_bytes <= options_.max_bytes) {
      throw SharedFailure(kExitUsage, "nothing could be measured: " + last_refusal_);
    }
    const Verdict verdict = {wrong_, bus_bw_number_ == 0 ? 0 : bus_bw_sum_ / bus_bw_number_};
    if (world_.is_root() && !options_.csv) table_.end(verdict);
    return verdict;
  }

  const std::vector<Row>& rows() const { return rows_; }

 private:
  static bool shows_progress(const Options& options) {
    if (options.progress == ShowProgress::kAuto) return isatty(STDERR_FILENO) != 0;
    return options.progress == ShowProgress::kOn;
  }

  static std::vector<size_t> all_sizes(const Options& options) {
    std::vector<size_t> sizes;
    for (size_t bytes = options.min_bytes; bytes <= options.max_bytes;
         bytes = options.next_size(bytes)) {
      sizes.push_back(bytes);
    }
    return sizes;
  }

  size_t largest_bytes() const { return std::max<size_t>(options_.max_bytes, 1); }

  // Also enough for the one element of each rank with which try_options() does its work.
  Buffers make_buffers() const {
    const size_t capacity =
        std::max(largest_bytes(), static_cast<size_t>(world_.ranks()) * sizeof(uint64_t));
    const DeviceRuntime* const device = device_ ? &*device_ : nullptr;
    return {GuardedBuffer(capacity, device), GuardedBuffer(capacity, device),
            GuardedBuffer(options_.checks > 0 ? capacity : 0)};
  }

  // Tries the options on one element for each rank. UZIP_ERR_UNSUPPORTED if this type or operation
  // has no such codec or algorithm but others might; anything else than that and UZIP_OK throws.
  uzip_status_t try_options(const Case& bench) {
    const Layout layout = operation_.layout(1, world_.rank(), world_.ranks());
    bench.buffers.source.arm(layout.send * bench.type.size);
    std::memset(bench.source(layout, false), 0, layout.send * bench.type.size);
    bench.buffers.source.push();
    const uzip_status_t status = bench.run(layout, false, options_.call_options(), nullptr);
    if (status == UZIP_OK) return status;
    last_refusal_ = uzip_last_error();
    if (status == UZIP_ERR_INVALID) throw SharedFailure(kExitUsage, last_refusal_);
    if (status != UZIP_ERR_UNSUPPORTED) require(status, operation_.name);
    return status;
  }

  // Leaves a note if not.
  bool supports(const Case& bench) {
    if (try_options(bench) == UZIP_OK) return true;
    if (world_.is_root() && !options_.csv && facts_.many_cases()) {
      table_.note(std::string(bench.type.name) + " " + uzip_op_name(bench.op) +
                  " is left out: " + last_refusal_);
    }
    return false;
  }

  void run_case(const Case& bench) {
    if (!supports(bench)) return scan_.leave_out_case();
    const ExactPatterns exact = options_.checks > 0 ? exact_patterns(bench) : ExactPatterns{};
    const std::vector<std::unique_ptr<Peer>> peers = peers_.of(bench);
    if (world_.is_root() && !options_.csv) note_peers(peers);
    for (size_t bytes = options_.min_bytes; bytes <= options_.max_bytes;
         bytes = options_.next_size(bytes)) {
      const auto start = std::chrono::steady_clock::now();
      add(measure_row(bench, exact, bytes, peers));
      const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
      scan_.finish_line(passed.count());
    }
  }

  void note_peers(const std::vector<std::unique_ptr<Peer>>& peers) const {
    for (PeerKind kind : options_.versus) {
      const auto peer = std::ranges::find(peers, kind, [](const auto& p) { return p->kind(); });
      table_.note(peer == peers.end() ? std::string("versus ") + peer_name(kind) +
                                            ": it has no such operation, type or reduction"
                                      : "versus " + (*peer)->description());
    }
  }

  Row measure_row(const Case& bench, const ExactPatterns& exact, size_t bytes,
                  const std::vector<std::unique_ptr<Peer>>& peers) {
    const Layout layout = bench.layout_of(bytes);
    Row row;
    row.size = layout.largest() * bench.type.size;
    row.count = layout.count;
    row.type = &bench.type;
    if (operation_.reduces) row.redop = uzip_op_name(bench.op);
    row.out_of_place = measure(bench, exact, bytes, row.size, false, peers);
    if (operation_.has_in_place) row.in_place = measure(bench, exact, bytes, row.size, true, {});
    if (options_.overlap) row.overlap = measure_overlap(bench, bytes);
    return row;
  }

  Measured measure(const Case& bench, const ExactPatterns& exact, size_t bytes, size_t size,
                   bool in_place, const std::vector<std::unique_ptr<Peer>>& peers) {
    tell_progress(bench, size, in_place);
    Measured measured;
    if (options_.checks > 0) measured.wrong = check(bench, exact, bytes, in_place);
    measured.timing = time_calls(bench, bytes, in_place, peers);
    measured.alg_bw = static_cast<double>(size) / std::max(measured.timing.time, 1e-9) / 1e9;
    measured.bus_bw = measured.alg_bw * operation_.bus_factor(world_.ranks());
    return measured;
  }

  void add(const Row& row) {
    for (const Measured* measured : {&row.out_of_place, row.in_place ? &*row.in_place : nullptr}) {
      if (measured == nullptr) continue;
      wrong_ += measured->wrong.value_or(0);
      bus_bw_sum_ += measured->bus_bw;
      ++bus_bw_number_;
    }
    rows_.push_back(row);
    if (!world_.is_root()) return;
    progress_.clear();
    options_.csv ? csv_.row(row) : table_.row(row);
  }

  void tell_progress(const Case& bench, size_t size, bool in_place) {
    std::string text = std::string(operation_.name) + ": " + std::to_string(scan_.finished() + 1) +
                       " of " + std::to_string(scan_.lines()) + ", " + format_bytes(size) + " " +
                       bench.type.name + (in_place ? ", in place" : "");
    if (const auto seconds = scan_.remaining())
      text += "; about " + format_duration(*seconds) + " left";
    progress_.show(text);
  }

  const World& world_;
  const Peers& peers_;
  const Operation& operation_;
  const Options& options_;
  const RunFacts& facts_;
  TableReport table_;
  CsvReport csv_;
  ProgressLine progress_;
  Scan scan_;
  std::vector<Row> rows_;
  std::string last_refusal_;
  std::optional<DeviceRuntime> device_;  ///< of buffers that are not in host memory
  size_t wrong_ = 0;
  double bus_bw_sum_ = 0;
  size_t bus_bw_number_ = 0;
};

int run_bench(const World& world, const Operation& operation, const Options& options, int argc,
              char** argv) {
  const Peers peers(world, options.versus);
  std::unique_ptr<JsonReport> json;
  do_together(world, [&] {
    if (!world.is_root()) return;
    if (!options.json_file.empty()) json = std::make_unique<JsonReport>(options.json_file);
    if (!options.plot.empty()) check_plot(options.plot);
  });
  const RunFacts facts = collect_facts(world, operation, options, argc, argv);
  Bench bench(world, facts, peers);
  const Verdict verdict = bench.run();
  if (json) json->write(facts, bench.rows(), verdict);
  if (world.is_root() && !options.plot.empty()) plot(facts, bench.rows(), options.plot);
  return verdict.wrong > 0 ? kExitWrong : 0;
}

void complain(const Operation& operation, const std::string& who, const char* message) {
  std::fflush(stdout);
  std::fprintf(stderr, "%s: %s%s\n", operation.name, who.c_str(), message);
}

}  // namespace

int bench_main(const Operation& operation, int argc, char** argv) {
  Options options;
  try {
    options = parse_options(operation, argc, argv);
  } catch (const Failure& failure) {
    if (speaks_for_job()) complain(operation, "", failure.what());
    return failure.exit_status();
  }
  if (options.help) {
    if (speaks_for_job()) std::fputs(usage(operation).c_str(), stdout);
    return 0;
  }
  // GPUs that open their memory to one another take the one that is current when the communicator is made. What is
  // wrong with it is told later, when the ranks can tell it together.
  if (options.memory != MemoryKind::kHost) {
    try {
      DeviceRuntime(options.memory, launched_rank());
    } catch (const Failure&) {
    }
  }
  std::string who;
  try {
    World world(options.launch, &argc, &argv);
    if (world.ranks() > 1) who = "rank " + std::to_string(world.rank()) + ": ";
    int exit_status = 0;
    try {
      exit_status = run_bench(world, operation, options, argc, argv);
    } catch (const SharedFailure& failure) {
      if (world.is_root()) complain(operation, "", failure.what());
      exit_status = failure.exit_status();
    }
    world.leave();
    return exit_status;
  } catch (const Failure& failure) {
    complain(operation, who, failure.what());
    World::abandon(failure.exit_status());
  } catch (const std::bad_alloc&) {
    complain(operation, who, "out of memory; choose a smaller --maxbytes");
    World::abandon(kExitWrong);
  }
}

}  // namespace perf
