#include "versus_mpi.hpp"

#include "failure.hpp"

#ifdef PERF_WITH_MPI
#include <mpi.h>
#endif

#include <climits>
#include <cstdlib>

namespace perf {

bool VersusMpi::can_run(const Layout& layout) const { return layout.largest() <= INT_MAX; }

#ifdef PERF_WITH_MPI

namespace {

// MPI's type and, where it has none, an integer of the same width: the same bytes move, and the sum
// costs about as much as a sum can.
struct Stand {
  MPI_Datatype type;
  const char* stands_in;  // nullptr: it is the type itself
};

Stand mpi_type(uzip_dtype_t type) {
  // clang-format off
  switch (type) {
    case UZIP_INT8: return {MPI_INT8_T, nullptr};
    case UZIP_UINT8: return {MPI_UINT8_T, nullptr};
    case UZIP_INT32: return {MPI_INT32_T, nullptr};
    case UZIP_UINT32: return {MPI_UINT32_T, nullptr};
    case UZIP_INT64: return {MPI_INT64_T, nullptr};
    case UZIP_UINT64: return {MPI_UINT64_T, nullptr};
    case UZIP_FP32: return {MPI_FLOAT, nullptr};
    case UZIP_FP64: return {MPI_DOUBLE, nullptr};
    case UZIP_FP16:
    case UZIP_BF16: return {MPI_INT16_T, "MPI_INT16_T"};
    case UZIP_FP8_E4M3FN:
    case UZIP_FP8_E5M2: return {MPI_INT8_T, "MPI_INT8_T"};
  }
  // clang-format on
  return {MPI_BYTE, "MPI_BYTE"};
}

MPI_Op mpi_op(uzip_op_t op) {
  // clang-format off
  switch (op) {
    case UZIP_PROD: return MPI_PROD;
    case UZIP_MIN: return MPI_MIN;
    case UZIP_MAX: return MPI_MAX;
    case UZIP_SUM:
    case UZIP_AVG: break;
  }
  // clang-format on
  return MPI_SUM;
}

const char* function_name(MpiFunction function) {
  // clang-format off
  switch (function) {
    case MpiFunction::kAllreduce: return "MPI_Allreduce";
    case MpiFunction::kReduceScatterBlock: return "MPI_Reduce_scatter_block";
    case MpiFunction::kAllgather: return "MPI_Allgather";
    case MpiFunction::kSendrecv: break;
  }
  // clang-format on
  return "MPI_Sendrecv";
}

bool reduces(MpiFunction function) {
  return function == MpiFunction::kAllreduce || function == MpiFunction::kReduceScatterBlock;
}

}  // namespace

std::string mpi_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string version = text;
  return version.substr(0, version.find_first_of(",\n"));
}

std::string mpi_waiting_hint(bool more_ranks_than_cores) {
  const bool open_mpi = mpi_version().starts_with("Open MPI");
  if (!more_ranks_than_cores || !open_mpi) return "";
  const char* yields = std::getenv("OMPI_MCA_mpi_yield_when_idle");
  if (yields != nullptr && std::string(yields) == "1") return "";
  return "more ranks than cores: give mpirun '--mca mpi_yield_when_idle 1', or MPI waits by "
         "spinning";
}

VersusMpi::VersusMpi(MpiFunction function, const ElementType& type, uzip_op_t op, int rank,
                     int ranks)
    : function_(function), type_(type.type), op_(op), rank_(rank), ranks_(ranks) {
  description_ = function_name(function);
  const char* stands_in = mpi_type(type.type).stands_in;
  if (stands_in != nullptr) description_ += std::string(" of ") + stands_in + " for " + type.name;
  if (reduces(function) && op == UZIP_AVG) description_ += ", sum for avg";
}

void VersusMpi::run(const void* src, void* dst, const Layout& layout) const {
  const MPI_Datatype type = mpi_type(type_).type;
  const int count = static_cast<int>(layout.count);
  int error = MPI_SUCCESS;
  switch (function_) {
    case MpiFunction::kAllreduce:
      error = MPI_Allreduce(src, dst, count, type, mpi_op(op_), MPI_COMM_WORLD);
      break;
    case MpiFunction::kReduceScatterBlock:
      error = MPI_Reduce_scatter_block(src, dst, count, type, mpi_op(op_), MPI_COMM_WORLD);
      break;
    case MpiFunction::kAllgather:
      error = MPI_Allgather(src, count, type, dst, count, type, MPI_COMM_WORLD);
      break;
    case MpiFunction::kSendrecv:
      error = MPI_Sendrecv(src, count, type, (rank_ + 1) % ranks_, 0, dst, count, type,
                           (rank_ + ranks_ - 1) % ranks_, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      break;
  }
  if (error != MPI_SUCCESS) {
    throw Failure(kExitWrong, description_ + ": error " + std::to_string(error));
  }
}

void VersusMpi::barrier() { MPI_Barrier(MPI_COMM_WORLD); }

#else

std::string mpi_version() { return ""; }

std::string mpi_waiting_hint(bool) { return ""; }

VersusMpi::VersusMpi(MpiFunction function, const ElementType& type, uzip_op_t op, int rank,
                     int ranks)
    : function_(function), type_(type.type), op_(op), rank_(rank), ranks_(ranks) {}

void VersusMpi::run(const void*, void*, const Layout&) const {
  throw Failure(kExitUsage, "--versus mpi: this program was built without MPI");
}

void VersusMpi::barrier() {}

#endif

}  // namespace perf
