// Settings from the environment: what is read, what is refused and how the refusal reads.
#include "base/config.hpp"

#include "base/log.hpp"

#include <gtest/gtest.h>

#include <clocale>
#include <set>
#include <string>
#include <vector>

namespace uzip {
namespace {

Result<Config> parse(const std::vector<std::string>& entries,
                     std::vector<std::string>* warnings = nullptr) {
  std::vector<const char*> environment;
  for (const std::string& entry : entries) environment.push_back(entry.c_str());
  environment.push_back(nullptr);
  return parse_config(environment.data(), warnings);
}

const SettingInfo& setting(std::string_view name) {
  for (const SettingInfo& row : settings()) {
    if (name == row.name) return row;
  }
  ADD_FAILURE() << "no setting " << name;
  return settings()[0];
}

TEST(ConfigTest, NothingSetGivesTheDefaults) {
  const Result<Config> config = parse({});
  ASSERT_TRUE(config.ok());
  for (const SettingInfo& row : settings()) {
    EXPECT_EQ(setting_value(*config, row), row.default_value) << row.name;
    EXPECT_EQ(setting_value(Config(), row), row.default_value) << row.name;
  }
}

TEST(ConfigTest, EveryRowIsComplete) {
  std::set<std::string> names;
  for (const SettingInfo& row : settings()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_EQ(std::string(row.name).rfind("UZIP_", 0), 0u) << row.name;
    EXPECT_STRNE(row.type, "") << row.name;
    EXPECT_STRNE(row.help, "") << row.name;
  }
}

// A value for every setting, other than its default.
const std::vector<std::string> kAllSet = {
    "UZIP_RANK=3",
    "UZIP_SIZE=8",
    "UZIP_RENDEZVOUS=/tmp/a job",
    "UZIP_ALGORITHM=allreduce:ring,allgather:bruck",
    "UZIP_CODEC=raw",
    "UZIP_CHUNK=3M",
    "UZIP_SPLIT_SEND=yes",
    "UZIP_CHECKSUM=yes",
    "UZIP_REPRODUCIBLE=yes",
    "UZIP_RANKS_PER_HOST=4",
    "UZIP_TOPOLOGY=6,2n",
    "UZIP_CODEC_THRESHOLD=12345",
    "UZIP_TUNING_FILE=/tmp/a table",
    "UZIP_CALIBRATE=no",
    "UZIP_TIMEOUT=1.5",
    "UZIP_TIMEOUT_LIMIT=600",
    "UZIP_SPIN=0.25",
    "UZIP_CPU=avx2",
    "UZIP_CODEC_THREADS=3",
    "UZIP_UCX_TLS=tcp,self",
    "UZIP_LOCAL_QUEUES=no",
    "UZIP_PEER_READ=no",
    "UZIP_GPU_PLUGIN=off",
    "UZIP_GPU_MEMORY=100M",
    "UZIP_GPU_PEERS=yes",
    "UZIP_GPU_PEER_MEMORY=64M",
    "UZIP_GPU_BLOCKS=66",
    "UZIP_LOG_LEVEL=debug",
    "UZIP_COLL_TRACE=yes",
};

TEST(ConfigTest, EverySettingIsReadAndShownAsItWasWritten) {
  ASSERT_EQ(kAllSet.size(), settings().size());
  std::vector<std::string> warnings;
  const Result<Config> config = parse(kAllSet, &warnings);
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_TRUE(warnings.empty());
  for (size_t i = 0; i < kAllSet.size(); ++i) {
    const SettingInfo& row = settings()[i];
    EXPECT_EQ(std::string(row.name) + "=" + setting_value(*config, row), kAllSet[i]);
    EXPECT_NE(setting_value(*config, row), row.default_value) << row.name;
  }
  EXPECT_EQ(config->rank, 3);
  EXPECT_EQ(config->chunk_bytes, size_t{3} << 20);
  EXPECT_EQ(config->timeout, 1.5);
  EXPECT_EQ(config->split_send, 1);
  EXPECT_EQ(config->log_level, static_cast<int>(LogLevel::kDebug));
}

struct Accepted {
  const char* entry;
  const char* shown;
};

TEST(ConfigTest, OtherSpellings) {
  for (const Accepted& c : std::vector<Accepted>{
           {"UZIP_CHUNK=0", "auto"},
           {"UZIP_CHUNK=AUTO", "auto"},
           {"UZIP_CHUNK=65536", "64K"},
           {"UZIP_CHUNK=64k", "64K"},
           {"UZIP_CHUNK=2g", "2G"},
           {"UZIP_CHUNK=1025", "1025"},
           {"UZIP_CHUNK=0010", "10"},
           {"UZIP_CHUNK=2048M", "2G"},
           {"UZIP_CHUNK=9223372036854775807", "9223372036854775807"},
           {"UZIP_CHECKSUM=1", "yes"},
           {"UZIP_CHECKSUM=On", "yes"},
           {"UZIP_CHECKSUM=TRUE", "yes"},
           {"UZIP_CHECKSUM=y", "yes"},
           {"UZIP_CHECKSUM=0", "no"},
           {"UZIP_CHECKSUM=off", "no"},
           {"UZIP_SPLIT_SEND=auto", "auto"},
           {"UZIP_SPLIT_SEND=0", "no"},
           {"UZIP_SPLIT_SEND=1", "yes"},
           {"UZIP_LOG_LEVEL=INFO", "info"},
           {"UZIP_CPU=Scalar", "scalar"},
           {"UZIP_TIMEOUT=0", "0"},
           {"UZIP_TIMEOUT=1e3", "1000"},
           {"UZIP_SPIN=1e-3", "0.001"},
           {"UZIP_TIMEOUT=1000000000", "1e+09"},
           {"UZIP_RANK=2147483647", "2147483647"},
           {"UZIP_UCX_TLS=", ""},
           {"UZIP_RENDEZVOUS=/tmp/gr\xc3\xbc\xc3\x9f", "/tmp/gr\xc3\xbc\xc3\x9f"},
       }) {
    const std::string entry = c.entry;
    const Result<Config> config = parse({entry});
    ASSERT_TRUE(config.ok()) << config.status().message();
    EXPECT_EQ(setting_value(*config, setting(entry.substr(0, entry.find('=')))), c.shown) << entry;
  }
}

TEST(ConfigTest, BadValuesAreRefusedInOneClearLine) {
  const std::vector<std::string> values = {
      "",
      " ",
      "   ",
      "-1",
      "-0.5",
      "1e99",
      "0x10",
      "10MBs",
      "10 M",
      "M",
      "K",
      "1.5M",
      "+5",
      "5 ",
      " 5",
      "1,5",
      "nan",
      "inf",
      "1e-999",
      "9223372036854775808",
      "18446744073709551616",
      "99999999999G",
      "8589934592G",
      "\xc3\xbc\xc3\x9f",
      "%n",
      "%s%s%s%s",
      "\n",
      "a\nb",
      "\x1b[2J",
      "true!",
      "yess",
      "[::1]:" + std::string(40, '9'),
      std::string(1000000, '9'),
      std::string(1000000, 'x'),
      std::string("\xff\xfe"),
  };
  for (const char* name :
       {"UZIP_RANK", "UZIP_SIZE", "UZIP_CHUNK", "UZIP_CODEC_THRESHOLD", "UZIP_SPLIT_SEND",
        "UZIP_CHECKSUM", "UZIP_REPRODUCIBLE", "UZIP_RANKS_PER_HOST", "UZIP_TIMEOUT", "UZIP_TIMEOUT_LIMIT", "UZIP_SPIN",
        "UZIP_CPU", "UZIP_CODEC_THREADS", "UZIP_LOCAL_QUEUES", "UZIP_PEER_READ", "UZIP_LOG_LEVEL", "UZIP_COLL_TRACE"}) {
    for (const std::string& value : values) {
      const Result<Config> config = parse({std::string(name) + "=" + value});
      ASSERT_FALSE(config.ok()) << name << "=" << value.substr(0, 50);
      const Status status = config.status();
      EXPECT_EQ(status.code(), UZIP_ERR_CONFIG);
      EXPECT_EQ(status.message().rfind(std::string(name) + "='", 0), 0u) << status.message();
      EXPECT_NE(status.message().find("allowed is " + std::string(setting(name).type)),
                std::string::npos);
      EXPECT_LT(status.message().size(), 350u) << status.message();
      for (char c : status.message()) ASSERT_TRUE(c >= ' ' && c < 0x7f) << status.message();
    }
  }
  EXPECT_EQ(parse({"UZIP_CHUNK=10MBs"}).status().message(),
            "UZIP_CHUNK='10MBs' is not allowed; allowed is bytes: a whole number, with K, M or G "
            "for powers of 1024, "
            "or auto");
  EXPECT_EQ(parse({"UZIP_SIZE=0"}).status().message(),
            "UZIP_SIZE='0' is not allowed; allowed is a whole number from 1 to 2147483647");
}

TEST(ConfigTest, BadTextIsRefused) {
  for (const char* name : {"UZIP_RENDEZVOUS", "UZIP_ALGORITHM", "UZIP_CODEC", "UZIP_UCX_TLS"}) {
    for (const std::string& value :
         {std::string("  "), std::string("a\nb"), std::string("\x1b[2J"), std::string("\x7f"),
          std::string(1000000, 'x'), std::string(4096, 'x')}) {
      EXPECT_EQ(parse({std::string(name) + "=" + value}).status().code(), UZIP_ERR_CONFIG) << name;
    }
  }
  for (const char* entry : {"UZIP_RENDEZVOUS=", "UZIP_ALGORITHM=", "UZIP_CODEC="}) {
    EXPECT_EQ(parse({entry}).status().code(), UZIP_ERR_CONFIG) << entry;
  }
}

TEST(ConfigTest, UnknownNamesWarnWithTheNearest) {
  std::vector<std::string> warnings;
  const Result<Config> config = parse(
      {"UZIP_CHUNKS=1M", "UZIP_LOGLEVEL=info", "uzip_CHUNK=1", "UZIPX=1", "HOME=/"}, &warnings);
  ASSERT_TRUE(config.ok());
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_EQ(warnings[0],
            "UZIP_CHUNKS is not a setting and has no effect; the nearest is UZIP_CHUNK (uzip_info "
            "-c lists all)");
  EXPECT_NE(warnings[1].find("UZIP_LOG_LEVEL"), std::string::npos);
}

TEST(ConfigTest, EverySlipOfOneLetterFindsItsSetting) {
  for (const SettingInfo& row : settings()) {
    const std::string name = row.name;
    for (size_t i = 5; i < name.size(); ++i) {
      std::string slip = name;
      slip[i] = '#';
      std::vector<std::string> warnings;
      ASSERT_TRUE(parse({slip + "=1"}, &warnings).ok());
      if (name.rfind("UZIP_UCX_", 0) == 0 && i >= 9) continue;  // UCX's own
      ASSERT_EQ(warnings.size(), 1u) << slip;
      EXPECT_NE(warnings[0].find("the nearest is " + name + " "), std::string::npos) << warnings[0];
    }
  }
}

TEST(ConfigTest, StrangeNamesAreHarmless) {
  std::vector<std::string> warnings;
  const std::string long_name = "UZIP_" + std::string(1000000, 'A');
  ASSERT_TRUE(
      parse({long_name + "=1", "UZIP_=1", "UZIP_%n\n=1", "UZIP_CHUNK", "=UZIP_", ""}, &warnings)
          .ok());
  ASSERT_EQ(warnings.size(), 3u);
  for (const std::string& warning : warnings) {
    EXPECT_LT(warning.size(), 250u);
    EXPECT_EQ(warning.find('\n'), std::string::npos);
  }
}

TEST(ConfigTest, NamesOfUcxAreNotOurs) {
  std::vector<std::string> warnings;
  ASSERT_TRUE(parse({"UZIP_UCX_RNDV_THRESH=1", "UZIP_UCX_NET_DEVICES=lo"}, &warnings).ok());
  EXPECT_TRUE(warnings.empty());
}

TEST(ConfigTest, WarningsMayBeIgnored) { EXPECT_TRUE(parse({"UZIP_NONSENSE=1"}).ok()); }

TEST(ConfigTest, TheFirstOfTwoEntriesCounts) {
  const Result<Config> config = parse({"UZIP_CHUNK=1M", "UZIP_CHUNK=nonsense"});
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->chunk_bytes, size_t{1} << 20);
}

TEST(ConfigTest, MatchingSettingsAreTheOnesThatMustMatch) {
  const Result<Config> config = parse(kAllSet);
  ASSERT_TRUE(config.ok());
  std::vector<std::string> expected;
  for (const SettingInfo& row : settings()) {
    if (row.must_match)
      expected.push_back(std::string(row.name) + "=" + setting_value(*config, row));
  }
  EXPECT_EQ(matching_settings(*config), expected);
  for (const char* name : {"UZIP_ALGORITHM", "UZIP_CODEC", "UZIP_CHUNK", "UZIP_SPLIT_SEND",
                           "UZIP_CHECKSUM", "UZIP_REPRODUCIBLE", "UZIP_CODEC_THRESHOLD"}) {
    EXPECT_TRUE(setting(name).must_match) << name;
  }
  for (const char* name : {"UZIP_RANK", "UZIP_LOG_LEVEL", "UZIP_CPU", "UZIP_TIMEOUT"}) {
    EXPECT_FALSE(setting(name).must_match) << name;
  }
}

TEST(ConfigTest, TheLocaleDoesNotMatter) {
  const std::string saved = setlocale(LC_ALL, nullptr);
  for (const char* name : {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE"}) {
    if (setlocale(LC_ALL, name) != nullptr) break;
  }
  const Result<Config> config = parse({"UZIP_TIMEOUT=1.5"});
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(setting_value(*config, setting("UZIP_TIMEOUT")), "1.5");
  setlocale(LC_ALL, saved.c_str());
}

TEST(ConfigTest, TheProcessIsReadOnce) {
  const Result<const Config*> first = load_config();
  const Result<const Config*> second = load_config();
  ASSERT_TRUE(first.ok()) << first.status().message();
  EXPECT_EQ(*first, *second);
}

}  // namespace
}  // namespace uzip
