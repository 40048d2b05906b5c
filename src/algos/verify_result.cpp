// What a collective promises of its output, compared with what a symbolic run made of it.
#include "algos/symbols.hpp"
#include "algos/verify_parts.hpp"

namespace uzip {
namespace {

Status check_rank_order(const Ensemble& ensemble, const Expressions& expressions, int rank, const SymbolRun& run) {
  if (!ensemble.in_rank_order || expressions.in_rank_order(run.expression)) return Status();
  return error(UZIP_ERR_INTERNAL, "rank %d: element %zu of the result is %s, which is not in the order of the ranks",
               rank, run.index, expressions.text(run.expression).c_str());
}

// The right elements, every rank's contribution in each, the same order of reduction on all ranks.
Status check_reduced(const Ensemble& ensemble, const Expressions& expressions, int rank,
                     const Symbols& output, const Symbols& first) {
  const bool scattered = ensemble.shape.coll == Coll::kReduceScatter;
  size_t position = scattered ? ensemble.offsets[rank] : 0;
  for (const SymbolRun& run : output) {
    if (run.index != position) {
      return error(UZIP_ERR_INTERNAL, "rank %d: element %zu of the result stands where %zu belongs",
                   rank, run.index, position);
    }
    if (!expressions.complete(run.expression)) {
      return error(UZIP_ERR_INTERNAL, "rank %d: element %zu of the result is %s only", rank,
                   position, expressions.text(run.expression).c_str());
    }
    if (ensemble.size() > 1 && !expressions.averaged(run.expression)) {
      return error(UZIP_ERR_INTERNAL, "rank %d: no reduction of element %zu is marked as the last",
                   rank, position);
    }
    UZIP_RETURN_IF_ERROR(check_rank_order(ensemble, expressions, rank, run));
    position += run.length;
  }
  if (scattered || output == first) return Status();
  return error(UZIP_ERR_INTERNAL, "rank %d reduces in another order than rank 0: %s, not %s", rank,
               expressions.text(output[0].expression).c_str(),
               expressions.text(first[0].expression).c_str());
}

// The right elements, with the contributions of the first `ranks` ranks.
Status check_prefix(const Ensemble& ensemble, const Expressions& expressions, int rank, const Symbols& output,
                    size_t ranks) {
  size_t position = 0;
  for (const SymbolRun& run : output) {
    if (run.index != position) {
      return error(UZIP_ERR_INTERNAL, "rank %d: element %zu of the result stands where %zu belongs",
                   rank, run.index, position);
    }
    if (!expressions.is_prefix(run.expression, ranks)) {
      return error(UZIP_ERR_INTERNAL, "rank %d: element %zu of the result is %s, not that of the first %zu ranks",
                   rank, position, expressions.text(run.expression).c_str(), ranks);
    }
    if (expressions.averaged(run.expression)) {
      return error(UZIP_ERR_INTERNAL, "rank %d: element %zu of a prefix is divided", rank, position);
    }
    UZIP_RETURN_IF_ERROR(check_rank_order(ensemble, expressions, rank, run));
    position += run.length;
  }
  return Status();
}

// What the collective only moves must be in its place.
Status check_moved(const Ensemble& ensemble, int rank, const Symbols& output) {
  const Coll coll = ensemble.shape.coll;
  const uint32_t root = static_cast<uint32_t>(ensemble.shape.root);
  Symbols expected;
  if (coll == Coll::kBcast) {
    append_run(expected, {ensemble.total, root, 0});
  } else if (coll == Coll::kScatter) {
    append_run(expected, {ensemble.counts[rank], root, ensemble.offsets[rank]});
  } else if (coll == Coll::kAlltoallv) {
    for (int from = 0; from < ensemble.size(); ++from) {
      const Shape& theirs = ensemble.shape_of(from);
      const size_t count = theirs.counts[rank];
      if (count > 0) append_run(expected, {count, static_cast<uint32_t>(from), theirs.offset(rank)});
    }
  } else {
    for (int from = 0; from < ensemble.size(); ++from) {
      // All-to-all: everybody's block for this rank.
      const int block = coll == Coll::kAlltoall ? rank : from;
      const size_t count = ensemble.counts[block];
      if (count > 0)
        append_run(expected, {count, static_cast<uint32_t>(from), ensemble.offsets[block]});
    }
  }
  if (output == expected) return Status();
  for (size_t i = 0; i < output.size(); ++i) {
    if (i < expected.size() && output[i] == expected[i]) continue;
    return error(UZIP_ERR_INTERNAL,
                 "rank %d: %zu elements of the result are rank %u's from element %zu on", rank,
                 output[i].length, output[i].expression, output[i].index);
  }
  return error(UZIP_ERR_INTERNAL, "rank %d: the result is too short", rank);
}

}  // namespace

Status check_result(const Ensemble& ensemble, const Expressions& expressions, int rank,
                    const Symbols& output, const Symbols& first) {
  switch (ensemble.shape.coll) {
    case Coll::kAllreduce:
    case Coll::kReduceScatter:
    case Coll::kReduce:
      return check_reduced(ensemble, expressions, rank, output, first);
    case Coll::kAllgather:
    case Coll::kBcast:
    case Coll::kGather:
    case Coll::kScatter:
    case Coll::kAlltoall:
    case Coll::kAlltoallv:
      return check_moved(ensemble, rank, output);
    case Coll::kScan:
      return check_prefix(ensemble, expressions, rank, output, static_cast<size_t>(rank) + 1);
    case Coll::kExscan:
      return check_prefix(ensemble, expressions, rank, output, static_cast<size_t>(rank));
    case Coll::kBarrier:
      return Status();
  }
  return Status();
}

}  // namespace uzip
