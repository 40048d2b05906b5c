// The vocabulary of schedules: names, shapes, and the edges between steps.
#include "algos/schedule.hpp"

#include <cassert>
#include <numeric>

namespace uzip {

const char* coll_name(Coll coll) {
  switch (coll) {
    case Coll::kAllreduce:
      return "allreduce";
    case Coll::kReduceScatter:
      return "reduce_scatter";
    case Coll::kAllgather:
      return "allgather";
    case Coll::kBarrier:
      return "barrier";
    case Coll::kBcast:
      return "bcast";
    case Coll::kReduce:
      return "reduce";
    case Coll::kGather:
      return "gather";
    case Coll::kScatter:
      return "scatter";
    case Coll::kAlltoall:
      return "alltoall";
    case Coll::kAlltoallv:
      return "alltoallv";
    case Coll::kScan:
      return "scan";
    case Coll::kExscan:
      return "exscan";
  }
  return "unknown";
}

bool is_rooted(Coll coll) {
  return coll == Coll::kBcast || coll == Coll::kReduce || coll == Coll::kGather ||
         coll == Coll::kScatter;
}

bool is_of_vectors(Coll coll) {
  return layout_of(coll, Slot::kInput, true) == Layout::kVector;
}

Layout layout_of(Coll coll, Slot slot, bool is_root) {
  const bool input = slot == Slot::kInput;
  switch (coll) {
    case Coll::kAllreduce:
      return Layout::kVector;
    case Coll::kReduceScatter:
      return input ? Layout::kBlocks : Layout::kOwnBlock;
    case Coll::kAllgather:
      return input ? Layout::kOwnBlock : Layout::kBlocks;
    case Coll::kBarrier:
      return Layout::kNothing;
    case Coll::kBcast:
      return input && !is_root ? Layout::kNothing : Layout::kVector;
    case Coll::kReduce:
      return !input && !is_root ? Layout::kNothing : Layout::kVector;
    case Coll::kGather:
      return input ? Layout::kOwnBlock : is_root ? Layout::kBlocks : Layout::kNothing;
    case Coll::kScatter:
      return !input ? Layout::kOwnBlock : is_root ? Layout::kBlocks : Layout::kNothing;
    case Coll::kAlltoall:
    case Coll::kAlltoallv:
      return Layout::kBlocks;
    case Coll::kScan:
      return Layout::kVector;
    case Coll::kExscan:  // its root is rank 0, which gets nothing
      return !input && is_root ? Layout::kNothing : Layout::kVector;
  }
  return Layout::kNothing;
}

Shape Shape::of_rank(int rank) const {
  Shape part = *this;
  if (coll != Coll::kAlltoallv || !recv_counts.empty()) return part;
  const size_t ranks = static_cast<size_t>(size);
  const size_t own = static_cast<size_t>(rank);
  assert(counts.size() == ranks * ranks);
  part.counts.assign(counts.begin() + static_cast<std::ptrdiff_t>(own * ranks),
                     counts.begin() + static_cast<std::ptrdiff_t>((own + 1) * ranks));
  for (size_t from = 0; from < ranks; ++from) part.recv_counts.push_back(counts[from * ranks + own]);
  return part;
}

size_t Shape::total() const { return std::accumulate(counts.begin(), counts.end(), size_t{0}); }

size_t Shape::offset(int rank) const {
  assert(rank >= 0 && static_cast<size_t>(rank) <= counts.size());
  return std::accumulate(counts.begin(), counts.begin() + rank, size_t{0});
}

std::vector<size_t> even_shares(size_t total, int size) {
  assert(size > 0);
  const size_t ranks = static_cast<size_t>(size);
  std::vector<size_t> shares(ranks, total / ranks);
  for (size_t rank = 0; rank < total % ranks; ++rank) ++shares[rank];
  return shares;
}

const Slice& frame_of(const Step& step) {
  assert(step.verb == Verb::kDecodeReduce);
  size_t frame = 0;
  while (step.sources[frame].slot != Slot::kWire) ++frame;
  return step.sources[frame];
}

void link_dependents(Schedule& schedule) {
  schedule.dependents.assign(schedule.steps.size(), {});
  for (uint32_t step = 0; step < schedule.steps.size(); ++step) {
    for (uint32_t earlier : schedule.steps[step].depends_on) {
      schedule.dependents[earlier].push_back(step);
    }
  }
}

}  // namespace uzip
