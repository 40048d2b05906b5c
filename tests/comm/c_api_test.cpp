// The C functions: handles, arguments, in-place forms, requests. One rank only, over the real
// transport; tests/mp has several.
#include <uzipcoll/uzipcoll.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

namespace {

int copy_own(const void* src, void* dst, size_t bytes, void*) {
  std::memcpy(dst, src, bytes);
  return 0;
}

uzip_oob_t alone() { return {sizeof(uzip_oob_t), 0, 1, copy_own, nullptr}; }

/// The status is as expected, and so is what uzip_last_error() says.
testing::AssertionResult fails(uzip_status_t status, uzip_status_t expected, const char* said) {
  if (status != expected) {
    return testing::AssertionFailure() << uzip_status_string(status) << ": " << uzip_last_error();
  }
  if (std::strstr(uzip_last_error(), said)) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "'" << said << "' is not in: " << uzip_last_error();
}

class CApi : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const uzip_oob_t oob = alone();
    ASSERT_EQ(uzip_comm_create(&oob, &comm_), UZIP_OK) << uzip_last_error();
  }
  static void TearDownTestSuite() { EXPECT_EQ(uzip_comm_free(&comm_), UZIP_OK); }

  static uzip_comm_t comm_;
};
uzip_comm_t CApi::comm_ = nullptr;

// ---- Names ----

TEST(CApiNames, OfEveryStatus) {
  for (int code = UZIP_OK; code <= UZIP_ERR_INTERNAL; ++code) {
    const std::string text = uzip_status_string(static_cast<uzip_status_t>(code));
    EXPECT_EQ(text.rfind(code == UZIP_OK ? "UZIP_OK: " : "UZIP_ERR_", 0), 0u) << text;
  }
  EXPECT_NE(uzip_status_string(static_cast<uzip_status_t>(99)), nullptr);
  EXPECT_NE(uzip_status_string(static_cast<uzip_status_t>(-1)), nullptr);
}

TEST(CApiNames, OfTypesAndOperations) {
  EXPECT_STREQ(uzip_dtype_name(UZIP_BF16), "bf16");
  EXPECT_EQ(uzip_dtype_size(UZIP_BF16), 2u);
  EXPECT_STREQ(uzip_op_name(UZIP_AVG), "avg");
  for (int bad : {-1, 12, 1000000}) {
    EXPECT_STREQ(uzip_dtype_name(static_cast<uzip_dtype_t>(bad)), "unknown");
    EXPECT_EQ(uzip_dtype_size(static_cast<uzip_dtype_t>(bad)), 0u);
    EXPECT_STREQ(uzip_op_name(static_cast<uzip_op_t>(bad)), "unknown");
  }
}

TEST(CApiNames, Version) {
  int major = -1, minor = -1, patch = -1;
  uzip_version(&major, &minor, &patch);
  EXPECT_EQ(std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch),
            uzip_version_string());
  uzip_version(nullptr, nullptr, nullptr);
}

// ---- Communicators ----

TEST_F(CApi, CreationChecksItsArguments) {
  uzip_comm_t comm = comm_;
  EXPECT_TRUE(fails(uzip_comm_create(nullptr, &comm), UZIP_ERR_INVALID, "oob"));
  EXPECT_EQ(comm, nullptr);
  uzip_oob_t oob = alone();
  EXPECT_TRUE(fails(uzip_comm_create(&oob, nullptr), UZIP_ERR_INVALID, "comm"));
  oob.struct_size = 3;
  EXPECT_TRUE(fails(uzip_comm_create(&oob, &comm), UZIP_ERR_INVALID, "struct_size"));
  oob = alone();
  oob.rank = 1;
  EXPECT_TRUE(fails(uzip_comm_create(&oob, &comm), UZIP_ERR_INVALID, "rank 1 of 1"));
  oob.rank = -1;
  EXPECT_TRUE(fails(uzip_comm_create(&oob, &comm), UZIP_ERR_INVALID, "rank -1"));
  oob = alone();
  oob.size = 0;
  EXPECT_TRUE(fails(uzip_comm_create(&oob, &comm), UZIP_ERR_INVALID, "of 0"));
  oob = alone();
  oob.allgather = nullptr;
  EXPECT_TRUE(fails(uzip_comm_create(&oob, &comm), UZIP_ERR_INVALID, "allgather"));
  oob = alone();
  oob.allgather = [](const void*, void*, size_t, void*) { return 17; };
  EXPECT_TRUE(fails(uzip_comm_create(&oob, &comm), UZIP_ERR_PEER, "17"));
  EXPECT_EQ(comm, nullptr);
}

