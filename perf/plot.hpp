// The bandwidths of a run as a picture, drawn by gnuplot.
#pragma once

#include "bench_report.hpp"

#include <string>
#include <vector>

namespace perf {

/// Throws Failure if gnuplot isn't there or `target`, a file, can't be written; so both are known before
/// anything is measured.
void check_plot(const std::string& target);

/// gnuplot's commands and data: bus bandwidth over size, a curve for each type and reduction and for each
/// peer; in a file times, too. `target` is a file that ends in .svg, or "tty".
std::string plot_script(const RunFacts& facts, const std::vector<Row>& rows,
                        const std::string& target);

/// Draws. Throws Failure.
void plot(const RunFacts& facts, const std::vector<Row>& rows, const std::string& target);

}  // namespace perf
