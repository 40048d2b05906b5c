// Element-wise reduction of any number of sources, and the names of the operations.
// The CPU executor calls reduce(); algorithms only carry the ReduceOp along.
#pragma once

#include "base/datatype.hpp"

#include <cstddef>
#include <span>
#include <string_view>

namespace uzip {

using ReduceOp = uzip_op_t;

bool is_reduce_op(ReduceOp op);
const char* reduce_op_name(ReduceOp op);
/// The operation of this name ("sum"), or -1 as its value when there is none.
int find_reduce_op(std::string_view name);

/// dst[i] = sources[0][i] op sources[1][i] op ..., evaluated in that order, i < count.
///   - 8- and 16-bit floats accumulate in binary32 and are rounded once, to nearest even; binary32 and
///     binary64 accumulate in their own type; integers wrap.
///   - UZIP_AVG sums; the division happens only where `average_over` > 0 (the last reduction of the value): the
///     accumulator is divided by it before the rounding (integers truncate towards zero).
///   - A NaN result is the type's canonical quiet NaN (sign 0; for fp8_e4m3fn 0x7f), whatever the operands;
///     MIN and MAX yield NaN if any operand is NaN, and order -0 below +0.
///   - With one source (and no division) it is a plain copy of the bits.
///   - The caller's rounding mode, flushing of denormals and traps have no influence.
/// `dst` may be the same array as one of the sources; other overlaps are not allowed. No alignment is needed.
/// Every target gives the same bits. Never allocates, never fails: arguments are the caller's to check.
void reduce(ReduceOp op, DataType type, void* dst, std::span<const void* const> sources, size_t count,
            size_t average_over = 0);

}  // namespace uzip
