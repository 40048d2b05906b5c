// Which copies may be made while the same elements are sent, and that each is made once: by the transport or by its step.
#include "comm/copied_bodies.hpp"

#include "algos/algorithm.hpp"
#include "algos/passes.hpp"
#include "algos/schedule_builder.hpp"
#include "codec/codec.hpp"
#include "comm/loopback_job.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

namespace uzip {
namespace {

using Numbers = std::vector<uint32_t>;

Shape gather_shape(int size, bool in_place = false) {
  Shape shape;
  shape.coll = Coll::kAllgather;
  shape.size = size;
  shape.in_place = in_place;
  shape.counts.assign(static_cast<size_t>(size), 8);
  return shape;
}

TEST(CopiedBodies, AreARanksOwnOnesInAnAllgather) {
  for (const char* name : {"two_shot", "ring"}) {
    const Schedule schedule = find_algorithm(Coll::kAllgather, name)->build(gather_shape(4), 2);
    const Numbers copies = find_copies_of_bodies(schedule);
    ASSERT_EQ(copies.size(), schedule.steps.size()) << name;
    for (size_t i = 0; i < copies.size(); ++i) {
      const Step& step = schedule.steps[i];
      const bool own = step.verb == Verb::kSend && step.src.slot == Slot::kInput;
      ASSERT_EQ(copies[i] != kNoCopy, own) << name << ", step " << i;
      if (!own) continue;
      EXPECT_EQ(schedule.steps[copies[i]].verb, Verb::kCopy);
      EXPECT_EQ(schedule.steps[copies[i]].src, step.src);
    }
  }
}

TEST(CopiedBodies, NotWhereNothingIsCopiedOrOtherElementsAre) {
  const Algorithm* const two_shot = find_algorithm(Coll::kAllgather, "two_shot");
  EXPECT_EQ(find_copies_of_bodies(two_shot->build(gather_shape(3, true), 0)), Numbers()) << "in place";
  const Schedule raw = two_shot->build(gather_shape(3), 0);
  EXPECT_EQ(find_copies_of_bodies(lower_codec(raw, gather_shape(3), 0, false)), Numbers()) << "frames";
  const Shape blocks = {.coll = Coll::kAlltoall, .size = 3, .counts = {8, 8, 8}};
  EXPECT_EQ(find_copies_of_bodies(find_algorithm(Coll::kAlltoall, "pairwise")->build(blocks, 1)), Numbers());
  ScheduleBuilder builder(gather_shape(2), 0);
  const Slice mine = builder.input_block(0);
  builder.send({mine.slot, mine.offset, mine.length - 1}, 1);
  builder.copy(mine, builder.output_block(0));
  EXPECT_EQ(find_copies_of_bodies(builder.finish()), Numbers()) << "a part of it";
}

/// When the transport makes the second copy, and whether it writes something else there.
enum class Maker { kNever, kAlways, kMarked, kInTurns };

struct Gathered {
  size_t wanted = 0, made = 0;
  size_t own = 0, marked = 0, wrong = 0;  ///< blocks of the results
};

constexpr size_t kCount = 25000, kRanks = 3, kRounds = 5;
constexpr uint32_t kMark = 0x5a5a5a5a;

/// An all-gather in several rounds of long steps (short ones run in program order, a ring's copy first), whose transport makes the second copies so, or writes something else there.
Gathered gather(Maker how, const char* algorithm, bool in_place, bool checksum, const char* codec = "raw") {
  std::vector<std::vector<uint32_t>> in(kRanks, std::vector<uint32_t>(kCount)), out(kRanks);
  for (size_t r = 0; r < kRanks; ++r) {
    std::iota(in[r].begin(), in[r].end(), static_cast<uint32_t>(r * 1000000));
    out[r].assign(kRanks * kCount, 7);
    if (in_place) std::copy(in[r].begin(), in[r].end(), out[r].begin() + static_cast<ptrdiff_t>(r * kCount));
  }
  Gathered result;
  Meddling meddling;
  meddling.second = [&](std::span<const std::byte> body, SecondCopy& second) {
    ++result.wanted;
    if (how == Maker::kNever || (how == Maker::kInTurns && result.wanted % 2 == 0)) return;
    ++result.made;
    second.made = true;
    how == Maker::kMarked ? std::memset(second.to, 0x5a, body.size())
                                 : std::memcpy(second.to, body.data(), body.size());
  };
  Config config;
  config.checksum = checksum;
  LoopbackOptions wire;
  wire.seed = 11;
  wire.longest_delay = 4;
  wire.reorder_senders = true;
  LoopbackJob job(kRanks, wire, config, meddling);
  uzip_options_t options = UZIP_OPTIONS_INIT;
  options.codec = codec;
  options.algorithm = algorithm;
  options.chunk_bytes = kCount * sizeof(uint32_t) / kRounds;
  const auto statuses = job.run([&](int r) {
    const auto rank = static_cast<size_t>(r);
    const void* const src = in_place ? static_cast<const void*>(out[rank].data() + rank * kCount) : in[rank].data();
    uzip_coll_args_t call = make_call(UZIP_ALLGATHER, src, out[rank].data(), kCount);
    call.options = &options;
    return call;
  });
  EXPECT_EQ(expect_all(statuses, UZIP_OK), "");
  for (size_t r = 0; r < kRanks; ++r)
    for (size_t from = 0; from < kRanks; ++from) {
      const auto* const block = out[r].data() + from * kCount;
      const bool marked = std::all_of(block, block + kCount, [](uint32_t value) { return value == kMark; });
      const bool same = std::equal(block, block + kCount, in[from].data());
      ++(same ? result.own : marked && from == r ? result.marked : result.wrong);
    }
  return result;
}

TEST(CopiedBodies, AreCopiedByTheTransportOrByTheirStep) {
  for (const char* algorithm : {"two_shot", "ring"})
    for (bool checksum : {false, true}) {
      for (const auto how : {Maker::kNever, Maker::kAlways, Maker::kInTurns}) {
        const Gathered result = gather(how, algorithm, false, checksum);
        EXPECT_EQ(result.own, kRanks * kRanks) << algorithm << checksum;
        EXPECT_GT(result.wanted, 0u);
        EXPECT_EQ(result.made > 0, how != Maker::kNever);
      }
      const Gathered once = gather(Maker::kMarked, algorithm, false, checksum);
      EXPECT_EQ(once.wanted, once.made);
      EXPECT_EQ(once.made, kRanks * kRounds) << "one for each round of each rank, whatever the number of receivers";
      EXPECT_EQ(once.marked, kRanks) << "what the transport wrote stays";
      EXPECT_EQ(once.own, kRanks * (kRanks - 1));
    }
}

TEST(CopiedBodies, AreNotWantedInPlaceOrFromFrames) {
  EXPECT_EQ(gather(Maker::kMarked, "two_shot", true, false).wanted, 0u);
  const Gathered coded = gather(Maker::kMarked, "two_shot", false, false, "lev");
  EXPECT_EQ(coded.marked + coded.wrong, 0u);
}

}  // namespace
}  // namespace uzip
