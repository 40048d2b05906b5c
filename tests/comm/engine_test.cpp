// The engine's settings, numbers of communicators and requests.
#include "comm/engine.hpp"

#include "algos/algorithm.hpp"
#include "comm/loopback_job.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace uzip {
namespace {

Result<std::shared_ptr<Engine>> engine_with(const Config& config) {
  LoopbackFabric fabric(1);
  return Engine::create(config, fabric.connect(0));
}

const Algorithm* default_of(const Config& config, Coll coll) {
  const auto engine = engine_with(config);
  EXPECT_TRUE(engine.ok());
  return (*engine)->default_options()[static_cast<int>(coll)].algorithm;
}

TEST(EngineSettings, Algorithm) {
  Config config;
  EXPECT_EQ(default_of(config, Coll::kAllreduce), nullptr);
  config.algorithm = "ring";
  EXPECT_EQ(default_of(config, Coll::kAllreduce), find_algorithm(Coll::kAllreduce, "ring"));
  EXPECT_EQ(default_of(config, Coll::kAllgather), find_algorithm(Coll::kAllgather, "ring"));
  EXPECT_EQ(default_of(config, Coll::kBarrier), nullptr);
  config.algorithm = "allreduce:two_shot,allgather:bruck,reduce_scatter:auto";
  EXPECT_EQ(default_of(config, Coll::kAllreduce), find_algorithm(Coll::kAllreduce, "two_shot"));
  EXPECT_EQ(default_of(config, Coll::kAllgather), find_algorithm(Coll::kAllgather, "bruck"));
  EXPECT_EQ(default_of(config, Coll::kReduceScatter), nullptr);
  for (const char* wrong :
       {"rign", "allreduce:rign", "allredcue:ring", "allredcue:auto", ",", "ring,",
        "allreduce:", ":ring", "allreduce:ring,,", "allgather:one_shot"}) {
    config.algorithm = wrong;
    const auto engine = engine_with(config);
    if (std::strcmp(wrong, "ring,") == 0) continue;  // nothing behind the comma
    ASSERT_FALSE(engine.ok()) << wrong;
    EXPECT_EQ(engine.status().code(), UZIP_ERR_CONFIG);
    EXPECT_NE(engine.status().message().find("UZIP_ALGORITHM"), std::string::npos);
  }
}

TEST(EngineSettings, Codec) {
  Config config;
  config.codec = "lev:smallest";
  const auto engine = engine_with(config);
  ASSERT_TRUE(engine.ok());
  const CodecChoice& choice = (*engine)->default_options()[0].codec;
  EXPECT_EQ(choice.codec, find_codec("lev"));
  EXPECT_EQ(choice.level, CodecLevel::kSmallest);
  for (const char* wrong : {"zip", "lev:", "lev:hardest", "", ":fastest", "auto:fastest"}) {
    config.codec = wrong;
    const auto refused = engine_with(config);
    ASSERT_FALSE(refused.ok()) << wrong;
    EXPECT_EQ(refused.status().code(), UZIP_ERR_CONFIG);
    EXPECT_NE(refused.status().message().find("UZIP_CODEC"), std::string::npos);
  }
}

TEST(EngineNumbers, AreNotUsedTwiceAtATime) {
  const auto engine = *engine_with(Config());
  std::set<uint32_t> live;
  std::vector<uint32_t> order;
  for (int k = 0; k < 2000; ++k) {
    if (k % 3 == 2) {
      const size_t which = static_cast<size_t>(k * 7919) % order.size();
      live.erase(order[which]);
      engine->free_number(order[which]);
      order.erase(order.begin() + static_cast<ptrdiff_t>(which));
    } else {
      const uint32_t number = engine->reserve_number();
      EXPECT_TRUE(live.insert(number).second);
      order.push_back(number);
    }
  }
}

TEST(EngineRequests, AreUsedAgain) {
  LoopbackJob job(1);
  Engine& engine = job.engine(0);
  Request* first = engine.acquire();
  Request* second = engine.acquire();
  EXPECT_NE(first, second);
  engine.release(first);
  EXPECT_EQ(engine.acquire(), first);
  engine.release(second);
  engine.release(first);
}

// Bytes of other ranks are shown to people: no escapes, no ends of lines.
TEST(EngineControl, TextsAreMadePrintable) {
  const QuietLog quiet;
  LoopbackOptions wire;
  wire.tamper = [](int, int, std::vector<std::byte>& head, std::vector<std::byte>& body) {
    MessageHead read;
    std::memcpy(&read, head.data(), sizeof read);
    if (MessageIndex::unpack(read.envelope.index).kind != MessageKind::kControl) return;
    for (size_t i = 0; i < body.size(); i += 2) body[i] = static_cast<std::byte>(i * 5);
  };
  LoopbackJob job(2, wire);
  std::vector<float> in(3000, 1), out(6000);
  const auto statuses = job.run([&](int rank) {
    return make_call(UZIP_ALLREDUCE, in.data(), out.data() + 3000 * rank,
                     static_cast<size_t>(3000 - rank));
  });
  for (const Status& status : statuses) {
    EXPECT_EQ(status.code(), UZIP_ERR_MISMATCH);
    for (const char c : status.message()) EXPECT_TRUE(c >= 0x20 && c < 0x7f);
  }
}

// Sends that have not ended when everything ends.
TEST(EngineControl, TextsOnTheirWayEndWithTheEngine) {
  const QuietLog quiet;
  LoopbackOptions wire;
  wire.eager_limit = 0;  // sends end when they are received
  LoopbackJob job(3, wire);
  std::vector<float> in(10, 1), out(10);
  Request* request = *job.start(0, make_call(UZIP_ALLREDUCE, in.data(), out.data(), 10));
  request->fail(error(UZIP_ERR_INTERNAL, "a text for all"));
}

}  // namespace
}  // namespace uzip
