// Structs of the C API that grow at their end: a program may have been built with an older or a newer header than the
// library. The caller's struct_size says which.
#pragma once

#include "base/status.hpp"

#include <uzipcoll/uzipcoll.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

namespace uzip {

/// Size of a struct that ends with this member: for the first layout of each.
#define UZIP_SIZE_UP_TO(type, member) (offsetof(type, member) + sizeof(type::member))

/// Not even a newer header has larger ones: more is no initialisation.
inline constexpr size_t kMostStructBytes = 4096;

inline Status wrong_struct_size(const char* name, size_t size, size_t first, size_t current) {
  return error(UZIP_ERR_INVALID, "%s.struct_size is %zu; it must be sizeof(%s) = %zu (at least %zu)", name, size, name,
               current, first);
}

/// What the caller passed, as this library's header has it. A shorter struct is completed from `storage`, which holds
/// the values that the members it lacks have; a longer one must have zeros behind what is known here. Returns
/// `user` itself or `storage`.
template <class T>
Result<const T*> read_struct(const T& user, const char* name, size_t first, T& storage) {
  static_assert(std::is_trivially_copyable_v<T> && offsetof(T, struct_size) == 0);
  const size_t size = user.struct_size;
  if (size == sizeof(T)) return &user;
  if (size < first || size > kMostStructBytes || size % alignof(T) != 0)
    return wrong_struct_size(name, size, first, sizeof(T));
  const auto* bytes = reinterpret_cast<const unsigned char*>(&user);
  if (size > sizeof(T) && std::any_of(bytes + sizeof(T), bytes + size, [](unsigned char byte) { return byte != 0; }))
    return error(UZIP_ERR_UNSUPPORTED, "%s.struct_size is %zu, and something is set behind the %zu bytes that this "
                                       "version of the library knows", name, size, sizeof(T));
  std::memcpy(static_cast<void*>(&storage), bytes, std::min(size, sizeof(T)));
  return static_cast<const T*>(&storage);
}

/// Checks a struct that is to be filled in by write_struct().
template <class T>
Status check_written_struct(const T& user, const char* name, size_t first) {
  const size_t size = user.struct_size;
  if (size >= first && size <= kMostStructBytes && size % alignof(T) == 0) return Status();
  return wrong_struct_size(name, size, first, sizeof(T));
}

/// Fills in the members that the caller's struct has; those that only a newer header has become zero.
template <class T>
void write_struct(T value, T* user) {
  const size_t size = user->struct_size;
  value.struct_size = size;
  std::memcpy(static_cast<void*>(user), &value, std::min(size, sizeof(T)));
  if (size > sizeof(T)) std::memset(reinterpret_cast<unsigned char*>(user) + sizeof(T), 0, size - sizeof(T));
}

/// Of the first layouts.
inline constexpr size_t kFirstOptionsBytes = UZIP_SIZE_UP_TO(uzip_options_t, split_send);
inline constexpr size_t kFirstCollInfoBytes = UZIP_SIZE_UP_TO(uzip_coll_info_t, wire_bytes);
inline constexpr size_t kFirstCollArgsBytes = UZIP_SIZE_UP_TO(uzip_coll_args_t, info);
inline constexpr size_t kFirstOobBytes = UZIP_SIZE_UP_TO(uzip_oob_t, context);
inline constexpr size_t kFirstFrameInfoBytes = UZIP_SIZE_UP_TO(uzip_frame_info_t, checksum);
inline constexpr size_t kFirstNeighborsBytes = UZIP_SIZE_UP_TO(uzip_neighbors_t, recv_offsets);

}  // namespace uzip
