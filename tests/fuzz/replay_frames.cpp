// Runs the fuzz target without a fuzzer: over the files given (corpus, findings, golden frames),
// and over many damaged copies of each, the same in every run. `make check` runs it on the golden
// frames.
//
// With clang, a fuzzer is: clang++ -std=c++20 -fsanitize=fuzzer,address,undefined -Iinclude -Isrc
// -Itests tests/fuzz/frame_target.cpp src/codec/*.cpp src/codec/cpu/kernels.cpp
// src/codec/cpu/kernels_scalar.cpp src/base/{status,datatype,cpu}.cpp
#include "fuzz/frame_target.hpp"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

namespace {

constexpr int kCopies = 300;

uint64_t next_random(uint64_t* state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return *state >> 20;
}

void damage(std::vector<uint8_t>& bytes, uint64_t* random) {
  if (bytes.empty()) return;
  const auto near_front = std::min<size_t>(bytes.size(), 512);
  for (uint64_t left = 1 + next_random(random) % 4; left > 0; --left) {
    const bool front = next_random(random) % 4 != 0;
    const size_t at = next_random(random) % (front ? near_front : bytes.size());
    switch (next_random(random) % 4) {
      case 0:
        bytes[at] = static_cast<uint8_t>(next_random(random));
        break;
      case 1:
        bytes[at] = 0xff;
        break;
      case 2:
        bytes[at] = 0;
        break;
      default:
        bytes[at] = static_cast<uint8_t>(bytes[at] ^ 1u << (next_random(random) % 8));
    }
  }
  if (next_random(random) % 8 == 0) bytes.resize(next_random(random) % bytes.size() + 1);
}

std::vector<std::filesystem::path> inputs(int count, char** names) {
  std::vector<std::filesystem::path> files;
  for (int i = 0; i < count; ++i) {
    if (!std::filesystem::is_directory(names[i])) {
      files.emplace_back(names[i]);
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(names[i]))
      if (entry.is_regular_file()) files.push_back(entry.path());
  }
  return files;
}

}  // namespace

int main(int argc, char** argv) {
  const char* top = std::getenv("top_srcdir");
  const std::string golden = std::string(top != nullptr ? top : ".") + "/tests/golden/frames";
  char* standard[] = {const_cast<char*>(golden.c_str())};
  const auto files = argc > 1 ? inputs(argc - 1, argv + 1) : inputs(1, standard);
  uint64_t random = 1;
  for (const auto& file : files) {
    std::ifstream stream(file, std::ios::binary);
    const std::vector<uint8_t> bytes(std::istreambuf_iterator<char>(stream), {});
    uzip::fuzz_frame(bytes.data(), bytes.size());
    for (int copy = 0; copy < kCopies; ++copy) {
      std::vector<uint8_t> damaged = bytes;
      damage(damaged, &random);
      uzip::fuzz_frame(damaged.data(), damaged.size());
    }
  }
  std::printf("ok - replayed %zu files, %d damaged copies of each\n", files.size(), kCopies);
  return files.empty() ? 1 : 0;
}
