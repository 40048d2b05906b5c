// Tuning tables in files: where they lie, files that are none, and ranks that agree on one or on none.
#include "comm/tuning_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace uzip {
namespace {

constexpr const char* kText =
    "uzipcoll-tuning 1\n"
    "choice network allreduce bf16 2 4096 one_shot 0 raw 1 5e-05\n";

class TuningFile : public testing::Test {
 protected:
  TuningFile() {
    char name[] = "/tmp/uzip-tuning.XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~TuningFile() override { std::system(("rm -rf " + folder_).c_str()); }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/" + name) << text;
    return folder_ + "/" + name;
  }
  static std::string why_not(const std::string& path) {
    const auto table = read_tuning_file(path);
    return table.ok() ? "" : table.status().message();
  }
  /// What load_tuning() says on standard error.
  static std::string said(const Config& config) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(load_tuning(config), nullptr);
    return testing::internal::GetCapturedStderr();
  }

  std::string folder_;
};

TEST_F(TuningFile, WritesAndReads) {
  const std::string path = folder_ + "/a/b/table";
  const auto table = TuningTable::parse(kText);
  ASSERT_TRUE(table.ok());
  for (int i = 0; i < 2; ++i) {
    const Status status = write_tuning_file(path, *table);
    ASSERT_TRUE(status.ok()) << status.message();
  }
  const auto read = read_tuning_file(path);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->digest(), table->digest());
  EXPECT_FALSE(write_tuning_file(path + "/below", *table).ok());  // a file is no folder
  EXPECT_FALSE(write_tuning_file(folder_ + "/a", *table).ok());   // nor a folder a file
}

TEST_F(TuningFile, RefusesWhatIsNoTable) {
  EXPECT_NE(why_not(folder_ + "/nothing").find("No such file"), std::string::npos);
  EXPECT_NE(why_not(folder_).find("not a file"), std::string::npos);
  EXPECT_NE(why_not("/dev/zero").find("not a file"), std::string::npos);
  const std::string pipe = folder_ + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_NE(why_not(pipe).find("not a file"), std::string::npos);  // and it doesn't wait
  EXPECT_NE(why_not(write("large", std::string(3 << 20, '#'))).find("larger than"), std::string::npos);
  const std::string message = why_not(write("wrong", std::string(kText) + "nonsense\n"));
  EXPECT_NE(message.find("wrong: line 3: word 'nonsense'"), std::string::npos) << message;
}

TEST_F(TuningFile, LoadsWhatTheSettingNames) {
  Config config;
  config.tuning_file = write("table", kText);
  ASSERT_NE(load_tuning(config), nullptr);
  config.tuning_file = "none";
  EXPECT_EQ(said(config), "");
  config.tuning_file = folder_ + "/nothing";
  EXPECT_NE(said(config).find("the tuning table is ignored"), std::string::npos);
  config.tuning_file = write("wrong", "nonsense");
  const std::string line = said(config);
  EXPECT_NE(line.find("the tuning table is ignored"), std::string::npos);
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
}

TEST_F(TuningFile, ACacheWithoutATableIsNoReasonForAWord) {
  Config config;
  setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
  const std::string path = tuning_path(config);
  EXPECT_TRUE(path.starts_with(folder_ + "/uzipcoll/tuning-")) << path;
  EXPECT_NE(path.find(uzip_version_string()), std::string::npos);
  EXPECT_EQ(said(config), "");
  ASSERT_TRUE(write_tuning_file(path, *TuningTable::parse(kText)).ok());
  EXPECT_NE(load_tuning(config), nullptr);
  setenv("XDG_CACHE_HOME", "relative", 1);
  setenv("HOME", "", 1);
  EXPECT_EQ(tuning_path(config), "");
  unsetenv("XDG_CACHE_HOME");
  unsetenv("HOME");
  EXPECT_EQ(tuning_path(config), "");
}

/// The others have told already.
class FakeBootstrap final : public Bootstrap {
 public:
  FakeBootstrap(int rank, std::vector<std::vector<std::byte>> others) : rank_(rank), others_(std::move(others)) {}
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(others_.size()); }
  Status all_gather(std::span<const std::byte> mine, std::vector<std::vector<std::byte>>* all) override {
    *all = others_;
    (*all)[static_cast<size_t>(rank_)].assign(mine.begin(), mine.end());
    return Status();
  }

 private:
  int rank_;
  std::vector<std::vector<std::byte>> others_;
};

std::vector<std::byte> digest_bytes(uint64_t digest) {
  const auto bytes = std::as_bytes(std::span(&digest, 1));
  return {bytes.begin(), bytes.end()};
}

TEST_F(TuningFile, RanksAgreeOnOneTableOrNone) {
  const auto mine = std::make_shared<const TuningTable>(*TuningTable::parse(kText));
  const auto agreed = [&](int rank, uint64_t other, std::shared_ptr<const TuningTable> own) {
    FakeBootstrap bootstrap(rank, {digest_bytes(other), digest_bytes(other), digest_bytes(other)});
    testing::internal::CaptureStderr();
    auto result = agree_on_tuning(bootstrap, own);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_TRUE(result.ok());
    return std::pair(*result, said);
  };
  EXPECT_EQ(agreed(0, mine->digest(), mine), std::pair(mine, std::string()));
  EXPECT_EQ(agreed(1, 0, nullptr), std::pair(std::shared_ptr<const TuningTable>(), std::string()));
  for (int rank : {0, 1, 2}) {
    for (const auto& own : {mine, std::shared_ptr<const TuningTable>()}) {
      const auto [table, said] = agreed(rank, 12345, own);
      EXPECT_EQ(table, nullptr);
      EXPECT_EQ(said.find("none is used") != std::string::npos, rank == 0) << said;
    }
  }
  FakeBootstrap liar(0, {digest_bytes(1), {std::byte{1}}});
  EXPECT_EQ(agree_on_tuning(liar, mine).status().code(), UZIP_ERR_MISMATCH);
}

}  // namespace
}  // namespace uzip
