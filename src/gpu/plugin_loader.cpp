#include "gpu/plugin_loader.hpp"

#include <dlfcn.h>

namespace uzip::gpu {

Result<const PluginApi*> open_plugin(const std::string& path) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = dlerror();
    return error(UZIP_ERR_UNSUPPORTED, "the GPU plugin can't be loaded: %s",
                 why != nullptr ? why : path.c_str());
  }
  const auto entry = reinterpret_cast<PluginEntry>(dlsym(library, kPluginEntry));
  if (entry == nullptr)
    return error(UZIP_ERR_UNSUPPORTED, "%s is no GPU plugin: it lacks %s()", path.c_str(),
                 kPluginEntry);
  const PluginApi* const api = entry();
  if (api->abi != kPluginAbi)
    return error(UZIP_ERR_UNSUPPORTED,
                 "the GPU plugin %s has interface %u, this library needs %u: install both from one "
                 "build",
                 path.c_str(), api->abi, kPluginAbi);
  return api;
}

}  // namespace uzip::gpu
