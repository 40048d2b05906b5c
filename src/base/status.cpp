// Errors as values: codes, their texts, and the sentence that an error carries.
#include "base/status.hpp"

#include <array>
#include <cstdarg>
#include <cstdio>

namespace uzip {
namespace {

struct StatusRow {
  StatusCode code;
  const char* text;
};

#define UZIP_STATUS_ROW(code, meaning) \
  StatusRow { code, #code ": " meaning }
constexpr std::array kStatusTexts = {
    UZIP_STATUS_ROW(UZIP_OK, "success"),
    UZIP_STATUS_ROW(UZIP_ERR_INVALID, "an argument is not allowed"),
    UZIP_STATUS_ROW(UZIP_ERR_UNSUPPORTED, "legal, but not available here"),
    UZIP_STATUS_ROW(UZIP_ERR_NO_MEMORY, "an allocation failed"),
    UZIP_STATUS_ROW(UZIP_ERR_TIMEOUT, "a deadline passed"),
    UZIP_STATUS_ROW(UZIP_ERR_PEER, "a peer died or cannot be reached"),
    UZIP_STATUS_ROW(UZIP_ERR_MISMATCH, "ranks called with different arguments or settings"),
    UZIP_STATUS_ROW(UZIP_ERR_CORRUPT, "a frame is damaged or truncated"),
    UZIP_STATUS_ROW(UZIP_ERR_TRANSPORT, "the network layer reported an error"),
    UZIP_STATUS_ROW(UZIP_ERR_CONFIG, "a UZIP_* setting has a value that is not allowed"),
    UZIP_STATUS_ROW(UZIP_ERR_INTERNAL, "a fault in the library; please report it"),
};
#undef UZIP_STATUS_ROW

constexpr bool rows_are_in_order() {
  for (size_t i = 0; i < kStatusTexts.size(); ++i) {
    if (static_cast<size_t>(kStatusTexts[i].code) != i) return false;
  }
  return kStatusTexts.back().code == UZIP_ERR_INTERNAL;
}
static_assert(rows_are_in_order());

}  // namespace

const std::string& Status::message() const {
  static const std::string empty;
  return message_ == nullptr ? empty : *message_;
}

Status Status::with_context(const std::string& context) const {
  return ok() ? Status() : Status(code_, context + ": " + message());
}

Status error(StatusCode code, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  va_list again;
  va_copy(again, arguments);
  const int length = std::vsnprintf(nullptr, 0, format, arguments);
  va_end(arguments);
  // A conversion that fails (a wide character that has no form here) still leaves something to
  // read.
  std::string message = length < 0 ? format : std::string(static_cast<size_t>(length), '\0');
  if (length > 0) std::vsnprintf(message.data(), message.size() + 1, format, again);
  va_end(again);
  return Status(code, std::move(message));
}

const char* status_text(StatusCode code) {
  const auto index = static_cast<size_t>(code);
  return index < kStatusTexts.size() ? kStatusTexts[index].text : "unknown status";
}

}  // namespace uzip
