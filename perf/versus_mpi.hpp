// MPI's own collectives, to compare with. The rest of the programs does not see MPI.
#pragma once

#include "bench_operation.hpp"
#include "element_types.hpp"

#include <string>

namespace perf {

/// Name and version of the MPI in use, in one line; "" when built without.
std::string mpi_version();
/// A hint if MPI's waiting ranks would keep the core from the others, "" if all is well.
std::string mpi_waiting_hint(bool more_ranks_than_cores);

/// One function of MPI for one type and operation.
class VersusMpi {
 public:
  VersusMpi(MpiFunction function, const ElementType& type, uzip_op_t op, int rank, int ranks);

  /// "MPI_Allreduce", with what stands in for a type or an operation that MPI lacks:
  /// "MPI_Allreduce of MPI_INT16_T for bfloat16".
  const std::string& description() const { return description_; }
  /// MPI counts with int.
  bool can_run(const Layout& layout) const;
  /// Blocks in MPI. All ranks must have left the library's previous call, see time_calls(). Throws
  /// Failure.
  void run(const void* src, void* dst, const Layout& layout) const;
  /// Blocks until all ranks have called it.
  static void barrier();

 private:
  MpiFunction function_;
  uzip_dtype_t type_;
  uzip_op_t op_;
  int rank_;
  int ranks_;
  std::string description_;
};

}  // namespace perf
