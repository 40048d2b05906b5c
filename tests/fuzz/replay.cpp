// Runs the fuzz targets without a fuzzer, over their corpus and the golden frames, and over damaged
// copies of each that are the same in every run. `make check` runs it.
//
// usage: replay [TARGET FILE...]    the files only, as they are: what a fuzzer has found
#include "fuzz/fuzz_target.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

namespace {

using Bytes = std::vector<uint8_t>;
namespace fs = std::filesystem;

/// Executions of each target, spread over its inputs.
constexpr size_t kRuns = 6000;

uint64_t next_random(uint64_t* state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return *state >> 20;
}

void damage(Bytes& bytes, uint64_t* random) {
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

Bytes read_file(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) {
    std::fprintf(stderr, "replay: cannot read %s\n", path.c_str());
    std::exit(1);
  }
  return {std::istreambuf_iterator<char>(stream), {}};
}

void run(const uzip::FuzzTarget& target, const Bytes& input) {
  target.run(std::as_bytes(std::span(input)), target.type);
}

/// In the order of their names, so that every run does the same.
std::vector<Bytes> inputs_of(const uzip::FuzzTarget& target) {
  const char* top = std::getenv("top_srcdir");
  const fs::path tests = fs::path(top != nullptr ? top : ".") / "tests";
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(tests / "fuzz/corpus" / target.corpus))
    paths.push_back(entry.path());
  const bool takes_frames =
      std::strcmp(target.corpus, "lev") == 0 || std::strcmp(target.corpus, "frame") == 0;
  if (takes_frames)
    for (const auto& entry : fs::directory_iterator(tests / "golden/vectors"))
      if (entry.path().extension() == ".frame") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<Bytes> inputs;
  for (const fs::path& path : paths) inputs.push_back(read_file(path));
  return inputs;
}

void replay(const uzip::FuzzTarget& target) {
  const std::vector<Bytes> inputs = inputs_of(target);
  uint64_t random = 1;
  size_t runs = 0;
  for (const Bytes& input : inputs) {
    run(target, input);
    ++runs;
    for (size_t copy = 0; copy < kRuns / inputs.size(); ++copy, ++runs) {
      Bytes damaged = input;
      damage(damaged, &random);
      run(target, damaged);
    }
  }
  std::printf("%s - %s: %zu inputs, %zu runs\n", inputs.empty() ? "not ok" : "ok",
              target.name.c_str(), inputs.size(), runs);
  std::fflush(stdout);
  if (inputs.empty()) std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 1) {
    for (const uzip::FuzzTarget& target : uzip::fuzz_targets()) replay(target);
    return 0;
  }
  const uzip::FuzzTarget* target = uzip::find_fuzz_target(argv[1]);
  if (target == nullptr || argc == 2) {
    std::fprintf(stderr, "usage: replay [TARGET FILE...]\n");
    return 2;
  }
  for (int i = 2; i < argc; ++i) run(*target, read_file(argv[i]));
  return 0;
}
