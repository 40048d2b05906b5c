// Copying what is used again soon, at a speed that does not depend on where it lies.
#pragma once

#include <cstddef>

namespace uzip {

/// Copies `bytes` from `src` to `dst`, which don't overlap. The pointers of 0 bytes may be null.
void copy_bytes(void* dst, const void* src, size_t bytes);

#if defined(__x86_64__)
/// How copy_bytes() does it where string instructions are slow. The processor must have AVX2.
void copy_by_vectors(void* dst, const void* src, size_t bytes);
#endif

}  // namespace uzip
