// User-defined reductions: in rank order by every algorithm that says so, in place, with codecs, freed
// while in use, and what is refused.
#include "comm/user_op.hpp"

#include "algos/algorithm.hpp"
#include "comm/api_job.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace uzip {
namespace {

/// x -> a x + b modulo 2^32, a above b in the word. First `left`, then `right`: associative, not commutative.
uint64_t compose(uint64_t left, uint64_t right) {
  const uint64_t a = left >> 32, b = left & 0xffffffff, c = right >> 32, d = right & 0xffffffff;
  return (a * c & 0xffffffff) << 32 | ((b * c + d) & 0xffffffff);
}

void compose_all(void* accumulator, const void* operand, size_t count, uzip_dtype_t dtype, void* context) {
  ASSERT_EQ(dtype, UZIP_UINT64);
  ++*static_cast<size_t*>(context);
  auto* left = static_cast<uint64_t*>(accumulator);
  const auto* right = static_cast<const uint64_t*>(operand);
  for (size_t i = 0; i < count; ++i) left[i] = compose(left[i], right[i]);
}

void add_floats(void* accumulator, const void* operand, size_t count, uzip_dtype_t, void*) {
  for (size_t i = 0; i < count; ++i)
    static_cast<float*>(accumulator)[i] += static_cast<const float*>(operand)[i];
}

uint64_t value(int rank, size_t i) {
  return (static_cast<uint64_t>(rank) * 7919 + i * 31 + 3) << 32 | (i + static_cast<size_t>(rank) * 65537);
}

uint64_t composed(int ranks, size_t i) {
  uint64_t result = value(0, i);
  for (int rank = 1; rank < ranks; ++rank) result = compose(result, value(rank, i));
  return result;
}

TEST(UserOp, KeepsTheOrderOfTheRanks) {
  for (int ranks : {1, 2, 3, 4, 5, 6, 7, 8, 13}) {
    ApiJob job(ranks);
    for (const Algorithm* algorithm : algorithms()) {
      if (!algorithm->in_rank_order || algorithm->coll != Coll::kAllreduce) continue;
      job.run([&](int rank, uzip_comm_t comm) {
        size_t calls = 0;
        uzip_op_t op;
        ASSERT_TRUE(succeeds(uzip_op_create(compose_all, 0, &calls, &op)));
        EXPECT_STREQ(uzip_op_name(op), "user-defined");
        uzip_options_t options = UZIP_OPTIONS_INIT;
        options.algorithm = algorithm->name;
        options.chunk_bytes = 512;
        for (size_t count : {size_t{1}, size_t{7}, size_t{3000}}) {
          std::vector<uint64_t> data(count), expected(count);
          for (size_t i = 0; i < count; ++i) {
            data[i] = value(rank, i);
            expected[i] = composed(ranks, i);
          }
          uzip_coll_args_t args = {};
          args.struct_size = sizeof args;
          args.coll = UZIP_ALLREDUCE;
          args.src = UZIP_IN_PLACE;
          args.dst = data.data();
          args.count = count;
          args.dtype = UZIP_UINT64;
          args.op = op;
          args.options = &options;
          ASSERT_TRUE(succeeds(uzip_coll_run(&args, comm)));
          ASSERT_EQ(data, expected) << algorithm->name << ", " << ranks << " ranks";
        }
        ASSERT_TRUE(succeeds(uzip_op_free(&op)));
      });
    }
  }
}

TEST(UserOp, ChosenByItselfAnAlgorithmKeepsTheOrder) {
  for (int ranks : {2, 3, 6}) {
    ApiJob job(ranks);
    job.run([&](int rank, uzip_comm_t comm) {
      size_t calls = 0;
      uzip_op_t op;
      ASSERT_TRUE(succeeds(uzip_op_create(compose_all, 0, &calls, &op)));
      for (size_t count : {size_t{1}, size_t{40}, size_t{5000}, size_t{200000}}) {
        std::vector<uint64_t> in(count * static_cast<size_t>(ranks)), out(count);
        for (size_t i = 0; i < in.size(); ++i) in[i] = value(rank, i);
        ASSERT_TRUE(succeeds(uzip_allreduce(in.data(), out.data(), count, UZIP_UINT64, op, comm)));
        for (size_t i = 0; i < count; ++i) ASSERT_EQ(out[i], composed(ranks, i));
        ASSERT_TRUE(succeeds(uzip_reduce_scatter(in.data(), out.data(), count, UZIP_UINT64, op, comm)));
        for (size_t i = 0; i < count; ++i)
          ASSERT_EQ(out[i], composed(ranks, i + count * static_cast<size_t>(rank)));
      }
      EXPECT_GT(calls, 0u);
      ASSERT_TRUE(succeeds(uzip_op_free(&op)));
    });
  }
}

/// With any algorithm and codec a commutative sum is the library's; also of persistent operations after it was freed.
TEST(UserOp, SumsLikeTheLibrary) {
  constexpr int kRanks = 5;
  ApiJob job(kRanks);
  for (const Algorithm* algorithm : algorithms()) {
    if (algorithm->coll != Coll::kAllreduce) continue;
    job.run([&](int rank, uzip_comm_t comm) {
      std::vector<float> in(20000), ours(in.size()), theirs(in.size());
      for (size_t i = 0; i < in.size(); ++i) in[i] = 1.0F / static_cast<float>(i + static_cast<size_t>(rank) + 1);
      uzip_options_t options = UZIP_OPTIONS_INIT;
      options.algorithm = algorithm->name;
      options.codec = "lev";
      uzip_coll_args_t args = {};
      args.struct_size = sizeof args;
      args.coll = UZIP_ALLREDUCE;
      args.src = in.data();
      args.dst = theirs.data();
      args.count = in.size();
      args.dtype = UZIP_FP32;
      args.options = &options;
      ASSERT_TRUE(succeeds(uzip_coll_run(&args, comm)));
      uzip_op_t op;
      uzip_request_t request;
      ASSERT_TRUE(succeeds(uzip_op_create(add_floats, 1, nullptr, &op)));
      args.op = op;
      args.dst = ours.data();
      ASSERT_TRUE(succeeds(uzip_coll_init(&args, comm, &request)));
      ASSERT_TRUE(succeeds(uzip_op_free(&op)));
      ASSERT_TRUE(succeeds(uzip_start(&request)));
      ASSERT_TRUE(succeeds(uzip_wait(&request)));
      ASSERT_TRUE(succeeds(uzip_request_free(&request)));
      EXPECT_EQ(ours, theirs) << algorithm->name;
    });
  }
}

TEST(UserOp, WrongUseIsFound) {
  const QuietLog quiet;
  ApiJob job(2);
  uzip_op_t op;
  EXPECT_TRUE(fails(uzip_op_create(nullptr, 1, nullptr, &op), UZIP_ERR_INVALID, "function is NULL"));
  EXPECT_EQ(op, UZIP_OP_USER);
  EXPECT_TRUE(fails(uzip_op_create(add_floats, 1, nullptr, nullptr), UZIP_ERR_INVALID, "op is NULL"));
  EXPECT_TRUE(fails(uzip_op_free(&op), UZIP_ERR_INVALID, "never created"));
  op = UZIP_SUM;
  EXPECT_TRUE(fails(uzip_op_free(&op), UZIP_ERR_INVALID, "never created"));
  size_t calls = 0;
  ASSERT_TRUE(succeeds(uzip_op_create(compose_all, 0, &calls, &op)));
  uzip_op_t freed = op;
  ASSERT_TRUE(succeeds(uzip_op_free(&op)));
  EXPECT_STREQ(uzip_op_name(freed), "unknown");
  ASSERT_TRUE(succeeds(uzip_op_create(compose_all, 0, &calls, &op)));
  EXPECT_NE(op, freed);

  job.run([&](int rank, uzip_comm_t comm) {
    std::vector<uint64_t> in(100), out(100);
    EXPECT_TRUE(fails(uzip_allreduce(in.data(), out.data(), 100, UZIP_UINT64, freed, comm), UZIP_ERR_INVALID,
                      "uzip_op_create"));
    uzip_options_t options = UZIP_OPTIONS_INIT;
    options.algorithm = "ring";
    uzip_coll_args_t args = {};
    args.struct_size = sizeof args;
    args.coll = UZIP_ALLREDUCE;
    args.src = in.data();
    args.dst = out.data();
    args.count = 100;
    args.dtype = UZIP_UINT64;
    args.op = op;
    args.options = &options;
    EXPECT_TRUE(fails(uzip_coll_run(&args, comm), UZIP_ERR_UNSUPPORTED, "order of the ranks"));
    // Another operation on the other rank.
    args.options = nullptr;
    args.op = rank == 0 ? op : UZIP_SUM;
    EXPECT_EQ(uzip_coll_run(&args, comm), UZIP_ERR_MISMATCH);
  });
  ASSERT_TRUE(succeeds(uzip_op_free(&op)));
}

void throw_it(void*, const void*, size_t, uzip_dtype_t, void*) { throw std::runtime_error("no more"); }

TEST(UserOp, AnExceptionFailsTheCall) {
  const QuietLog quiet;
  ApiJob job(2);
  job.run([&](int, uzip_comm_t comm) {
    uzip_op_t op;
    ASSERT_TRUE(succeeds(uzip_op_create(throw_it, 1, nullptr, &op)));
    for (size_t count : {size_t{1}, size_t{100000}}) {
      std::vector<float> in(count), out(count);
      EXPECT_TRUE(fails(uzip_allreduce(in.data(), out.data(), count, UZIP_FP32, op, comm), UZIP_ERR_INVALID,
                        "no more"));
    }
    ASSERT_TRUE(succeeds(uzip_op_free(&op)));
  });
}

/// The result may lie over any of the operands.
TEST(UserOp, ReducesOverAnOperand) {
  size_t calls = 0;
  const UserOp op{compose_all, &calls, false};
  constexpr size_t kCount = 2000;
  for (size_t over = 0; over < 3; ++over) {
    std::vector<std::vector<uint64_t>> operands(3, std::vector<uint64_t>(kCount));
    for (size_t r = 0; r < 3; ++r)
      for (size_t i = 0; i < kCount; ++i) operands[r][i] = value(static_cast<int>(r), i);
    const void* sources[3] = {operands[0].data(), operands[1].data(), operands[2].data()};
    ASSERT_TRUE(op.reduce(UZIP_UINT64, operands[over].data(), sources, kCount).ok());
    for (size_t i = 0; i < kCount; ++i) ASSERT_EQ(operands[over][i], composed(3, i)) << over;
  }
}

}  // namespace
}  // namespace uzip
