// What the kernels tell of a damaged frame, in words.
#pragma once

#include "base/status.hpp"

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace uzip::gpu {

/// `fault` as DecodeRequest::fault: a DecodeFault and the number of a block. 0 is no fault.
inline Status status_of_fault(uint64_t fault) {
  constexpr const char* kTexts[] = {"",           "header",   "table of blocks", "descriptor of a block",
                                    "sizes of a block", "escapes of a block", "zeros of a block"};
  if (fault == 0) return Status();
  const uint64_t kind = fault >> 32;
  return error(UZIP_ERR_CORRUPT, "lev frame: the %s is wrong (block %u)",
               kind < std::size(kTexts) ? kTexts[kind] : "frame", static_cast<uint32_t>(fault));
}

}  // namespace uzip::gpu
