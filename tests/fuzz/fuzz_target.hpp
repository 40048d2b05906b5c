// What is fuzzed. Used by the libFuzzer program (libfuzzer.cpp) and by the replay that `make check`
// runs (replay.cpp).
#pragma once

#include "base/datatype.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace uzip {

/// One thing to fuzz. `run` takes any bytes, and ends the process with a message when something is
/// wrong.
struct FuzzTarget {
  std::string name;    ///< "decode_bf16"
  const char* corpus;  ///< folder of tests/fuzz/corpus; targets with the same inputs share one
  void (*run)(std::span<const std::byte> input, DataType type);
  DataType type;  ///< of the elements; for targets that want one
};

/// All targets.
std::span<const FuzzTarget> fuzz_targets();
/// nullptr when there is none of this name.
const FuzzTarget* find_fuzz_target(std::string_view name);

/// Any bytes as a whole frame: header, plain part, coded part.
void fuzz_frame(std::span<const std::byte> input, DataType);
/// A frame of codec lev with a header that fits `type` and the input's size: decoded by a CPU target
/// that the header's call stamp chooses, and sometimes compared with the portable one.
void fuzz_decode(std::span<const std::byte> input, DataType type);
/// The same frame, reduced into elements that are there.
void fuzz_reduce(std::span<const std::byte> input, DataType type);
/// A recipe for elements, which are encoded and come back.
void fuzz_round_trip(std::span<const std::byte> input, DataType type);
/// Lines NAME=value as the environment that the settings are read from.
void fuzz_config(std::span<const std::byte> input, DataType);

/// Ends the process, so that a fuzzer keeps the input.
[[noreturn]] void fail_fuzzing(const char* what);
inline void require(bool condition, const char* what) {
  if (!condition) fail_fuzzing(what);
}

}  // namespace uzip
