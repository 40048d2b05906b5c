// Cost models as text: what is read, and what the errors say.
#include "algos/machine_model.hpp"

#include <gtest/gtest.h>

#include <string>

namespace uzip {
namespace {

const std::string kSmall =
    "uzip-cost-model 1\n"
    "name mine  # a comment\n"
    "ranks_per_host 2\n"
    "copy 1e10\n"
    "reduce 2e10\n"
    "\n"
    "link local\n"
    "  latency 5e-7\n"
    "  bandwidth 8e9\n"
    "  carrier receiver\n"
    "link remote\n"
    "  latency 2e-5\n"
    "  bandwidth 1.25e9\n"
    "  port host\n"
    "codec lev bf16\n"
    "  ratio 0.68\n"
    "  plain 0.5\n"
    "  encode 9e9\n"
    "  decode 1.2e10\n";

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), by);
}

void expect_fault(const std::string& text, const std::string& message) {
  const Result<MachineModel> model = parse_machine_model(text, "file");
  ASSERT_FALSE(model.ok()) << "not found: " << message;
  EXPECT_NE(model.status().message().find(message), std::string::npos) << model.status().message();
}

TEST(MachineModel, IsRead) {
  const Result<MachineModel> model = parse_machine_model(kSmall, "file");
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(model->name, "mine");
  EXPECT_EQ(model->ranks_per_host, 2);
  EXPECT_EQ(model->local.carrier, Carrier::kReceiver);
  EXPECT_EQ(model->remote.port, PortOwner::kHost);
  EXPECT_EQ(model->remote.bandwidth, 1.25e9);
  ASSERT_NE(model->find_codec("lev", UZIP_BF16), nullptr);
  EXPECT_EQ(model->find_codec("lev", UZIP_BF16)->ratio, 0.68);
  EXPECT_EQ(model->find_codec("lev", UZIP_FP32), nullptr);
}

const std::string kSockets = replaced(replaced(kSmall, "copy", "ranks_per_socket 1\ncopy"), "link remote",
                                      "link socket\n  latency 6e-7\n  bandwidth 4e10\n  port socket\nlink remote");

TEST(MachineModel, SaysWhichLinkJoinsTwoRanks) {
  const Result<MachineModel> one = parse_machine_model(kSmall, "file");
  const Result<MachineModel> two = parse_machine_model(kSockets, "file");
  ASSERT_TRUE(one.ok() && two.ok()) << one.status().message() << two.status().message();
  EXPECT_EQ(one->distance(0, 1), Distance::kLocal);
  EXPECT_EQ(two->distance(0, 1), Distance::kSocket);
  EXPECT_EQ(two->distance(2, 2), Distance::kLocal);
  for (const MachineModel* model : {&*one, &*two}) EXPECT_EQ(model->distance(1, 2), Distance::kRemote);
  EXPECT_EQ(two->socket.port, PortOwner::kSocket);
  EXPECT_EQ(two->link(Distance::kSocket).bandwidth, 4e10);
}

TEST(MachineModel, IsWrittenAsItIsRead) {
  const Result<MachineModel> model = parse_machine_model(kSockets, "file");
  ASSERT_TRUE(model.ok());
  const std::string text = print_machine_model(*model);
  const Result<MachineModel> again = parse_machine_model(text, "again");
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(print_machine_model(*again), text);
}

TEST(MachineModel, ThoseThatAreAlwaysThereAreSound) {
  for (const NamedModel& named : machine_models()) {
    const Result<MachineModel> model = parse_machine_model(named.text, named.name);
    ASSERT_TRUE(model.ok()) << model.status().message();
    EXPECT_EQ(model->name, named.name);
    EXPECT_NE(model->find_codec("lev", UZIP_BF16), nullptr);
  }
}

TEST(MachineModel, FaultsNameTheLine) {
  expect_fault("", "file:0: not a cost model");
  expect_fault("a table of numbers", "file:1: not a cost model");
  expect_fault(replaced(kSmall, "model 1", "model 2"), "file:1: version '2'");
  expect_fault(replaced(kSmall, "bandwidth", "bandwith"),
               "file:9: 'bandwith' is no key of a link; the nearest is bandwidth");
  expect_fault(replaced(kSmall, "  port host", "  prot host"), "the nearest is port");
  expect_fault(replaced(kSmall, "  port host", "  port hots"), "'port' takes 'rank', 'socket' or 'host'");
  expect_fault(replaced(kSmall, "  ratio 0.68", "  ratio -1"),
               "file:16: 'ratio' takes a number above 0, not '-1'");
  expect_fault(replaced(kSmall, "  plain 0.5", "  plain 2"), "a number from 0 to 1, not '2'");
  expect_fault(replaced(kSmall, "8e9", "8 GB/s"), "not 'several words'");
  expect_fault(replaced(kSmall, "8e9", "8e9x"), "not '8e9x'");
  expect_fault(replaced(kSmall, "8e9", "nan"), "not 'nan'");
  expect_fault(replaced(kSmall, "8e9", "inf"), "not 'inf'");
  expect_fault(replaced(kSmall, "8e9", "1e400"), "not '1e400'");
  expect_fault(replaced(kSmall, "_host 2", "_host 2.5"), "a whole number, 1 or more");
  expect_fault(replaced(kSmall, "copy 1e10", "reduce 1e10"), "'reduce' is given twice");
  expect_fault(replaced(kSmall, "copy 1e10\n", ""), "'copy' is missing in the machine");
  expect_fault(replaced(kSmall, "link remote", "link local"), "'link local ' is given twice");
  expect_fault(replaced(kSmall, "link remote", "link far"), "a link is 'link local'");
  expect_fault(replaced(kSmall, "lev bf16", "lev bf17"), "there is no type 'bf17'; the nearest is");
  expect_fault(replaced(kSmall, "lev bf16", "lev"), "a codec is 'codec NAME TYPE'");
  expect_fault(replaced(kSmall, "  decode 1.2e10\n", ""), "'decode' is missing in the codec");
  expect_fault(kSmall.substr(0, kSmall.find("link remote")),
               "the section 'link remote' is missing");
  expect_fault(replaced(kSockets, "ranks_per_socket 1\n", ""), "'ranks_per_socket' and the section 'link socket' go");
  expect_fault(replaced(kSmall, "copy", "ranks_per_socket 2\ncopy"), "'ranks_per_socket' and the section 'link socket' go");
  expect_fault(replaced(kSockets, "socket 1", "socket 1.5"), "a whole number, 0 or more");
  expect_fault(std::string("uzip-cost-model 1\n\x01\xff\0 1\n", 23), "is no key of the machine");
}

}  // namespace
}  // namespace uzip
