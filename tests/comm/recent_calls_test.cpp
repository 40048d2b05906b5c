// Small calls that are made again and again: with other buffers, in place and not, and wrong ones in between, which must
// be found although the same call was right before.
#include "comm/api_job.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace uzip {
namespace {

constexpr size_t kCount = 5;

TEST(RecentCalls, RepeatedWithOtherBuffersAndWrongOnes) {
  ApiJob job(3);
  job.run([](int rank, uzip_comm_t comm) {
    for (int i = 0; i < 6; ++i) {
      std::vector<int> mine(kCount * 3), sum(kCount), all(kCount * 3), share(kCount);
      for (size_t k = 0; k < mine.size(); ++k) mine[k] = rank * 100 + static_cast<int>(k) + i;
      ASSERT_TRUE(succeeds(uzip_allreduce(mine.data(), sum.data(), kCount, UZIP_INT32, UZIP_SUM, comm)));
      ASSERT_TRUE(succeeds(uzip_allgather(mine.data(), all.data(), kCount, UZIP_INT32, comm)));
      ASSERT_TRUE(succeeds(uzip_reduce_scatter(mine.data(), share.data(), kCount, UZIP_INT32, UZIP_MAX, comm)));
      for (size_t k = 0; k < kCount; ++k) {
        EXPECT_EQ(sum[k], 300 + 3 * (static_cast<int>(k) + i));
        EXPECT_EQ(share[k], 200 + static_cast<int>(k + static_cast<size_t>(rank) * kCount) + i);
        for (size_t r = 0; r < 3; ++r)
          EXPECT_EQ(all[r * kCount + k], static_cast<int>(r) * 100 + static_cast<int>(k) + i);
      }
      EXPECT_TRUE(fails(uzip_allreduce(mine.data(), nullptr, kCount, UZIP_INT32, UZIP_SUM, comm), UZIP_ERR_INVALID, "dst"));
      EXPECT_TRUE(fails(uzip_allreduce(nullptr, sum.data(), kCount, UZIP_INT32, UZIP_SUM, comm), UZIP_ERR_INVALID, "src"));
      EXPECT_TRUE(fails(uzip_allreduce(mine.data(), mine.data() + 1, kCount, UZIP_INT32, UZIP_SUM, comm),
                        UZIP_ERR_INVALID, "overlap"));
      EXPECT_TRUE(fails(uzip_allgather(all.data() + 1, all.data(), kCount, UZIP_INT32, comm), UZIP_ERR_INVALID, "overlap"));
      std::vector<int> both(mine.begin(), mine.begin() + kCount);
      ASSERT_TRUE(succeeds(uzip_allreduce(i % 2 ? both.data() : UZIP_IN_PLACE, both.data(), kCount, UZIP_INT32, UZIP_SUM, comm)));
      EXPECT_EQ(both, sum);
      ASSERT_TRUE(succeeds(uzip_reduce_scatter(UZIP_IN_PLACE, mine.data(), kCount, UZIP_INT32, UZIP_MAX, comm)));
      EXPECT_EQ(std::vector<int>(mine.begin(), mine.begin() + kCount), share);
      std::fill(all.begin(), all.end(), -1);
      int* const own = all.data() + static_cast<size_t>(rank) * kCount;
      std::fill(own, own + kCount, rank);
      const void* const in_place = i % 2 ? static_cast<const void*>(own) : UZIP_IN_PLACE;
      ASSERT_TRUE(succeeds(uzip_allgather(in_place, all.data(), kCount, UZIP_INT32, comm)));
      for (size_t k = 0; k < all.size(); ++k) EXPECT_EQ(all[k], static_cast<int>(k / kCount));
    }
  });
}

TEST(RecentCalls, BroadcastsAndAllToAlls) {
  ApiJob job(3);
  job.run([](int rank, uzip_comm_t comm) {
    for (int i = 0; i < 9; ++i) {
      const int root = i % 3 ? i % 2 : 2;
      std::vector<int> vector(kCount, rank + 10 * i), to(kCount * 3), from(kCount * 3);
      ASSERT_TRUE(succeeds(uzip_bcast(vector.data(), kCount, UZIP_INT32, root, comm)));
      EXPECT_EQ(vector, std::vector<int>(kCount, root + 10 * i));
      EXPECT_TRUE(fails(uzip_bcast(nullptr, kCount, UZIP_INT32, root, comm), UZIP_ERR_INVALID, "NULL"));
      EXPECT_TRUE(fails(uzip_bcast(vector.data(), kCount, UZIP_INT32, 3, comm), UZIP_ERR_INVALID, "root 3"));
      for (size_t k = 0; k < to.size(); ++k) to[k] = rank * 100 + static_cast<int>(k / kCount) + i;
      ASSERT_TRUE(succeeds(uzip_alltoall(to.data(), from.data(), kCount, UZIP_INT32, comm)));
      for (size_t k = 0; k < from.size(); ++k) EXPECT_EQ(from[k], static_cast<int>(k / kCount) * 100 + rank + i);
      EXPECT_TRUE(fails(uzip_alltoall(to.data(), to.data() + 1, kCount, UZIP_INT32, comm), UZIP_ERR_INVALID, "overlap"));
      ASSERT_TRUE(succeeds(uzip_alltoall(UZIP_IN_PLACE, to.data(), kCount, UZIP_INT32, comm)));
      EXPECT_EQ(to, from);
    }
  });
}

TEST(RecentCalls, FillInTheirInfo) {
  ApiJob job(2);
  job.run([](int rank, uzip_comm_t comm) {
    const float mine[3] = {1, 2, static_cast<float>(rank)};
    for (int i = 0; i < 3; ++i) {
      float sum[3] = {};
      uzip_coll_info_t info = {sizeof info, nullptr, nullptr, 0, 0, 0};
      uzip_coll_args_t args = {};
      args.struct_size = sizeof args;
      args.coll = UZIP_ALLREDUCE;
      args.src = mine;
      args.dst = sum;
      args.count = 3;
      args.dtype = UZIP_FP32;
      args.op = UZIP_SUM;
      args.info = i == 1 ? nullptr : &info;
      ASSERT_TRUE(succeeds(uzip_coll_run(&args, comm)));
      EXPECT_EQ(sum[2], 1);
      EXPECT_EQ(info.payload_bytes, i == 1 ? 0u : sizeof mine);
      uzip_coll_info_t wrong = info;
      wrong.struct_size = 3;
      args.info = &wrong;
      EXPECT_TRUE(fails(uzip_coll_run(&args, comm), UZIP_ERR_INVALID, "struct_size"));
    }
  });
}

}  // namespace
}  // namespace uzip
