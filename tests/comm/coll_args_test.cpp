// Validation of calls: what is refused, with which words, and how in-place forms are understood.
#include "comm/coll_args.hpp"

#include "algos/algorithm.hpp"
#include "comm/struct_size.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace uzip {
namespace {

constexpr int kRanks = 4, kRank = 2;

const CallContext kContext = [] {
  static const CallOptions kDefaults[kCollCount];
  return CallContext{kRank, kRanks, kDefaults};
}();

class CollArgsTest : public testing::Test {
 protected:
  uzip_coll_args_t call_ = {sizeof(uzip_coll_args_t),
                            UZIP_ALLREDUCE,
                            memory_,
                            memory_ + 1000,
                            10,
                            nullptr,
                            UZIP_FP32,
                            UZIP_SUM,
                            nullptr,
                            nullptr,
                            0,
                            nullptr,
                            nullptr,
                            nullptr,
                            nullptr};

  Result<CollArgs> validate() { return validate_collective(call_, kContext); }
  void expect_refused(const char* said, StatusCode code = UZIP_ERR_INVALID) {
    const Result<CollArgs> args = validate();
    ASSERT_FALSE(args.ok()) << said;
    EXPECT_EQ(args.status().code(), code);
    EXPECT_NE(args.status().message().find(said), std::string::npos) << args.status().message();
  }

