// Data that don't compress are not copied once more: their frames go straight to where the elements belong, whole or in
// two parts, and with a checksum are still compared with it.
#include "comm/loopback_job.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace uzip {
namespace {

constexpr size_t kCount = 40000;  // fp32 of each rank: three pieces

struct Taken {
  size_t at_their_place = 0;
  size_t elsewhere = 0;
};

/// An all-gather of random bits, coded; where the bodies of a piece's size were taken to.
Taken gather_random(int split, bool checksum) {
  constexpr size_t kRanks = 3;
  std::mt19937_64 random(7);
  std::vector<std::vector<uint32_t>> in(kRanks, std::vector<uint32_t>(kCount)), out(kRanks);
  for (auto& values : in)
    for (uint32_t& value : values) value = static_cast<uint32_t>(random());
  for (auto& values : out) values.resize(kRanks * kCount);
  Taken taken;
  Meddling meddling;
  meddling.taken = [&](std::span<std::byte> dst) {
    if (dst.size() < 1000) return;
    bool found = false;
    for (auto& values : out) {
      const auto* begin = reinterpret_cast<std::byte*>(values.data());
      found |= dst.data() >= begin && dst.data() < begin + values.size() * sizeof(uint32_t);
    }
    ++(found ? taken.at_their_place : taken.elsewhere);
  };
  Config config;
  config.checksum = checksum;
  LoopbackOptions wire;
  wire.seed = 3;
  wire.longest_delay = 5;
  wire.reorder_senders = wire.reorder_messages = true;
  LoopbackJob job(kRanks, wire, config, meddling);
  uzip_options_t options = UZIP_OPTIONS_INIT;
  options.codec = "lev";
  options.algorithm = "two_shot";
  options.chunk_bytes = 64 << 10;
  options.split_send = split;
  const auto statuses = job.run([&](int r) {
    const auto rank = static_cast<size_t>(r);
    uzip_coll_args_t call = make_call(UZIP_ALLGATHER, in[rank].data(), out[rank].data(), kCount);
    call.options = &options;
    return call;
  });
  EXPECT_EQ(expect_all(statuses, UZIP_OK), "");
  for (const auto& values : out)
    for (size_t rank = 0; rank < kRanks; ++rank)
      EXPECT_EQ(std::memcmp(values.data() + rank * kCount, in[rank].data(), kCount * sizeof(uint32_t)), 0);
  return taken;
}

TEST(RawFrames, GoStraightToTheirPlace) {
  for (int split : {0, 1})
    for (bool checksum : {false, true}) {
      const Taken taken = gather_random(split, checksum);
      EXPECT_EQ(taken.elsewhere, 0u) << split << checksum;
      EXPECT_EQ(taken.at_their_place, 3u * 2 * 3) << split << checksum;
    }
}

/// Damage of such a frame on its way is found as that of any other.
TEST(RawFrames, AreComparedWithTheirChecksum) {
  const QuietLog quiet;
  std::vector<uint32_t> in(kCount), out(2 * kCount);
  std::mt19937_64 random(8);
  for (uint32_t& value : in) value = static_cast<uint32_t>(random());
  Meddling meddling;
  meddling.alter = [](Incoming& incoming) {
    if (incoming.body && incoming.body_bytes > 1000) const_cast<std::byte*>(incoming.body)[500] ^= std::byte{1};
  };
  Config config;
  config.checksum = true;
  LoopbackJob job(2, {}, config, meddling);
  uzip_options_t options = UZIP_OPTIONS_INIT;
  options.codec = "lev";
  std::vector<std::vector<uint32_t>> results(2, out);
  const auto statuses = job.run([&](int r) {
    uzip_coll_args_t call = make_call(UZIP_ALLGATHER, in.data(), results[static_cast<size_t>(r)].data(), kCount);
    call.options = &options;
    return call;
  });
  EXPECT_EQ(expect_all(statuses, UZIP_ERR_CORRUPT, "checksum"), "");
}

}  // namespace
}  // namespace uzip
