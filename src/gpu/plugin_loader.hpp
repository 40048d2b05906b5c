// Opens a GPU plugin. Used by src/comm, tools and tests; knows no GPU runtime.
#pragma once

#include "base/status.hpp"
#include "gpu/plugin.hpp"

#include <string>

namespace uzip::gpu {

/// The table of the plugin in the shared library `path` (as dlopen() takes it). It stays loaded.
/// UZIP_ERR_UNSUPPORTED: there is no such file, it can't be loaded, or it is of another build.
Result<const PluginApi*> open_plugin(const std::string& path);

/// Whether memory of a GPU can exist in this process: a vendor's driver library is loaded. Costs next to nothing on a
/// machine without a GPU, and about a microsecond on one with. Any thread.
bool gpu_in_use();

/// The plugin for the driver that is loaded, or else for the GPU that is there: from the folder uzipcoll beside this
/// library or of this installation, or from where dlopen() looks.
/// Opened at the first call, and the answer kept. Any thread.
Result<const PluginApi*> installed_plugin();

}  // namespace uzip::gpu
