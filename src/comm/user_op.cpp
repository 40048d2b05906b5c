#include "comm/user_op.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <mutex>
#include <vector>

namespace uzip {
namespace {

/// Elements that are reduced at a time where the result overwrites an operand that is still needed.
constexpr size_t kBlockBytes = 4096;

/// A value is UZIP_OP_USER, how often its place was used before, and the place: a freed one is found.
constexpr uint32_t kPlaceBits = 12;
constexpr uint32_t kPlaces = 1u << kPlaceBits;
constexpr uint32_t kGenerationMask = (1u << 18) - 1;

struct Place {
  std::shared_ptr<const UserOp> op;
  uint32_t generation = 1;  // so that no operation is UZIP_OP_USER itself
};

struct Table {
  std::mutex mutex;
  std::vector<Place> places;
};

Table& table() {
  static auto* const table = new Table;  // never destroyed: programs free operations in atexit handlers
  return *table;
}

/// The place of a value that is in use; null if there is none. With the mutex held.
Place* find_place(Table& table, ReduceOp op) {
  if (!is_user_op(op)) return nullptr;
  const uint32_t value = static_cast<uint32_t>(op) - UZIP_OP_USER, place = value % kPlaces;
  if (place >= table.places.size() || !table.places[place].op) return nullptr;
  return table.places[place].generation == value / kPlaces ? &table.places[place] : nullptr;
}

}  // namespace

Result<ReduceOp> add_user_op(const UserOp& op) {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  auto place = std::find_if(all.places.begin(), all.places.end(), [](const Place& other) { return !other.op; });
  if (place == all.places.end()) {
    if (all.places.size() == kPlaces)
      return error(UZIP_ERR_NO_MEMORY, "there are %u user-defined operations; free some", kPlaces);
    place = all.places.emplace(place);
  }
  place->op = std::make_shared<const UserOp>(op);
  const auto number = static_cast<uint32_t>(place - all.places.begin());
  return static_cast<ReduceOp>(UZIP_OP_USER + place->generation * kPlaces + number);
}

std::shared_ptr<const UserOp> find_user_op(ReduceOp op) {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  const Place* place = find_place(all, op);
  return place ? place->op : nullptr;
}

bool remove_user_op(ReduceOp op) {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  Place* place = find_place(all, op);
  if (!place) return false;
  *place = {nullptr, std::max((place->generation + 1) & kGenerationMask, 1u)};
  return true;
}

Status UserOp::reduce(DataType type, void* dst, std::span<const void* const> sources, size_t count) const try {
  if (count == 0) return Status();
  const size_t element = datatype_size(type);
  // Where the result goes over an operand other than the first, it is made elsewhere, block by block.
  const bool overwrites = std::find(sources.begin() + 1, sources.end(), dst) != sources.end();
  alignas(64) std::byte block[kBlockBytes];
  const size_t step = overwrites ? kBlockBytes / element : count;
  for (size_t begin = 0; begin < count; begin += step) {
    const size_t length = std::min(step, count - begin), offset = begin * element;
    auto* const result = static_cast<std::byte*>(dst) + offset;
    std::byte* const accumulator = overwrites ? block : result;
    const auto at = [&](const void* source) { return static_cast<const std::byte*>(source) + offset; };
    if (accumulator != at(sources[0])) std::memcpy(accumulator, at(sources[0]), length * element);
    for (const void* operand : sources.subspan(1)) function(accumulator, at(operand), length, type, context);
    if (overwrites) std::memcpy(result, block, length * element);
  }
  return Status();
} catch (const std::exception& exception) {
  return error(UZIP_ERR_INVALID, "a user-defined reduction threw an exception: %s", exception.what());
} catch (...) {
  return error(UZIP_ERR_INVALID, "a user-defined reduction threw an exception");
}

}  // namespace uzip
