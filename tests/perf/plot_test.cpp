// The commands that gnuplot gets.
#include "../../perf/plot.hpp"

#include <gtest/gtest.h>

namespace perf {
namespace {

Row row_of(size_t size, double seconds, double raw_seconds) {
  Row row;
  row.size = size;
  row.type = find_element_type("float");
  row.redop = "sum";
  row.out_of_place.timing.times.p50 = seconds;
  row.out_of_place.timing.versus = {{PeerKind::kRaw, "codec raw", {}}};
  row.out_of_place.timing.versus[0].times.p50 = raw_seconds;
  return row;
}

struct Plot : testing::Test {
  Operation operation = {.kind = OperationKind::kAllreduce,
                         .name = "allreduce",
                         .does = "",
                         .reduces = true,
                         .has_in_place = true,
                         .has_algorithms = true,
                         .same_everywhere = true,
                         .count = nullptr,
                         .layout = nullptr,
                         .bus_factor = [](int ranks) { return 2.0 * (ranks - 1) / ranks; },
                         .run = nullptr};
  Options options;
  RunFacts facts = {.operation = operation,
                    .options = options,
                    .arguments = {},
                    .start_time = "",
                    .launched_by = "",
                    .hosts = {4, "here"},
                    .processes = {},
                    .environment = {},
                    .commit = "",
                    .machine = {},
                    .mpi = "",
                    .notes = {}};
};

TEST_F(Plot, ACurveForTheLibraryAndEachPeer) {
  const std::string script =
      plot_script(facts, {row_of(1000, 1e-6, 2e-6), row_of(2000, 2e-6, 4e-6)}, "a'b.svg");
  EXPECT_NE(script.find("$curve0 << END\n1000 1 1.5\n2000 2 1.5\nEND\n"), script.npos) << script;
  EXPECT_NE(script.find("$curve1 << END\n1000 2 0.75\n2000 4 0.75\nEND\n"), script.npos);
  EXPECT_EQ(script.find("$curve2"), script.npos);
  EXPECT_NE(script.find("title 'float sum, raw'"), script.npos);
  EXPECT_NE(script.find("set output 'a''b.svg'"), script.npos);
  EXPECT_NE(script.find("multiplot"), script.npos);
}

TEST_F(Plot, OneRankHasNoBusBandwidth) {
  facts.hosts = {"here"};
  const std::string script = plot_script(facts, {row_of(1000, 1e-6, 2e-6)}, "tty");
  EXPECT_NE(script.find("1000 1 1\n"), script.npos);
  EXPECT_EQ(script.find("bus bandwidth"), script.npos);
  EXPECT_EQ(script.find("multiplot"), script.npos);
}

TEST_F(Plot, NothingHasNoPlaceOnALogarithmicAxis) {
  const std::string script = plot_script(facts, {row_of(0, 1e-6, 1e-6), row_of(8, 1e-6, 1e-6)}, "tty");
  EXPECT_NE(script.find("$curve0 << END\n8 "), script.npos) << script;
}

}  // namespace
}  // namespace perf
