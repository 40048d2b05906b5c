// Copying what is not looked at again soon. Used for results that are larger than the caches.
#pragma once

#include <cstddef>

namespace uzip {

/// Copies `bytes` from `src` to `dst`, which don't overlap, past the caches where the processor can: what is written is not
/// read before, and drives out nothing.
void copy_past_caches(void* dst, const void* src, size_t bytes);

/// Copies `bytes` from `src` to two places, none of which overlap: to `near`, through the caches, and past them to `far`. The source
/// is read once.
void copy_twice(void* near, void* far, const void* src, size_t bytes);

}  // namespace uzip
