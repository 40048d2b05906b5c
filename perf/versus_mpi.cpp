#include "versus_mpi.hpp"

#include "failure.hpp"

#ifdef PERF_WITH_MPI
#include <mpi.h>
#endif

#include <climits>
#include <cstdlib>

namespace perf {

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
    case UZIP_AVG:
    case UZIP_OP_USER: break;  // none of the measured ones
  }
  // clang-format on
  return MPI_SUM;
}

const char* function_name(OperationKind kind) {
  // clang-format off
  switch (kind) {
    case OperationKind::kAllreduce: return "MPI_Allreduce";
    case OperationKind::kReduceScatter: return "MPI_Reduce_scatter_block";
    case OperationKind::kAllgather: return "MPI_Allgather";
    case OperationKind::kHalo: return "MPI_Isend and MPI_Irecv";
    case OperationKind::kAlltoall: return "MPI_Alltoall";
    case OperationKind::kBcast: return "MPI_Bcast";
    case OperationKind::kReduce: return "MPI_Reduce";
    case OperationKind::kSendrecv: break;
  }
  // clang-format on
  return "MPI_Sendrecv";
}

std::string describe_call(const Case& bench) {
  std::string text = function_name(bench.operation.kind);
  const char* stands_in = mpi_type(bench.type.type).stands_in;
  if (stands_in != nullptr) text += std::string(" of ") + stands_in + " for " + bench.type.name;
  if (bench.operation.reduces && bench.op == UZIP_AVG) text += ", sum for avg";
  return text;
}

class MpiPeer : public Peer {
 public:
  explicit MpiPeer(const Case& bench)
      : Peer(PeerKind::kMpi, describe_call(bench)),
        bench_(bench),
        type_(mpi_type(bench.type.type).type),
        op_(mpi_op(bench.op)) {}

  // MPI counts with int.
  bool can_run(const Layout& layout) const override { return layout.largest() <= INT_MAX; }
  void run(const Layout& layout) override {
    const int error = call(bench_.source(layout, false), bench_.result(layout, false),
                           static_cast<int>(layout.count));
    if (error != MPI_SUCCESS)
      throw Failure(kExitWrong, description() + ": error " + std::to_string(error));
  }
  void barrier() override { MPI_Barrier(MPI_COMM_WORLD); }

 private:
  int call(const void* src, void* dst, int count) const {
    const int rank = bench_.world.rank(), ranks = bench_.world.ranks();
    switch (bench_.operation.kind) {
      case OperationKind::kAllreduce:
        return MPI_Allreduce(src, dst, count, type_, op_, MPI_COMM_WORLD);
      case OperationKind::kReduceScatter:
        return MPI_Reduce_scatter_block(src, dst, count, type_, op_, MPI_COMM_WORLD);
      case OperationKind::kAllgather:
        return MPI_Allgather(src, count, type_, dst, count, type_, MPI_COMM_WORLD);
      case OperationKind::kHalo:
        return exchange_halo(src, dst, count);
      case OperationKind::kAlltoall:
        return MPI_Alltoall(src, count, type_, dst, count, type_, MPI_COMM_WORLD);
      case OperationKind::kBcast:
        return MPI_Bcast(rank == 0 ? const_cast<void*>(src) : dst, count, type_, 0, MPI_COMM_WORLD);
      case OperationKind::kReduce:
        return MPI_Reduce(src, dst, count, type_, op_, 0, MPI_COMM_WORLD);
      case OperationKind::kSendrecv:
        break;
    }
    return MPI_Sendrecv(src, count, type_, (rank + 1) % ranks, 0, dst, count, type_,
                        (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }

  // As perf/halo does it: the first half for the rank before this one, the second for the next.
  int exchange_halo(const void* src, void* dst, int count) const {
    const int rank = bench_.world.rank(), ranks = bench_.world.ranks();
    const int before = (rank + ranks - 1) % ranks, after = (rank + 1) % ranks;
    const size_t half = static_cast<size_t>(count) * bench_.type.size;
    const auto* out = static_cast<const std::byte*>(src);
    auto* in = static_cast<std::byte*>(dst);
    constexpr int kDown = 0, kUp = 1;
    MPI_Request requests[4];
    MPI_Irecv(in, count, type_, before, kUp, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(in + half, count, type_, after, kDown, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(out, count, type_, before, kDown, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(out + half, count, type_, after, kUp, MPI_COMM_WORLD, &requests[3]);
    return MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
  }

  const Case& bench_;
  MPI_Datatype type_;
  MPI_Op op_;
};

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

std::unique_ptr<Peer> make_mpi_peer(const Case& bench) { return std::make_unique<MpiPeer>(bench); }

#else

std::string mpi_version() { return ""; }

std::string mpi_waiting_hint(bool) { return ""; }

std::unique_ptr<Peer> make_mpi_peer(const Case&) { return nullptr; }

#endif

}  // namespace perf
