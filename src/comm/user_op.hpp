// Reductions that the program defines (uzip_op_create): the callback, the values of uzip_op_t that stand for them, and
// how a step applies one.
#pragma once

#include "base/datatype.hpp"
#include "base/reduce.hpp"
#include "base/status.hpp"

#include <uzipcoll/uzipcoll.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace uzip {

struct UserOp {
  uzip_op_function_t function = nullptr;
  void* context = nullptr;
  bool commutative = false;

  /// dst[i] = sources[0][i] op sources[1][i] op ..., in this order. As reduce(): `dst` may be one of the sources, and
  /// a single source is copied. An error if the callback throws.
  Status reduce(DataType type, void* dst, std::span<const void* const> sources, size_t count) const;
};

/// What stands in a CallStamp for a user-defined operation: ranks number their own, so only their kind is compared.
inline constexpr uint8_t kUserOpInStamp = 0x80;
inline constexpr uint8_t kOrderedUserOpInStamp = 0x81;

inline bool is_user_op(ReduceOp op) { return static_cast<int64_t>(op) >= UZIP_OP_USER; }

/// A value for it, until it is removed.
Result<ReduceOp> add_user_op(const UserOp& op);
/// The operation, which lives as long as somebody holds it; null if there is none.
std::shared_ptr<const UserOp> find_user_op(ReduceOp op);
/// False if there was none.
bool remove_user_op(ReduceOp op);

}  // namespace uzip