  float memory_[4000] = {};
};

TEST_F(CollArgsTest, RefusesWhatIsUnknown) {
  call_.struct_size = 0;
  expect_refused("struct_size is 0");
  call_.struct_size = sizeof call_;
  call_.coll = static_cast<uzip_coll_t>(16);
  expect_refused("collective 16");
  call_.coll = static_cast<uzip_coll_t>(-1);
  expect_refused("collective -1");
  call_.coll = UZIP_ALLREDUCE;
  call_.dtype = static_cast<uzip_dtype_t>(12);
  expect_refused("data type 12");
  call_.dtype = static_cast<uzip_dtype_t>(-3);
  expect_refused("data type -3");
  call_.dtype = UZIP_FP32;
  call_.op = static_cast<uzip_op_t>(5);
  expect_refused("reduction 5");
  call_.op = UZIP_AVG;
  EXPECT_TRUE(validate().ok());
}

TEST_F(CollArgsTest, IgnoresWhatIsNotUsed) {
  call_.op = static_cast<uzip_op_t>(77);
  call_.coll = UZIP_ALLGATHER;
  EXPECT_TRUE(validate().ok());
  call_.coll = UZIP_BARRIER;
  call_.dtype = static_cast<uzip_dtype_t>(77);
  call_.src = call_.dst = nullptr;
  call_.count = SIZE_MAX;
  EXPECT_TRUE(validate().ok());
  EXPECT_EQ(validate()->count, 0u);
}

TEST_F(CollArgsTest, RefusesCountsThatOverflow) {
  for (uzip_coll_t coll : {UZIP_ALLREDUCE, UZIP_REDUCE_SCATTER, UZIP_ALLGATHER}) {
    call_.coll = coll;
    for (size_t count : {SIZE_MAX, SIZE_MAX / 4 + 1, size_t{1} << 62, size_t(-1000)}) {
      call_.count = count;
      expect_refused("more than memory can hold");
    }
  }
  // Only together with the number of ranks.
  call_.coll = UZIP_ALLGATHER;
  call_.count = (size_t{1} << 61) / 4 + 1;
  expect_refused("for 4 rank(s)");
  size_t counts[kRanks] = {SIZE_MAX / 2, SIZE_MAX / 2, 2, 0};
  call_.counts = counts;
  for (uzip_coll_t coll : {UZIP_ALLGATHERV, UZIP_REDUCE_SCATTERV}) {
    call_.coll = coll;
    expect_refused("add up to more");
  }
  counts[0] = counts[1] = size_t{1} << 60;
  expect_refused("more than memory can hold");
}

TEST_F(CollArgsTest, NeedsBuffersForElements) {
  call_.src = nullptr;
  expect_refused("src is NULL but 40 bytes");
  call_.src = memory_;
  call_.dst = nullptr;
  expect_refused("dst is NULL");
  call_.dst = UZIP_IN_PLACE;
  expect_refused("dst is UZIP_IN_PLACE");
  call_.coll = UZIP_ALLGATHERV;
  call_.dst = memory_ + 1000;
  expect_refused("counts is NULL");
  // A rank that has nothing needs no source, but room for the others'.
  const size_t counts[kRanks] = {5, 5, 0, 5};
  call_.counts = counts;
  call_.src = nullptr;
  EXPECT_TRUE(validate().ok());
  call_.dst = nullptr;
  expect_refused("dst is NULL but 60 bytes");
}

TEST_F(CollArgsTest, RefusesOverlaps) {
  call_.dst = memory_ + 9;
  call_.src = memory_;
  expect_refused("overlap");
  call_.src = memory_ + 18;
  expect_refused("overlap");
  call_.src = memory_ + 19;
  EXPECT_TRUE(validate().ok());  // one after the other
  call_.coll = UZIP_ALLGATHER;
  call_.dst = memory_;
  for (int block = 0; block < kRanks; ++block) {
    call_.src = memory_ + 10 * block;
    if (block == kRank) {
      EXPECT_TRUE(validate()->in_place);
    } else {
      expect_refused("overlap");
    }
  }
  call_.src = memory_ + 21;
  expect_refused("overlap");
  call_.src = memory_ + 40;
  EXPECT_FALSE(validate()->in_place);
  call_.coll = UZIP_REDUCE_SCATTER;
  call_.src = memory_;
  for (int block = 1; block < kRanks; ++block) {
    call_.dst = memory_ + 10 * block;
    if (block == kRank) {
      EXPECT_TRUE(validate()->in_place);
      EXPECT_FALSE(validate()->result_moves);
    } else {
      expect_refused("overlap");
    }
  }
}

TEST_F(CollArgsTest, UnderstandsInPlaceForms) {
  const auto* memory = reinterpret_cast<const std::byte*>(memory_);
  call_.src = UZIP_IN_PLACE;
  call_.dst = memory_;
  EXPECT_TRUE(validate()->in_place);
  EXPECT_EQ(validate()->src, memory);
  call_.src = memory_;
  EXPECT_TRUE(validate()->in_place);
  // As in MPI: all inputs in dst, the result goes to its front.
  call_.coll = UZIP_REDUCE_SCATTER;
  call_.src = UZIP_IN_PLACE;
  EXPECT_TRUE(validate()->in_place);
  EXPECT_TRUE(validate()->result_moves);
  EXPECT_EQ(validate()->src, memory);
  EXPECT_EQ(validate()->dst, memory + 2 * 10 * sizeof(float));
  call_.coll = UZIP_ALLGATHER;
  EXPECT_EQ(validate()->src, memory + 2 * 10 * sizeof(float));
  const size_t counts[kRanks] = {1, 2, 3, 4};
  call_.counts = counts;
  call_.coll = UZIP_ALLGATHERV;
  EXPECT_EQ(validate()->src, memory + 3 * sizeof(float));
  EXPECT_EQ(validate()->count, 10u);
  call_.coll = UZIP_REDUCE_SCATTERV;
  EXPECT_EQ(validate()->dst, memory + 3 * sizeof(float));
}

TEST_F(CollArgsTest, RootedCallsLookAtTheRootsBuffersThereOnly) {
  call_.coll = UZIP_REDUCE;
  for (int root : {-1, kRanks, 1 << 30}) {
    call_.root = root;
    expect_refused("root");
  }
  call_.root = kRank - 1;
  call_.dst = nullptr;
  EXPECT_TRUE(validate().ok());
  call_.src = UZIP_IN_PLACE;
  expect_refused("src is UZIP_IN_PLACE");
  call_.coll = UZIP_BCAST;
  expect_refused("dst is NULL");
  call_.src = nullptr;
  call_.dst = memory_;
  EXPECT_EQ(validate()->src, nullptr);
  call_.coll = UZIP_SCATTER;
  EXPECT_TRUE(validate().ok());
  call_.coll = UZIP_GATHER;
  expect_refused("src is NULL");

  call_.root = kRank;
  call_.coll = UZIP_BCAST;
  expect_refused("src is NULL");
  call_.src = memory_;
  EXPECT_TRUE(validate()->in_place);
  call_.coll = UZIP_GATHER;
  call_.src = memory_ + 10 * kRank;
  EXPECT_TRUE(validate()->in_place);
  call_.src = memory_;
  expect_refused("overlap");
  call_.coll = UZIP_SCATTER;
  call_.dst = UZIP_IN_PLACE;
  EXPECT_TRUE(validate()->in_place);
  EXPECT_FALSE(validate()->result_moves);
  call_.dst = memory_ + 10 * kRank;
  EXPECT_TRUE(validate()->in_place);
  call_.dst = memory_;
  expect_refused("overlap");
}

TEST_F(CollArgsTest, PrefixesHaveNoAverage) {
  for (uzip_coll_t coll : {UZIP_SCAN, UZIP_EXSCAN}) {
    call_.coll = coll;
    call_.op = UZIP_MAX;
    EXPECT_TRUE(validate().ok());
    call_.op = UZIP_AVG;
    expect_refused("avg is not defined");
  }
}

TEST_F(CollArgsTest, PairwiseCallsKnowTheirOwnCounts) {
  size_t counts[kRanks] = {1, 2, 3, 4}, displs[kRanks] = {100, 200, 300, 400};
  call_.coll = UZIP_GATHERV;
  call_.count = 3;
  call_.root = 0;
  EXPECT_TRUE(validate().ok());  // elsewhere nothing is known of the other counts
  call_.root = kRank;
  expect_refused("counts is NULL");
  call_.counts = counts;
  call_.displs = displs;
  EXPECT_EQ(validate()->pairs->received.begins[3], 400u);
  EXPECT_EQ(validate()->pairs->sent.counts[kRank], 3u);
  call_.count = 4;
  expect_refused("sends itself 4 elements and receives 3");
  call_.src = UZIP_IN_PLACE;
  EXPECT_EQ(validate()->pairs->received.counts[kRank], 0u);  // it is there already
  displs[1] = SIZE_MAX - 1;
  expect_refused("rank 1");
  displs[1] = SIZE_MAX / 8;
  expect_refused("beyond what memory can hold");

  call_.coll = UZIP_ALLTOALLV;
  call_.src = memory_;
  call_.displs = nullptr;
  expect_refused("src_counts is NULL");
  const size_t sent[kRanks] = {0, 0, 3, 9};
  call_.src_counts = sent;
  EXPECT_EQ(validate()->pairs->sent.begins[3], 3u);
  EXPECT_EQ(validate()->count, 12u);
  call_.dst = memory_ + 11;
  expect_refused("overlap");
  call_.dst = UZIP_IN_PLACE;
  expect_refused("dst is UZIP_IN_PLACE");
  call_.src = UZIP_IN_PLACE;
  call_.dst = memory_;
  call_.src_counts = nullptr;
  EXPECT_TRUE(validate()->in_place);
}

TEST_F(CollArgsTest, Options) {
  uzip_options_t options = UZIP_OPTIONS_INIT;
  call_.options = &options;
  EXPECT_TRUE(validate().ok());
  options.algorithm = "auto";
  options.codec = "auto";
  EXPECT_EQ(validate()->options.algorithm, nullptr);
  options.algorithm = "ring";
  options.codec = "lev:smallest";
  options.chunk_bytes = 123;
  options.split_send = 1;
  EXPECT_EQ(validate()->options.algorithm, find_algorithm(Coll::kAllreduce, "ring"));
  EXPECT_EQ(validate()->options.codec.level, CodecLevel::kSmallest);
  EXPECT_EQ(validate()->options.chunk_bytes, 123u);
  EXPECT_EQ(validate()->options.split_send, 1);
  for (const char* wrong : {"", "rign", "RING", "one_shot ", "bruck"}) {
    options.algorithm = wrong;
    expect_refused("there is no algorithm");
  }
  options.algorithm = nullptr;
  for (const char* wrong : {"", "zip", "lev:", "lev:best", "raw:fastest:fastest", ":balanced"}) {
    options.codec = wrong;
    expect_refused("there is no codec");
  }
  options.codec = nullptr;
  for (int wrong : {-2, 2, 1000}) {
    options.split_send = wrong;
    expect_refused("split_send");
  }
  options.split_send = -1;
  options.struct_size = 1;
  expect_refused("uzip_options_t.struct_size");
}

/// A struct as another header has it: with something behind it.
template <class T>
struct Longer {
  T known;
  unsigned char more[16] = {};
};

TEST_F(CollArgsTest, StructsOfOtherHeaders) {
  // Older: without what was added later, whatever lies behind it.
  const size_t first = offsetof(uzip_coll_args_t, root);
  call_.struct_size = first;
  call_.neighbors = reinterpret_cast<const uzip_neighbors_t*>(this);
  const Result<CollArgs> older = validate();
  ASSERT_TRUE(older.ok()) << older.status().message();
  EXPECT_EQ(older->neighbors, nullptr);
  EXPECT_EQ(older->count, 10u);
  call_.coll = UZIP_NEIGHBOR_ALLTOALLV;
  expect_refused("neighbors is NULL");
  for (size_t wrong : {first - 8, first + 1, first - 1, size_t{8}, SIZE_MAX}) {
    call_.struct_size = wrong;
    expect_refused("uzip_coll_args_t.struct_size is ");
  }
  call_.coll = UZIP_ALLREDUCE;
  call_.neighbors = nullptr;

  // Newer: all that we don't know is zero.
  Longer<uzip_coll_args_t> newer{call_};
  newer.known.struct_size = sizeof newer;
  EXPECT_TRUE(validate_collective(newer.known, kContext).ok());
  newer.more[15] = 1;
  const Result<CollArgs> unknown = validate_collective(newer.known, kContext);
  EXPECT_EQ(unknown.status().code(), UZIP_ERR_UNSUPPORTED) << unknown.status().message();

  Longer<uzip_options_t> options{UZIP_OPTIONS_INIT};
  options.known.struct_size = sizeof options;
  options.known.chunk_bytes = 4096;
  call_.struct_size = sizeof call_;
  call_.options = &options.known;
  const Result<CollArgs> with_options = validate();
  ASSERT_TRUE(with_options.ok()) << with_options.status().message();
  EXPECT_EQ(with_options->options.chunk_bytes, 4096u);
  options.more[0] = 1;
  expect_refused("something is set", UZIP_ERR_UNSUPPORTED);
}

TEST(StructSize, FilledInAsFarAsItGoes) {
  Longer<uzip_coll_info_t> info{};
  std::memset(info.more, 7, sizeof info.more);
  info.known.struct_size = sizeof info;
  ASSERT_TRUE(check_written_struct(info.known, "x", kFirstCollInfoBytes).ok());
  write_struct(uzip_coll_info_t{0, "ring", "lev", 1, 2, 3}, &info.known);
  EXPECT_EQ(info.known.struct_size, sizeof info);
  EXPECT_EQ(info.known.wire_bytes, 3u);
  for (unsigned char byte : info.more) EXPECT_EQ(byte, 0);
  info.known.struct_size = offsetof(uzip_coll_info_t, wire_bytes);
  EXPECT_FALSE(check_written_struct(info.known, "x", kFirstCollInfoBytes).ok());
  write_struct(uzip_coll_info_t{0, "ring", "lev", 1, 2, 4}, &info.known);
  EXPECT_EQ(info.known.wire_bytes, 3u);  // as of a program that has no such member
}

TEST_F(CollArgsTest, SettingsAreOverruledByOptions) {
  CallOptions defaults[kCollCount];
  defaults[static_cast<int>(Coll::kAllreduce)].chunk_bytes = 7;
  defaults[static_cast<int>(Coll::kAllreduce)].codec.codec = find_codec("lev");
  const CallContext context = {kRank, kRanks, defaults};
  EXPECT_EQ(validate_collective(call_, context)->options.chunk_bytes, 7u);
  uzip_options_t options = UZIP_OPTIONS_INIT;
  options.codec = "raw";
  call_.options = &options;
  EXPECT_EQ(validate_collective(call_, context)->options.chunk_bytes, 7u);
  EXPECT_EQ(validate_collective(call_, context)->options.codec.codec, find_codec("raw"));
  call_.coll = UZIP_ALLGATHER;
  EXPECT_EQ(validate_collective(call_, context)->options.chunk_bytes, 0u);
}

TEST_F(CollArgsTest, PointToPoint) {
  const auto send = [&](int peer, int tag, size_t count = 10, uzip_dtype_t type = UZIP_FP32) {
    CollArgs args;
    return validate_send(memory_, count, type, peer, tag, nullptr, kContext, args);
  };
  const auto receive = [&](void* dst, size_t count) {
    CollArgs args;
    return validate_recv(dst, count, UZIP_FP32, 0, 0, nullptr, kContext, args);
  };
  EXPECT_TRUE(send(0, 0).ok());
  EXPECT_TRUE(send(kRank, UZIP_TAG_MAX).ok());
  EXPECT_NE(send(kRanks, 0).message().find("rank 4 does not exist"), std::string::npos);
  EXPECT_NE(send(-1, 0).message().find("rank -1"), std::string::npos);
  EXPECT_NE(send(0, -1).message().find("tag -1"), std::string::npos);
  EXPECT_FALSE(send(0, UZIP_TAG_MAX + 1).ok());
  EXPECT_NE(send(0, 0, SIZE_MAX).message().find("memory"), std::string::npos);
  EXPECT_FALSE(receive(nullptr, 1).ok());
  EXPECT_FALSE(receive(UZIP_IN_PLACE, 1).ok());
  EXPECT_TRUE(receive(nullptr, 0).ok());
  EXPECT_FALSE(send(0, 0, 1, static_cast<uzip_dtype_t>(50)).ok());
}

}  // namespace
}  // namespace uzip
