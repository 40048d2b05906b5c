// Opens a GPU plugin. Used by src/comm, tools and tests; knows no GPU runtime.
#pragma once

#include "base/status.hpp"
#include "gpu/plugin.hpp"

#include <string>

namespace uzip::gpu {

/// The table of the plugin in the shared library `path` (as dlopen() takes it). It stays loaded.
/// UZIP_ERR_UNSUPPORTED: there is no such file, it can't be loaded, or it is of another build.
Result<const PluginApi*> open_plugin(const std::string& path);

}  // namespace uzip::gpu
