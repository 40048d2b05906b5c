// The sentence that a failed function of the plugin leaves for last_error(). Host code of the
// plugin only.
#pragma once

#include "gpu/runtime.hpp"

namespace uzip::gpu {

/// Keeps the sentence for this thread; always 1.
__attribute__((format(printf, 1, 2))) int fail(const char* format, ...);
/// 0, or fail() with what the runtime says.
int check(Error error, const char* what);

#define UZIP_CHECK(call, what) \
  if (const int failed = check(call, what); failed != 0) return failed

}  // namespace uzip::gpu