TEST_F(CApi, RankAndSize) {
  int rank = -1, size = -1;
  EXPECT_EQ(uzip_comm_rank(comm_, &rank), UZIP_OK);
  EXPECT_EQ(uzip_comm_size(comm_, &size), UZIP_OK);
  EXPECT_EQ(rank, 0);
  EXPECT_EQ(size, 1);
  EXPECT_TRUE(fails(uzip_comm_rank(comm_, nullptr), UZIP_ERR_INVALID, "rank is NULL"));
  EXPECT_TRUE(fails(uzip_comm_size(comm_, nullptr), UZIP_ERR_INVALID, "size is NULL"));
  EXPECT_TRUE(fails(uzip_comm_rank(nullptr, &rank), UZIP_ERR_INVALID, "communicator is NULL"));
}

TEST_F(CApi, HandlesThatAreNone) {
  uzip_comm_t copy = nullptr;
  ASSERT_EQ(uzip_comm_dup(comm_, &copy), UZIP_OK);
  const uzip_comm_t stale = copy;
  ASSERT_EQ(uzip_comm_free(&copy), UZIP_OK);
  EXPECT_EQ(copy, nullptr);
  EXPECT_EQ(uzip_comm_free(&copy), UZIP_OK);
  EXPECT_TRUE(fails(uzip_comm_free(nullptr), UZIP_ERR_INVALID, "comm is NULL"));
  for (const uintptr_t bits : {reinterpret_cast<uintptr_t>(stale), uintptr_t{1}, uintptr_t{0x1234},
                               UINTPTR_MAX, UINTPTR_MAX / 2, reinterpret_cast<uintptr_t>(&copy)}) {
    auto comm = reinterpret_cast<uzip_comm_t>(bits);
    EXPECT_TRUE(fails(uzip_barrier(comm), UZIP_ERR_INVALID, "not valid"));
    EXPECT_TRUE(fails(uzip_comm_dup(comm, &copy), UZIP_ERR_INVALID, "not valid"));
    EXPECT_TRUE(fails(uzip_comm_free(&comm), UZIP_ERR_INVALID, "not valid"));
    auto request = reinterpret_cast<uzip_request_t>(bits);
    int done = 5;
    EXPECT_TRUE(fails(uzip_wait(&request), UZIP_ERR_INVALID, "not valid"));
    EXPECT_TRUE(fails(uzip_test(&request, &done), UZIP_ERR_INVALID, "not valid"));
    EXPECT_TRUE(fails(uzip_waitall(1, &request, nullptr), UZIP_ERR_INVALID, "not valid"));
  }
}

TEST_F(CApi, Split) {
  uzip_comm_t part = comm_;
  EXPECT_EQ(uzip_comm_split(comm_, UZIP_UNDEFINED, 0, &part), UZIP_OK);
  EXPECT_EQ(part, nullptr);
  EXPECT_TRUE(fails(uzip_comm_split(comm_, -2, 0, &part), UZIP_ERR_INVALID, "-2"));
  ASSERT_EQ(uzip_comm_split(comm_, 2147483647, -2147483647, &part), UZIP_OK);
  EXPECT_EQ(uzip_barrier(part), UZIP_OK);
  EXPECT_EQ(uzip_comm_free(&part), UZIP_OK);
}

TEST_F(CApi, WorldsMayEndBeforeTheirRequests) {
  uzip_comm_t world = nullptr;
  const uzip_oob_t oob = alone();
  ASSERT_EQ(uzip_comm_create(&oob, &world), UZIP_OK) << uzip_last_error();
  float value = 0;
  uzip_request_t receive, barrier;
  ASSERT_EQ(uzip_irecv(&value, 1, UZIP_FP32, 0, 0, world, &receive), UZIP_OK);
  ASSERT_EQ(uzip_ibarrier(world, &barrier), UZIP_OK);
  ASSERT_EQ(uzip_comm_free(&world), UZIP_OK);
  EXPECT_TRUE(fails(uzip_wait(&receive), UZIP_ERR_INVALID, "freed"));
  EXPECT_EQ(uzip_wait(&barrier), UZIP_OK);
}

// ---- Calls ----

