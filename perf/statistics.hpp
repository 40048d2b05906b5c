// What is said of a series of times: mean, percentiles, and how sure they are.
#pragma once

#include <cstddef>
#include <vector>

namespace perf {

/// Batches that a series is divided into, at most.
constexpr size_t kBatches = 20;
/// With fewer values nothing is said of their confidence.
constexpr size_t kFewestBatches = 5;

double mean(const std::vector<double>& values);

/// The value below which `fraction` of the sorted `values` lie, interpolated between neighbours; 0.5 is
/// the median. `values` must not be empty.
double quantile(const std::vector<double>& sorted, double fraction);

/// The means, or medians, of up to kBatches consecutive pieces of nearly equal length. Calls that follow
/// each other resemble each other (caches, neighbours on the machine), so their times are not
/// independent and a confidence interval from single calls would be too narrow; those of batches nearly
/// are.
std::vector<double> batch_values(const std::vector<double>& times, bool medians);

/// Half of the 95 % confidence interval of the mean of independent `batches`, by Student's t;
/// infinite for fewer than kFewestBatches.
double half_width(const std::vector<double>& batches);

}  // namespace perf
