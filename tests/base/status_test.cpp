// Status and Result, and the texts of the codes.
#include "base/status.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace uzip {
namespace {

TEST(StatusTest, SuccessIsEmpty) {
  const Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_TRUE(static_cast<bool>(status));
  EXPECT_EQ(status.code(), UZIP_OK);
  EXPECT_EQ(status.message(), "");
}

TEST(StatusTest, ErrorCarriesCodeAndMessage) {
  const Status status = error(UZIP_ERR_PEER, "rank %d of %s", 3, "host");
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.code(), UZIP_ERR_PEER);
  EXPECT_EQ(status.message(), "rank 3 of host");
  const Status copy = status;
  EXPECT_EQ(copy.message(), "rank 3 of host");
}

TEST(StatusTest, LongAndEmptyMessages) {
  const std::string text(100000, 'x');
  EXPECT_EQ(error(UZIP_ERR_INVALID, "%s", text.c_str()).message(), text);
  EXPECT_EQ(error(UZIP_ERR_INVALID, "%s", "").message(), "");
  EXPECT_EQ(error(UZIP_ERR_INVALID, "%s", "%n%s%d").message(), "%n%s%d");
}

TEST(StatusTest, ContextStandsInFront) {
  const Status status = error(UZIP_ERR_CORRUPT, "bad magic").with_context("frame 7");
  EXPECT_EQ(status.code(), UZIP_ERR_CORRUPT);
  EXPECT_EQ(status.message(), "frame 7: bad magic");
  EXPECT_TRUE(Status().with_context("frame 7").ok());
  EXPECT_EQ(Status().with_context("frame 7").message(), "");
}

TEST(StatusTest, EveryCodeHasItsOwnText) {
  std::set<std::string> texts;
  for (int code = UZIP_OK; code <= UZIP_ERR_INTERNAL; ++code) {
    const std::string text = status_text(static_cast<StatusCode>(code));
    EXPECT_EQ(text.rfind("UZIP_", 0), 0u) << text;
    EXPECT_NE(text.find(": "), std::string::npos) << text;
    texts.insert(text);
  }
  EXPECT_EQ(texts.size(), size_t{UZIP_ERR_INTERNAL} + 1);
  EXPECT_STREQ(status_text(UZIP_ERR_PEER), "UZIP_ERR_PEER: a peer died or cannot be reached");
  EXPECT_STREQ(status_text(static_cast<StatusCode>(UZIP_ERR_INTERNAL + 1)), "unknown status");
  EXPECT_STREQ(status_text(static_cast<StatusCode>(-1)), "unknown status");
}

Result<int> half(int number) {
  if (number % 2 != 0) return error(UZIP_ERR_INVALID, "%d is odd", number);
  return number / 2;
}

Status quarter(int number, int* out) {
  UZIP_ASSIGN_OR_RETURN(const int once, half(number));
  UZIP_ASSIGN_OR_RETURN(*out, half(once));
  UZIP_RETURN_IF_ERROR(half(0).status());
  return {};
}

TEST(ResultTest, ValueOrError) {
  const Result<int> good = half(4);
  ASSERT_TRUE(good.ok());
  EXPECT_EQ(*good, 2);
  EXPECT_TRUE(good.status().ok());
  const Result<int> bad = half(5);
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.status().code(), UZIP_ERR_INVALID);
  EXPECT_EQ(bad.status().message(), "5 is odd");
}

TEST(ResultTest, MacrosPassValuesAndErrorsOn) {
  int out = 0;
  EXPECT_TRUE(quarter(8, &out).ok());
  EXPECT_EQ(out, 2);
  EXPECT_EQ(quarter(7, &out).message(), "7 is odd");
  EXPECT_EQ(quarter(6, &out).message(), "3 is odd");
}

}  // namespace
}  // namespace uzip
