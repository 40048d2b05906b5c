// Copying what is used again soon, at a speed that does not depend on where it lies.
#pragma once

#include <cstddef>

namespace uzip {

/// Copies `bytes` from `src` to `dst`, which don't overlap. The pointers of 0 bytes may be null.
void copy_bytes(void* dst, const void* src, size_t bytes);

}  // namespace uzip
