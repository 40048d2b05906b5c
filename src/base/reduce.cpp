// Chooses the kernel of a reduction: by CPU target, type and operation.
#include "base/reduce.hpp"

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "base/copy.hpp"
#include "base/cpu.hpp"
#include "base/float_environment.hpp"
#include "base/reduce_kernels.hpp"

#include <array>
#include <cassert>

namespace uzip {
namespace {

struct OpRow {
  ReduceOp op;
  const char* name;
};

constexpr std::array<OpRow, kReduceOps> kOps = {{
    {UZIP_SUM, "sum"},
    {UZIP_PROD, "prod"},
    {UZIP_MIN, "min"},
    {UZIP_MAX, "max"},
    {UZIP_AVG, "avg"},
}};

constexpr bool rows_are_in_order() {
  for (size_t i = 0; i < kOps.size(); ++i) {
    if (static_cast<size_t>(kOps[i].op) != i) return false;
  }
  return true;
}
static_assert(rows_are_in_order());

const ReduceKernels& kernels_for(CpuTarget target) {
  switch (target) {
#if defined(UZIP_HAVE_AVX2_KERNELS)
    case CpuTarget::kAvx2:
      return reduce_kernels_avx2;
#endif
#if defined(UZIP_HAVE_AVX512_KERNELS)
    case CpuTarget::kAvx512:
      return reduce_kernels_avx512;
#endif
    default:
      return reduce_kernels_portable;
  }
}

}  // namespace

bool is_reduce_op(ReduceOp op) { return static_cast<size_t>(op) < kOps.size(); }

const char* reduce_op_name(ReduceOp op) {
  assert(is_reduce_op(op));
  return kOps[static_cast<size_t>(op)].name;
}

int find_reduce_op(std::string_view name) {
  for (const OpRow& row : kOps) {
    if (name == row.name) return row.op;
  }
  return -1;
}

void reduce(ReduceOp op, DataType type, void* dst, std::span<const void* const> sources,
            size_t count, size_t average_over) {
  assert(is_reduce_op(op) && is_datatype(type) && !sources.empty());
  if (count == 0) return;
  const size_t bytes = count * datatype_size(type);
  if (op == UZIP_AVG && average_over == 0) op = UZIP_SUM;
  if (sources.size() == 1 && op != UZIP_AVG) {
    if (dst != sources[0]) copy_bytes(dst, sources[0], bytes);
    return;
  }
  const ReduceKernel kernel = kernels_for(cpu_target()).kernels[type][op];
  const DefaultFloatEnvironment shield;
  kernel(dst, sources.data(), sources.size(), bytes, average_over);
}

}  // namespace uzip
