#include "ucx/operation.hpp"

#include <bit>
#include <new>

namespace uzip {
namespace {

// Room that an arrival keeps between messages: for the longest that come through queues.
constexpr size_t kKeptBytes = size_t{16} << 10;

}  // namespace

bool Arrival::make_room(size_t bytes) {
  if (owned_body && owned_bytes >= bytes) return true;
  if (bytes <= kKeptBytes) bytes = std::bit_ceil(bytes);  // messages of about this size will fit, too
  owned_body.reset(new (std::nothrow) std::byte[bytes]);
  owned_bytes = owned_body ? bytes : 0;
  return owned_body != nullptr;
}

Operation* OperationPool::take(Operation::Kind kind, int peer, Completion* completion) {
  if (free_.empty()) {
    const auto slot = static_cast<uint32_t>(slots_.size());
    slots_.emplace_back().id.slot = slot;
    free_.reserve(slots_.size());  // so that give() never allocates
    free_.push_back(slot);
  }
  Operation& operation = slots_[free_.back()];
  free_.pop_back();
  operation.kind = kind;
  operation.peer = peer;
  operation.completion = completion;
  return &operation;
}

void OperationPool::give(Operation* operation) {
  operation->kind = Operation::Kind::kFree;
  operation->with_ucx = false;
  operation->awaited = false;
  operation->completion = nullptr;
  ++operation->id.generation;
  free_.push_back(operation->id.slot);
}

Operation* OperationPool::find(OperationId id) {
  if (id.slot >= slots_.size()) return nullptr;
  Operation& operation = slots_[id.slot];
  return operation.kind != Operation::Kind::kFree && operation.id == id ? &operation : nullptr;
}

Arrival* ArrivalPool::take() {
  if (free_.empty()) {
    slots_.emplace_back();
    free_.reserve(slots_.size());
    free_.push_back(&slots_.back());
  }
  Arrival* arrival = free_.back();
  free_.pop_back();
  arrival->in_use = true;
  arrival->ended = false;
  arrival->held_by_ucx = false;
  return arrival;
}

void ArrivalPool::give(Arrival* arrival) {
  if (arrival->owned_bytes > kKeptBytes) {
    arrival->owned_body.reset();
    arrival->owned_bytes = 0;
  }
  arrival->in_use = false;
  free_.push_back(arrival);
}

}  // namespace uzip
