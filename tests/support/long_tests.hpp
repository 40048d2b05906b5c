// Which tests take their time: with LONG_TESTS=1 in the environment, they cover all of what they
// otherwise sample. Minutes, and gigabytes of memory.
#pragma once

#include <cstdlib>

namespace uzip {

inline bool long_tests() {
  const char* wanted = std::getenv("LONG_TESTS");
  return wanted != nullptr && *wanted == '1';
}

}  // namespace uzip
