#include "gpu/device_memory.hpp"

#include "base/numa_memory.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

namespace uzip::gpu {
namespace {

constexpr size_t kLeastBlock = size_t{64} << 10;
/// Blocks have one of so many sizes between two powers of two, so that rounds of nearly the same size share them.
constexpr size_t kSizesPerDoubling = 8;

}  // namespace

DeviceScope::DeviceScope(const PluginApi& api, int device) : api_(api) {
  int current = device;
  if (api.current_device(&current) != 0 || current == device) return;
  if (api.set_device(device) == 0) before_ = current;
}

DeviceScope::~DeviceScope() {
  if (before_ >= 0) (void)api_.set_device(before_);
}

DeviceMemory::~DeviceMemory() { release_idle(); }

size_t DeviceMemory::rounded(size_t bytes) {
  if (bytes == 0) return 0;
  const size_t step = std::max(std::bit_floor(bytes) / kSizesPerDoubling, kLeastBlock);
  return (bytes + step - 1) / step * step;
}

bool DeviceMemory::has_idle(size_t bytes) const {
  const size_t size = rounded(bytes);
  return size == 0 || std::any_of(idle_.begin(), idle_.end(), [&](const DeviceBlock& b) { return b.bytes == size; });
}

Result<DeviceBlock> DeviceMemory::get(size_t bytes) {
  if (bytes == 0) return DeviceBlock();
  if (bytes > PTRDIFF_MAX / 4)
    return error(UZIP_ERR_NO_MEMORY, "a round would need %zu bytes of GPU memory; use smaller chunks", bytes);
  const size_t size = rounded(bytes);
  const auto found = std::find_if(idle_.begin(), idle_.end(), [&](const DeviceBlock& b) { return b.bytes == size; });
  if (found != idle_.end()) {
    const DeviceBlock block = *found;
    idle_.erase(found);
    idle_bytes_ -= size;
    in_use_ += size;
    return block;
  }
  const DeviceScope scope(api_, device_);
  void* data = nullptr;
  const PreferNumaNode prefer(kind_ == Kind::kPinned ? numa_node_ : -1);
  const int failed = kind_ == Kind::kPinned ? api_.allocate_pinned(&data, size) : api_.allocate(&data, size);
  if (failed != 0)
    return error(UZIP_ERR_NO_MEMORY, "no %s memory for %zu bytes of a round (%zu in use): %s; use smaller chunks",
                 kind_ == Kind::kPinned ? "pinned" : "GPU", size, in_use_, api_.last_error());
  in_use_ += size;
  return DeviceBlock{static_cast<std::byte*>(data), size};
}

void DeviceMemory::put(DeviceBlock block) {
  if (!block.data) return;
  in_use_ -= block.bytes;
  idle_bytes_ += block.bytes;
  idle_.push_back(block);
}

void DeviceMemory::release_idle() {
  if (idle_.empty()) return;
  const DeviceScope scope(api_, device_);
  for (const DeviceBlock& block : std::exchange(idle_, {})) release(block.data);
  idle_bytes_ = 0;
}

void DeviceMemory::release(std::byte* data) {
  (void)(kind_ == Kind::kPinned ? api_.release_pinned(data) : api_.release(data));
}

}  // namespace uzip::gpu
