#include "gpu/plugin_loader.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>

namespace uzip::gpu {
namespace {

/// A vendor's driver: the device file that it needs, the library that every user of it has loaded, and our plugin.
struct Vendor {
  const char* device_file;
  const char* library;
  const char* plugin;
};
constexpr Vendor kVendors[] = {
    {"/dev/nvidiactl", "libcuda.so.1", "libuzipcoll_cuda.so"},
    {"/dev/kfd", "libamdhip64.so", "libuzipcoll_hip.so"},
};

const Vendor* loaded_vendor() {
  for (const Vendor& vendor : kVendors) {
    if (void* const library = dlopen(vendor.library, RTLD_NOW | RTLD_NOLOAD)) {
      dlclose(library);  // which only takes back this reference
      return &vendor;
    }
  }
  return nullptr;
}

const Vendor* present_vendor() {
  for (const Vendor& vendor : kVendors)
    if (access(vendor.device_file, F_OK) == 0) return &vendor;
  return nullptr;
}

/// The folder that this code was loaded from, with a slash; "" if it is not known.
std::string own_folder() {
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&own_folder), &info) == 0 || info.dli_fname == nullptr) return "";
  const std::string path = info.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

Result<const PluginApi*> open_installed() {
  const Vendor* const loaded = loaded_vendor();
  const Vendor* const vendor = loaded != nullptr ? loaded : present_vendor();
  if (vendor == nullptr) return error(UZIP_ERR_UNSUPPORTED, "there is no driver of a GPU on this machine");
  for (const std::string& folder : {own_folder() + "uzipcoll", std::string(UZIP_PLUGIN_FOLDER)}) {
    const std::string path = folder + "/" + vendor->plugin;
    if (access(path.c_str(), R_OK) == 0) return open_plugin(path);
  }
  return open_plugin(vendor->plugin);
}

}  // namespace

bool gpu_in_use() {
  static const bool possible = present_vendor() != nullptr;
  if (!possible) return false;
  static std::atomic<bool> seen{false};
  if (seen.load(std::memory_order_relaxed)) return true;
  if (loaded_vendor() == nullptr) return false;
  seen.store(true, std::memory_order_relaxed);
  return true;
}

Result<const PluginApi*> installed_plugin() {
  static const Result<const PluginApi*> opened = open_installed();
  return opened;
}

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