TEST_F(CApi, EveryCollectiveOfOneRank) {
  std::vector<float> in(100), out(100);
  std::iota(in.begin(), in.end(), 1.0F);
  const size_t counts[] = {100};
  const auto expect_copy = [&](uzip_status_t status) {
    EXPECT_EQ(status, UZIP_OK) << uzip_last_error();
    EXPECT_EQ(in, out);
    out.assign(100, 0);
  };
  uzip_request_t request = nullptr;
  expect_copy(uzip_allreduce(in.data(), out.data(), 100, UZIP_FP32, UZIP_AVG, comm_));
  expect_copy(uzip_reduce_scatter(in.data(), out.data(), 100, UZIP_FP32, UZIP_SUM, comm_));
  expect_copy(uzip_reduce_scatterv(in.data(), out.data(), counts, UZIP_FP32, UZIP_MAX, comm_));
  expect_copy(uzip_allgather(in.data(), out.data(), 100, UZIP_FP32, comm_));
  expect_copy(uzip_allgatherv(in.data(), out.data(), counts, UZIP_FP32, comm_));
  uzip_iallreduce(in.data(), out.data(), 100, UZIP_FP32, UZIP_SUM, comm_, &request);
  expect_copy(uzip_wait(&request));
  uzip_ireduce_scatter(in.data(), out.data(), 100, UZIP_FP32, UZIP_SUM, comm_, &request);
  expect_copy(uzip_wait(&request));
  uzip_ireduce_scatterv(in.data(), out.data(), counts, UZIP_FP32, UZIP_SUM, comm_, &request);
  expect_copy(uzip_wait(&request));
  uzip_iallgather(in.data(), out.data(), 100, UZIP_FP32, comm_, &request);
  expect_copy(uzip_wait(&request));
  uzip_iallgatherv(in.data(), out.data(), counts, UZIP_FP32, comm_, &request);
  expect_copy(uzip_wait(&request));
  EXPECT_EQ(uzip_barrier(comm_), UZIP_OK);
}

TEST_F(CApi, NothingNeedsNoBuffers) {
  const size_t none[] = {0};
  void* const null = nullptr;
  for (void* where : {null, UZIP_IN_PLACE}) {
    EXPECT_EQ(uzip_allreduce(where, nullptr, 0, UZIP_FP64, UZIP_SUM, comm_), UZIP_OK);
    EXPECT_EQ(uzip_reduce_scatter(where, nullptr, 0, UZIP_INT8, UZIP_SUM, comm_), UZIP_OK);
    EXPECT_EQ(uzip_reduce_scatterv(where, nullptr, none, UZIP_FP16, UZIP_SUM, comm_), UZIP_OK);
    EXPECT_EQ(uzip_allgather(where, nullptr, 0, UZIP_FP16, comm_), UZIP_OK);
    EXPECT_EQ(uzip_allgatherv(where, nullptr, none, UZIP_FP16, comm_), UZIP_OK);
  }
  uzip_request_t request;
  ASSERT_EQ(uzip_irecv(nullptr, 0, UZIP_FP32, 0, 0, comm_, &request), UZIP_OK);
  EXPECT_EQ(uzip_send(nullptr, 0, UZIP_FP32, 0, 0, comm_), UZIP_OK);
  EXPECT_EQ(uzip_wait(&request), UZIP_OK);
}

TEST_F(CApi, MessagesToOneself) {
  const std::vector<float> in(3000, 2.5F);
  std::vector<float> out(3000);
  ASSERT_EQ(uzip_sendrecv(in.data(), 3000, 0, 5, out.data(), 3000, 0, 5, UZIP_FP32, comm_),
            UZIP_OK);
  EXPECT_EQ(in, out);
  uzip_request_t requests[8];
  std::vector<int32_t> sent = {1, 2, 3, 4}, received(4);
  for (int i = 0; i < 4; ++i) {
    const auto k = static_cast<size_t>(i);
    uzip_isend(&sent[k], 1, UZIP_INT32, 0, i, comm_, &requests[i]);
    uzip_irecv(&received[k], 1, UZIP_INT32, 0, i, comm_, &requests[7 - i]);
  }
  uzip_status_t statuses[8];
  EXPECT_EQ(uzip_waitall(8, requests, statuses), UZIP_OK);
  EXPECT_EQ(sent, received);
  for (const uzip_status_t status : statuses) EXPECT_EQ(status, UZIP_OK);
  for (const uzip_request_t request : requests) EXPECT_EQ(request, UZIP_REQUEST_NULL);
}

TEST_F(CApi, WaitallReturnsTheFirstFailure) {
  int32_t value = 1, other = 0;
  uzip_request_t requests[3];
  uzip_irecv(&other, 1, UZIP_INT32, 0, 1, comm_, &requests[0]);
  uzip_irecv(&other, 1, UZIP_UINT32, 0, 2, comm_, &requests[1]);
  requests[2] = UZIP_REQUEST_NULL;
  EXPECT_EQ(uzip_send(&value, 1, UZIP_INT32, 0, 2, comm_), UZIP_OK);
  EXPECT_EQ(uzip_send(&value, 1, UZIP_INT32, 0, 1, comm_), UZIP_OK);
  uzip_status_t statuses[3];
  EXPECT_TRUE(fails(uzip_waitall(3, requests, statuses), UZIP_ERR_MISMATCH, "int32"));
  EXPECT_EQ(statuses[0], UZIP_OK);
  EXPECT_EQ(statuses[1], UZIP_ERR_MISMATCH);
  EXPECT_EQ(statuses[2], UZIP_OK);
  EXPECT_EQ(uzip_waitall(0, nullptr, nullptr), UZIP_OK);
  EXPECT_TRUE(fails(uzip_waitall(1, nullptr, nullptr), UZIP_ERR_INVALID, "requests"));
}

