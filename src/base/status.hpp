// The answer of every fallible function: a code and, on error, one sentence for the user.
// Used by every layer; the C API turns it into uzip_status_t and uzip_last_error().
#pragma once

#include <uzipcoll/uzipcoll.h>

#include <cassert>
#include <memory>
#include <string>
#include <utility>
#include <variant>

namespace uzip {

/// The public codes are the internal ones: there is one list of them.
using StatusCode = uzip_status_t;

/// Success costs nothing; an error carries what failed, the value, what is allowed, what to do next.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message)
      : code_(code), message_(std::make_shared<const std::string>(std::move(message))) {
    assert(code != UZIP_OK);
  }

  bool ok() const { return code_ == UZIP_OK; }
  explicit operator bool() const { return ok(); }
  StatusCode code() const { return code_; }
  const std::string& message() const;

  /// The same error with "context: " put before its message; success stays success.
  Status with_context(const std::string& context) const;

 private:
  StatusCode code_ = UZIP_OK;
  std::shared_ptr<const std::string> message_;
};

/// printf-style construction of an error.
[[gnu::format(printf, 2, 3)]] Status error(StatusCode code, const char* format, ...);

/// A value or the error that prevented it.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}
  Result(Status status) : state_(std::move(status)) { assert(!std::get<Status>(state_).ok()); }

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  /// The error, or success when there is a value.
  Status status() const { return ok() ? Status() : std::get<Status>(state_); }

  T& value() { return std::get<T>(state_); }
  const T& value() const { return std::get<T>(state_); }
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::variant<T, Status> state_;
};

/// What every UZIP_ERR_* means, for uzip_status_string().
const char* status_text(StatusCode code);

}  // namespace uzip

/// Returns from the enclosing function when `expression` is an error.
#define UZIP_RETURN_IF_ERROR(expression)                                \
  do {                                                                  \
    if (::uzip::Status status_ = (expression); !status_.ok()) return status_; \
  } while (false)

/// Declares `lhs` with the value of a Result, or returns its error.
#define UZIP_ASSIGN_OR_RETURN(lhs, expression) \
  UZIP_ASSIGN_OR_RETURN_(UZIP_CONCAT_(result_, __LINE__), lhs, expression)
#define UZIP_ASSIGN_OR_RETURN_(result, lhs, expression) \
  auto result = (expression);                           \
  if (!result.ok()) return result.status();             \
  lhs = std::move(*result)
#define UZIP_CONCAT_(a, b) UZIP_CONCAT2_(a, b)
#define UZIP_CONCAT2_(a, b) a##b
