// The part of perf/codec that Google Benchmark runs; only built where that is.
#pragma once

namespace uzip {

/// Runs the cases that the --benchmark_* options in `argv` choose. Returns the exit status.
int run_codec_benchmarks(int argc, char** argv);

}  // namespace uzip
