// Every algorithm as text: the documentation of what it does, and an alarm when that changes.
#include "algos/collective_cases.hpp"
#include "algos/print.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace uzip {
namespace {

class GoldenTest : public testing::TestWithParam<const Algorithm*> {};

std::string file_name(const Algorithm& algorithm) {
  return std::string(coll_name(algorithm.coll)) + "_" + algorithm.name + ".txt";
}

// `make check` says where the sources are; a program started by hand finds them from the top
// folder.
std::string path_of(const Algorithm& algorithm) {
  const char* top = std::getenv("top_srcdir");
  return std::string(top == nullptr ? "." : top) + "/tests/golden/schedules/" +
         file_name(algorithm);
}

std::string print_rank(const Algorithm& algorithm, const Shape& shape, Form form, int rank) {
  return "# " + describe(algorithm, shape, form) + ": rank " + std::to_string(rank) + "\n" +
         print_schedule(build_schedule(algorithm, shape, form, rank)) + "\n";
}

// Where reductions take frames; else nothing.
std::string print_fused(const Algorithm& algorithm, const Shape& shape, int rank) {
  const Schedule schedule = build_schedule(algorithm, shape, Form::kFused, rank);
  return count_steps(schedule, Verb::kDecodeReduce) > 0 ? print_rank(algorithm, shape, Form::kFused, rank) : "";
}

std::string print_algorithm(const Algorithm& algorithm) {
  std::string text = std::string("# ") + algorithm.summary + "\n\n";
  const Shape four = even_shape(algorithm.coll, 4, is_of_vectors(algorithm.coll) ? 16 : 4);
  Shape three = even_shape(algorithm.coll, 3, 0, true);
  if (algorithm.coll != Coll::kBarrier) three.counts = {3, 0, 2};
  if (algorithm.coll == Coll::kAlltoall) three.counts = {2, 2, 2};
  if (algorithm.coll == Coll::kAlltoallv) three.counts = {1, 0, 2, 0, 1, 3, 2, 3, 1};
  if (is_rooted(algorithm.coll)) three.root = 1;
  if (std::string(algorithm.name) == "hierarchical") {
    Shape hosts = four;
    hosts.hosts = {0, 0, 1, 1};
    Shape sockets = even_shape(algorithm.coll, 8, is_of_vectors(algorithm.coll) ? 32 : 4);
    sockets.hosts = {0, 0, 0, 0, 1, 1, 1, 1};
    sockets.sockets = {0, 0, 1, 1, 0, 0, 1, 1};
    return text + print_rank(algorithm, hosts, Form::kLowered, 0) + print_rank(algorithm, hosts, Form::kLowered, 3) +
           print_fused(algorithm, hosts, 3) + print_rank(algorithm, sockets, Form::kLowered, 2);
  }
  text += print_rank(algorithm, four, Form::kPlain, 0);
  if (algorithm.coll == Coll::kBarrier) return text + print_rank(algorithm, three, Form::kPlain, 2);
  text += print_rank(algorithm, four, Form::kLowered, 0) + print_fused(algorithm, four, 0);
  text += print_rank(algorithm, three, Form::kPlain, 2);
  return text + print_rank(algorithm, three, Form::kSplit, 2);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// The lines between the common beginning and the common end.
std::string difference(const std::string& before, const std::string& after) {
  const std::vector<std::string> old_lines = lines_of(before);
  const std::vector<std::string> new_lines = lines_of(after);
  const size_t shorter = std::min(old_lines.size(), new_lines.size());
  size_t head = 0;
  while (head < shorter && old_lines[head] == new_lines[head]) ++head;
  size_t tail = 0;
  while (tail < shorter - head &&
         old_lines[old_lines.size() - 1 - tail] == new_lines[new_lines.size() - 1 - tail])
    ++tail;
  std::string text = "@@ line " + std::to_string(head + 1) + " @@\n";
  for (size_t i = head; i < old_lines.size() - tail; ++i) text += "-" + old_lines[i] + "\n";
  for (size_t i = head; i < new_lines.size() - tail; ++i) text += "+" + new_lines[i] + "\n";
  return text;
}

TEST_P(GoldenTest, IsAsDocumented) {
  const std::string path = path_of(*GetParam());
  const std::string now = print_algorithm(*GetParam());
  const char* update = std::getenv("UPDATE");
  if (update != nullptr && *update != '\0') {
    std::ofstream file(path);
    file << now;
    ASSERT_TRUE(file.flush().good()) << "cannot write " << path;
    return;
  }
  std::ifstream file(path);
  std::ostringstream golden;
  golden << file.rdbuf();
  EXPECT_TRUE(golden.str() == now)
      << path << " (-) is not what the algorithm does (+):\n"
      << difference(golden.str(), now)
      << "if this is what you want: make check TESTS=tests/test_algos UPDATE=1";
}

std::string test_name(const testing::TestParamInfo<const Algorithm*>& info) {
  return std::string(coll_name(info.param->coll)) + "_" + info.param->name;
}

INSTANTIATE_TEST_SUITE_P(All, GoldenTest,
                         testing::ValuesIn(algorithms().begin(), algorithms().end()), test_name);

}  // namespace
}  // namespace uzip
