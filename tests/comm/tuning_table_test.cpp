// Tuning tables: text and back, the nearest choice, and text that is wrong or hostile.
#include "comm/tuning_table.hpp"

#include "algos/algorithm.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace uzip {
namespace {

constexpr const char* kText =
    "uzipcoll-tuning 1\n"
    "# a comment\n"
    "\n"
    "machine Some Processor, 2 cores\n"
    "link shared latency 5e-07 bandwidth 8e+09\n"
    "link network latency 2.1e-05 bandwidth 1.18e+08\n"
    "codec lev:balanced bf16 encode 8.1e+09 decode 1.2e+10 ratio 0.675\n"
    "choice network allreduce bf16 2 4096 one_shot 0 raw 1 5e-05\n"
    "choice network allreduce bf16 2 131072 two_shot 65536 lev:balanced 1 0.006\n"
    "choice shared allreduce bf16 2 1048576 ring 262144 raw 0 0.0003\n"
    "choice network send fp32 2 65536 - 16384 lev:fastest 0 0.0005\n"
    "choice network allreduce bf16 4/2 131072 hierarchical 65536 lev:balanced 1 0.004\n"
    "tried network allreduce bf16 2 131072 ring 65536 raw 1 0.009\n";

TuningTable table() {
  Result<TuningTable> parsed = TuningTable::parse(kText);
  EXPECT_TRUE(parsed.ok()) << parsed.status().message();
  return parsed.ok() ? *parsed : TuningTable();
}

TEST(TuningTable, ReadsAllLines) {
  const TuningTable read = table();
  EXPECT_EQ(read.machine, "Some Processor, 2 cores");
  EXPECT_EQ(read.link(LinkClass::kShared).latency, 5e-7);
  EXPECT_EQ(read.link(LinkClass::kNetwork).bandwidth, 1.18e8);
  ASSERT_EQ(read.codecs.size(), 1u);
  EXPECT_EQ(read.codecs[0].ratio, 0.675);
  EXPECT_EQ(read.choices.size(), 5u);
  ASSERT_EQ(read.tried.size(), 1u);
  EXPECT_EQ(read.tried[0].way.algorithm, find_algorithm(Coll::kAllreduce, "ring"));
  const TunedCall* send = read.find(LinkClass::kNetwork, CallKind::kRecv, UZIP_FP32, 2, 65536);
  ASSERT_NE(send, nullptr);
  EXPECT_EQ(send->way.algorithm, nullptr);
  EXPECT_EQ(send->way.chunk_bytes, 16384u);
  EXPECT_EQ(send->way.codec.level, CodecLevel::kFastest);
  EXPECT_FALSE(send->way.split);
}

TEST(TuningTable, PrintsWhatItReads) {
  const std::string text = table().print();
  const Result<TuningTable> again = TuningTable::parse(text);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(again->print(), text);
  EXPECT_EQ(again->digest(), table().digest());
}

// Four ranks on two hosts are not four ranks on four: they share adapters.
TEST(TuningTable, TellsHostsApart) {
  const TuningTable read = table();
  const auto find = [&](int per_host) {
    return read.find(LinkClass::kNetwork, CallKind::kAllreduce, UZIP_BF16, 4, 131072, per_host);
  };
  ASSERT_NE(find(2), nullptr);
  EXPECT_EQ(find(2)->per_host, 2);
  EXPECT_EQ(find(1), nullptr);
  EXPECT_EQ(find(3), nullptr);
  EXPECT_EQ(largest_host({}), 1);
  EXPECT_EQ(largest_host({7, 7, 0, 7, 0}), 3);
}

TEST(TuningTable, FindsTheNearestSizeOfTheSameCall) {
  const TuningTable read = table();
  const auto bytes_for = [&](LinkClass link, CallKind kind, DataType type, int ranks, size_t bytes) -> size_t {
    const TunedCall* call = read.find(link, kind, type, ranks, bytes);
    return call ? call->bytes : 0;
  };
  const auto network = [&](size_t bytes) {
    return bytes_for(LinkClass::kNetwork, CallKind::kAllreduce, UZIP_BF16, 2, bytes);
  };
  const auto shared = [&](size_t bytes) {
    return bytes_for(LinkClass::kShared, CallKind::kAllreduce, UZIP_BF16, 2, bytes);
  };
  EXPECT_EQ(network(23170), 4096u);
  EXPECT_EQ(network(23171), 131072u);
  // Not for much smaller or larger ones,
  EXPECT_EQ(network(0), 0u);
  EXPECT_EQ(network(511), 0u);
  EXPECT_EQ(network(512), 4096u);
  EXPECT_EQ(network(1 << 20), 131072u);
  EXPECT_EQ(network((1 << 20) + 1), 0u);
  // but a large one for all larger ones.
  EXPECT_EQ(shared(SIZE_MAX), 1048576u);
  EXPECT_EQ(shared(131071), 0u);
  EXPECT_EQ(bytes_for(LinkClass::kNetwork, CallKind::kAllreduce, UZIP_BF16, 3, 4096), 0u);
  EXPECT_EQ(bytes_for(LinkClass::kNetwork, CallKind::kAllreduce, UZIP_FP32, 2, 4096), 0u);
  EXPECT_EQ(bytes_for(LinkClass::kNetwork, CallKind::kAllgather, UZIP_BF16, 2, 4096), 0u);
}

TEST(TuningTable, SizesOfCalls) {
  EXPECT_EQ(tuned_bytes(CallKind::kAllreduce, 100, 4, 8), 400u);
  EXPECT_EQ(tuned_bytes(CallKind::kAllgather, 100, 4, 8), 3200u);
  EXPECT_EQ(tuned_bytes(CallKind::kReduceScatter, 100, 4, 8), 3200u);
  EXPECT_EQ(tuned_bytes(CallKind::kBcast, 100, 4, 8), 400u);
  EXPECT_EQ(tuned_bytes(CallKind::kSend, 100, 4, 2), 400u);
  EXPECT_EQ(tuned_bytes(CallKind::kAllgatherV, 100, 4, 8), 400u);  // its count is the sum
  EXPECT_EQ(tuned_bytes(CallKind::kAllgather, SIZE_MAX / 2, 4, 8), SIZE_MAX);
}

// Whatever may change a plan changes the digest; what is only for people doesn't.
TEST(TuningTable, DigestsTellTablesApart) {
  const uint64_t digest = table().digest();
  TuningTable other = table();
  other.machine = "another";
  other.tried.clear();
  EXPECT_EQ(other.digest(), digest);
  other.codecs.clear();
  EXPECT_NE(other.digest(), digest);
  other = table();
  other.choices[0].way.chunk_bytes += 1024;
  EXPECT_NE(other.digest(), digest);
  other = table();
  other.links[0].latency *= 2;
  EXPECT_NE(other.digest(), digest);
  EXPECT_NE(TuningTable().digest(), 0u);
}

struct Wrong {
  const char* line;
  const char* said;
};

TEST(TuningTable, SaysWhatIsWrongWithALine) {
  const Wrong lines[] = {
      {"choose network allreduce bf16 2 1 ring 0 raw 1 1", "machine, link, codec, choice or tried"},
      {"choice network allreduce bf16 2 1 ring 0 raw 1", "10 words instead of 11"},
      {"choice wire allreduce bf16 2 1 ring 0 raw 1 1", "shared or network"},
      {"choice network allreverse bf16 2 1 ring 0 raw 1 1", "name of a collective"},
      {"choice network recv bf16 2 1 - 0 raw 1 1", "name of a collective"},
      {"choice network unknown bf16 2 1 ring 0 raw 1 1", "name of a collective"},
      {"choice network allreduce bf17 2 1 ring 0 raw 1 1", "element type"},
      {"choice network allreduce bf16 1 1 ring 0 raw 1 1", "from 2 to 1048576"},
      {"choice network allreduce bf16 -2 1 ring 0 raw 1 1", "from 2 to 1048576"},
      {"choice network allreduce bf16 4/4 1 ring 0 raw 1 1", "ranks on a host '4'"},
      {"choice network allreduce bf16 4/ 1 ring 0 raw 1 1", "ranks on a host ''"},
      {"choice network allreduce bf16 2 0 ring 0 raw 1 1", "size '0'"},
      {"choice network allreduce bf16 2 99999999999999999999 ring 0 raw 1 1", "size"},
      {"choice network allreduce bf16 2 1 bruck 0 raw 1 1", "uzip_info -a"},
      {"choice network send bf16 2 1 ring 0 raw 1 1", "- for messages"},
      {"choice network allreduce bf16 2 1 ring 1023 raw 1 1", "chunk '1023'"},
      {"choice network allreduce bf16 2 1 ring 1e6 raw 1 1", "chunk '1e6'"},
      {"choice network allreduce bf16 2 1 ring 1099511627776 raw 1 1", "chunk"},
      {"choice network allreduce bf16 2 1 ring 0 auto 1 1", "name of a codec"},
      {"choice network allreduce bf16 2 1 ring 0 zip 1 1", "name of a codec"},
      {"choice network allreduce bf16 2 1 ring 0 raw 2 1", "split-send '2'"},
      {"choice network allreduce bf16 2 1 ring 0 raw 1 nan", "time 'nan'"},
      {"choice network allreduce bf16 2 1 ring 0 raw 1 inf", "time 'inf'"},
      {"choice network allreduce bf16 2 1 ring 0 raw 1 -1", "time '-1'"},
      {"link network latency 0 bandwidth 1e9", "latency '0'"},
      {"link network latency 1e-6 bandwidth nan", "bandwidth 'nan'"},
      {"link network", "not of the form"},
      {"codec lev bf16 encode 1 decode 1e9 ratio 1", "speed '1'"},
      {"codec lev bf16 encode 1e9 decode 1e9 ratio 3", "ratio '3'"},
      {"codec lev", "not of the form"},
      {"\x01\x02", "word '\?\?'"},
  };
  for (const Wrong& wrong : lines) {
    const auto parsed = TuningTable::parse(std::string("uzipcoll-tuning 1\n\n") + wrong.line + "\n");
    ASSERT_FALSE(parsed.ok()) << wrong.line;
    EXPECT_EQ(parsed.status().code(), UZIP_ERR_CONFIG);
    EXPECT_NE(parsed.status().message().find("line 3: "), std::string::npos) << parsed.status().message();
    EXPECT_NE(parsed.status().message().find(wrong.said), std::string::npos) << parsed.status().message();
    EXPECT_LT(parsed.status().message().size(), 250u);
  }
}

TEST(TuningTable, RefusesOtherFiles) {
  for (const std::string& text : {std::string(), std::string("\n"), std::string("uzipcoll-tuning 2\n"),
                                 std::string(1000000, 'x'), std::string(1000, '\0'), std::string("\x7f" "ELF")})
    EXPECT_FALSE(TuningTable::parse(text).ok());
  std::string many = "uzipcoll-tuning 1\n";
  for (int i = 0; i < 30000; ++i) many += "#\n";
  EXPECT_FALSE(TuningTable::parse(many).ok());
  const std::string twice = std::string(kText) + "choice network allreduce bf16 2 4096 ring 0 raw 1 5e-05\n";
  const auto parsed = TuningTable::parse(twice);
  ASSERT_FALSE(parsed.ok());
  EXPECT_NE(parsed.status().message().find("two choices"), std::string::npos);
}

TEST(TuningTable, TakesAnyBytes) {
  std::mt19937 random(1);
  const std::string good = kText;
  int accepted = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    std::string text = good;
    for (uint32_t edits = 1 + random() % 4; edits > 0; --edits) {
      const size_t at = random() % text.size();
      switch (random() % 4) {
        case 0: text[at] = static_cast<char>(random()); break;
        case 1: text.erase(at, random() % 8); break;
        case 2: text.insert(at, text.substr(random() % text.size(), random() % 30)); break;
        default: text[at] = good[random() % good.size()]; break;
      }
    }
    const auto parsed = TuningTable::parse(text);
    if (!parsed.ok()) continue;
    ++accepted;
    const auto again = TuningTable::parse(parsed->print());
    ASSERT_TRUE(again.ok()) << again.status().message() << "\n" << text;
    EXPECT_EQ(again->digest(), parsed->digest());
  }
  EXPECT_GT(accepted, 100);
}

}  // namespace
}  // namespace uzip
