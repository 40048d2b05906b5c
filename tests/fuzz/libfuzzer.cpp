// One program for all targets, with clang's fuzzing engine: ./configure CC=clang CXX=clang++
// --enable-fuzzers, make tests/fuzz/fuzzer. FUZZ_TARGET in the environment names the target.
#include "fuzz/fuzz_target.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {
const uzip::FuzzTarget* target = nullptr;
}

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* name = std::getenv("FUZZ_TARGET");
  target = uzip::find_fuzz_target(name != nullptr ? name : "");
  if (target != nullptr) return 0;
  std::fprintf(stderr, "FUZZ_TARGET must be one of:\n");
  for (const uzip::FuzzTarget& one : uzip::fuzz_targets())
    std::fprintf(stderr, "  %s\n", one.name.c_str());
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  target->run(std::as_bytes(std::span(data, size)), target->type);
  return 0;
}
