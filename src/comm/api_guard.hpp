// What every public C function does around its work: no exception leaves it, and errors reach uzip_last_error().
#pragma once

#include "base/status.hpp"

#include <exception>
#include <new>

namespace uzip {

/// Makes an error's message the thread's last one; returns the code. Defined in c_api.cpp.
uzip_status_t report(const Status& status);

/// Runs `body` (returning Status) and lets no exception out.
template <class Body>
uzip_status_t guarded(const Body& body) {
  try {
    return report(body());
  } catch (const std::bad_alloc&) {
    return report(error(UZIP_ERR_NO_MEMORY, "out of memory"));
  } catch (const std::exception& exception) {
    return report(error(UZIP_ERR_INTERNAL, "unexpected exception: %s", exception.what()));
  } catch (...) {
    return report(error(UZIP_ERR_INTERNAL, "unexpected exception"));
  }
}

inline Status null_pointer(const char* name) { return error(UZIP_ERR_INVALID, "%s is NULL", name); }

}  // namespace uzip
