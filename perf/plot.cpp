#include "plot.hpp"

#include "failure.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sstream>

namespace perf {
namespace {

constexpr const char* kTty = "tty";

struct Curve {
  std::string title;
  std::vector<double> sizes;  ///< bytes
  std::vector<double> times;  ///< seconds, medians
};

bool have_gnuplot() {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (access((folder + "/gnuplot").c_str(), X_OK) == 0) return true;
  }
  return false;
}

// A string of gnuplot's that means exactly `text`.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (char c : text) result += c == '\'' ? "''" : std::string(1, c);
  return result + "'";
}

std::vector<Curve> curves_of(const RunFacts& facts, const std::vector<Row>& rows) {
  std::vector<Curve> curves;
  const auto add = [&](const std::string& title, const Row& row, double time) {
    auto curve = std::ranges::find(curves, title, &Curve::title);
    if (curve == curves.end()) {
      curves.push_back({title, {}, {}});
      curve = curves.end() - 1;
    }
    curve->sizes.push_back(static_cast<double>(row.size));
    curve->times.push_back(time);
  };
  for (const Row& row : rows) {
    if (row.size == 0) continue;  // has no place on a logarithmic axis
    std::string title = row.type->name;
    if (facts.operation.reduces) title += " " + row.redop;
    const Timing& timing = row.out_of_place.timing;
    add(title + ", codec " + facts.options.codec, row, timing.times.p50);
    for (const PeerTimes& peer : timing.versus)
      add(title + ", " + peer_name(peer.kind), row, peer.times.p50);
  }
  return curves;
}

// 0 for one rank, which sends nothing: then the plain bandwidth is drawn.
double bus_factor(const RunFacts& facts) { return facts.operation.bus_factor(facts.ranks()); }

void write_data(std::ostream& script, const std::vector<Curve>& curves, double factor) {
  for (size_t c = 0; c < curves.size(); ++c) {
    script << "$curve" << c << " << END\n";
    for (size_t i = 0; i < curves[c].sizes.size(); ++i) {
      const double seconds = std::max(curves[c].times[i], 1e-9);
      script << curves[c].sizes[i] << ' ' << seconds * 1e6 << ' '
             << curves[c].sizes[i] / seconds / 1e9 * factor << '\n';
    }
    script << "END\n";
  }
}

void write_panel(std::ostream& script, const std::vector<Curve>& curves, int column,
                 const char* label) {
  script << "set ylabel '" << label << "'\nplot ";
  for (size_t c = 0; c < curves.size(); ++c) {
    script << (c > 0 ? ", " : "") << "$curve" << c << " using 1:" << column
           << " with linespoints title " << quoted(curves[c].title);
  }
  script << '\n';
}

std::string terminal_size() {
  winsize size = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 40 || size.ws_row < 12)
    return "79 24";
  return std::to_string(size.ws_col - 1) + " " + std::to_string(std::min<int>(size.ws_row - 2, 40));
}

}  // namespace

void check_plot(const std::string& target) {
  if (!have_gnuplot()) {
    throw Failure(kExitUsage, "--plot " + target +
                                  ": there is no gnuplot in PATH; install it (Debian, Ubuntu: "
                                  "gnuplot-nox), or write numbers with --csv or --output_file");
  }
  if (target == kTty) return;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(target.c_str(), "a"),
                                                       std::fclose);
  if (!file) throw Failure(kExitUsage, "--plot " + target + ": " + std::strerror(errno));
}

std::string plot_script(const RunFacts& facts, const std::vector<Row>& rows,
                        const std::string& target) {
  const std::vector<Curve> curves = curves_of(facts, rows);
  const bool file = target != kTty;
  std::ostringstream script;
  const double factor = bus_factor(facts);
  write_data(script, curves, factor > 0 ? factor : 1);
  if (file) {
    script << "set terminal svg size 1200,520 background rgb 'white'\nset output " << quoted(target)
           << '\n';
  } else {
    script << "set terminal dumb size " << terminal_size() << "\n";
  }
  const std::string title = std::string(facts.operation.name) + ", " +
                            std::to_string(facts.ranks()) + " ranks, data " +
                            to_string(facts.options.data) + ", libuzipcoll " +
                            uzip_version_string();
  // In a terminal a curve would run through the names.
  script << "set key " << (file ? "left top" : "below") << " noenhanced\nset grid\nset logscale x 2\n"
         << "set format x '%.0b%B'\n"
         << "set xlabel 'size (bytes)'\n";
  script << (file ? "set multiplot layout 1,2 title " : "set title ") << quoted(title)
         << " noenhanced\n";
  script << "set yrange [0:*]\n";
  write_panel(script, curves, 3, factor > 0 ? "bus bandwidth (GB/s)" : "bandwidth (GB/s)");
  if (file) {
    script << "set logscale y\nset yrange [*:*]\n";
    write_panel(script, curves, 2, "time (us, median)");
    script << "unset multiplot\n";
  }
  return script.str();
}

void plot(const RunFacts& facts, const std::vector<Row>& rows, const std::string& target) {
  if (std::ranges::all_of(rows, [](const Row& row) { return row.size == 0; })) return;
  const std::string script = plot_script(facts, rows, target);
  std::fflush(stdout);
  const auto previous = std::signal(SIGPIPE, SIG_IGN);  // a gnuplot that ends early is an error below
  std::FILE* gnuplot = popen("gnuplot -", "w");
  if (gnuplot == nullptr)
    throw Failure(kExitWrong, std::string("--plot: gnuplot: ") + std::strerror(errno));
  const bool written = std::fwrite(script.data(), 1, script.size(), gnuplot) == script.size();
  const bool drawn = pclose(gnuplot) == 0;
  std::signal(SIGPIPE, previous);
  if (!drawn || !written)
    throw Failure(kExitWrong, "--plot " + target + ": gnuplot failed, its message stands above");
}

}  // namespace perf
