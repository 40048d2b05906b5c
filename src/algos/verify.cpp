// The verifier's parts in their order, each relying on those before: single steps, messages,
// hazards, values.
#include "algos/verify.hpp"

#include "algos/print.hpp"
#include "algos/verify_parts.hpp"

namespace uzip {

Ensemble::Ensemble(std::span<const Schedule> all, const Shape& of, bool ordered)
    : schedules(all), shape(of), counts(of.counts), in_rank_order(ordered) {
  counts.resize(schedules.size());
  for (size_t count : counts) {
    offsets.push_back(total);
    total += count;
  }
  for (int rank = 0; rank < size(); ++rank) {
    if (shape.coll == Coll::kAlltoallv) parts.push_back(shape.of_rank(rank));
    maps.emplace_back(shape_of(rank), rank);
    partners.emplace_back(schedules[rank].steps.size());
  }
}

Slice Ensemble::whole(Slot slot, int rank) const {
  if (slot == Slot::kScratch) return {slot, 0, schedules[rank].scratch_elements};
  switch (shape.layout(slot, rank)) {
    case Layout::kNothing:
      return {slot, 0, 0};
    case Layout::kOwnBlock:
      return {slot, 0, counts[rank]};
    case Layout::kVector:
      return {slot, 0, total};
    case Layout::kBlocks: {
      size_t elements = 0;
      for (size_t count : shape_of(rank).counts_of(slot)) elements += count;
      return {slot, 0, elements};
    }
  }
  return {slot, 0, 0};
}

std::string Ensemble::name(StepId id) const {
  return "rank " + std::to_string(id.rank) + " step " + std::to_string(id.step) + " (" +
         print_step(step(id)) + ")";
}

Status Ensemble::fault(StepId id, const std::string& what) const {
  return error(UZIP_ERR_INTERNAL, "%s: %s", name(id).c_str(), what.c_str());
}

Status verify(std::span<const Schedule> schedules, const Shape& shape, int orders, uint32_t seed, bool in_rank_order) {
  if (shape.size < 1 || schedules.size() != static_cast<size_t>(shape.size)) {
    return error(UZIP_ERR_INVALID, "%zu schedules for %d ranks", schedules.size(), shape.size);
  }
  const size_t ranks = schedules.size();
  const size_t counts = shape.coll == Coll::kAlltoallv ? ranks * ranks : ranks;
  if (shape.coll != Coll::kBarrier && shape.counts.size() != counts) {
    return error(UZIP_ERR_INVALID, "%zu counts for %d ranks", shape.counts.size(), shape.size);
  }
  Ensemble ensemble(schedules, shape, in_rank_order);
  for (int rank = 0; rank < shape.size; ++rank)
    UZIP_RETURN_IF_ERROR(check_structure(ensemble, rank));
  UZIP_RETURN_IF_ERROR(match_messages(ensemble));
  for (int rank = 0; rank < shape.size; ++rank) UZIP_RETURN_IF_ERROR(check_order(ensemble, rank));
  return run_symbolically(ensemble, orders, seed);
}

}  // namespace uzip