TEST_F(CApi, TestSaysWhetherItIsDone) {
  int32_t value = 7, other = 0;
  uzip_request_t request;
  ASSERT_EQ(uzip_irecv(&other, 1, UZIP_INT32, 0, 9, comm_, &request), UZIP_OK);
  int done = 5;
  EXPECT_EQ(uzip_test(&request, &done), UZIP_OK);
  EXPECT_EQ(done, 0);
  EXPECT_NE(request, UZIP_REQUEST_NULL);
  EXPECT_EQ(uzip_send(&value, 1, UZIP_INT32, 0, 9, comm_), UZIP_OK);
  for (int turn = 0; turn < 1000 && done == 0; ++turn)
    ASSERT_EQ(uzip_test(&request, &done), UZIP_OK);
  EXPECT_EQ(done, 1);
  EXPECT_EQ(other, 7);
  EXPECT_EQ(request, UZIP_REQUEST_NULL);
  EXPECT_EQ(uzip_test(&request, &done), UZIP_OK);
  EXPECT_EQ(done, 1);
  EXPECT_EQ(uzip_wait(&request), UZIP_OK);
  EXPECT_TRUE(fails(uzip_test(nullptr, &done), UZIP_ERR_INVALID, "request"));
  EXPECT_TRUE(fails(uzip_test(&request, nullptr), UZIP_ERR_INVALID, "done"));
  EXPECT_TRUE(fails(uzip_wait(nullptr), UZIP_ERR_INVALID, "request"));
}

// A send that is refused must not leave the caller waiting for the receive.
TEST_F(CApi, SendrecvThatCantSend) {
  float in = 1, out = 0;
  EXPECT_TRUE(fails(uzip_sendrecv(&in, 1, 3, 0, &out, 1, 0, 0, UZIP_FP32, comm_), UZIP_ERR_INVALID,
                    "rank 3"));
  EXPECT_TRUE(fails(uzip_sendrecv(&in, 1, 0, -1, &out, 1, 0, 0, UZIP_FP32, comm_), UZIP_ERR_INVALID,
                    "tag -1"));
  EXPECT_TRUE(fails(uzip_sendrecv(&in, 1, 0, 0, &out, 1, 9, 0, UZIP_FP32, comm_), UZIP_ERR_INVALID,
                    "rank 9"));
  // Nothing of it is left.
  EXPECT_EQ(uzip_sendrecv(&in, 1, 0, 0, &out, 1, 0, 0, UZIP_FP32, comm_), UZIP_OK);
  EXPECT_EQ(out, 1);
}

TEST_F(CApi, InfoTellsWhatWasDone) {
  uzip_coll_info_t info = {};
  info.struct_size = sizeof info;
  uzip_options_t options = UZIP_OPTIONS_INIT;
  options.algorithm = "ring";
  options.chunk_bytes = 4096;
  float in[4] = {1, 2, 3, 4}, out[4] = {};
  uzip_coll_args_t args = {sizeof args, UZIP_ALLREDUCE, in,       out,   4, nullptr,
                           UZIP_FP32,   UZIP_SUM,       &options, &info, 0,       nullptr,
                           nullptr,     nullptr,        nullptr};
  ASSERT_EQ(uzip_coll_run(&args, comm_), UZIP_OK) << uzip_last_error();
  EXPECT_STREQ(info.algorithm, "ring");
  EXPECT_STREQ(info.codec, "raw");
  EXPECT_EQ(info.wire_bytes, 0u);
  info.struct_size = 7;
  EXPECT_TRUE(fails(uzip_coll_run(&args, comm_), UZIP_ERR_INVALID, "struct_size"));
  EXPECT_TRUE(fails(uzip_coll_run(nullptr, comm_), UZIP_ERR_INVALID, "args"));
  uzip_request_t request;
  EXPECT_TRUE(fails(uzip_coll_start(nullptr, comm_, &request), UZIP_ERR_INVALID, "args"));
  EXPECT_TRUE(fails(uzip_isend_options(in, 4, UZIP_FP32, 0, 0, comm_, nullptr, &info, &request),
                    UZIP_ERR_INVALID, "struct_size"));
}

// One thread's error is not another's.
TEST_F(CApi, LastErrorStaysUntilTheNext) {
  EXPECT_TRUE(fails(uzip_barrier(nullptr), UZIP_ERR_INVALID, "NULL"));
  EXPECT_EQ(uzip_barrier(comm_), UZIP_OK);
  EXPECT_NE(std::string(uzip_last_error()).find("NULL"), std::string::npos);
}

}  // namespace
