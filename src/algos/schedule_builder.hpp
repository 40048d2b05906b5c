// How an algorithm writes its schedule: steps in program order, dependencies derived from data
// hazards.
#pragma once

#include "algos/schedule.hpp"

#include <memory>
#include <span>

namespace uzip {

/// Every step depends on the earlier ones that touch the same memory, one of the two writing; in
/// place, kInput and kOutput are known to be the same. Sends are not ordered among each other,
/// since messages carry numbers. Steps on empty slices are dropped, and so are copies of a slice
/// onto itself; the two ends of a message always agree, since its length is the same on both.
class ScheduleBuilder {
 public:
  ScheduleBuilder(const Shape& shape, int rank);
  ~ScheduleBuilder();

  void send(Slice src, int peer);
  void recv(int peer, Slice dst);
  /// Several adjacent slices of one buffer in one message; with a codec, in a message and a frame for each, so that what
  /// came from elsewhere is passed on as it is. Both ends name pieces of the same lengths.
  void send(std::span<const Slice> pieces, int peer);
  void recv(int peer, std::span<const Slice> pieces);
  void copy(Slice src, Slice dst);
  /// dst = sources in this order; `last`: the value is complete (AVG divides here).
  void reduce(std::span<const Slice> sources, Slice dst, bool last);
  /// An empty message, for synchronisation. All earlier receives from anybody happen before it.
  void signal(int peer);
  void await_signal(int peer);

  /// Codec steps, for passes. In two parts, kPlain is encoded before kCoded; a whole place is
  /// decoded at once. `origin` as in Step.
  void encode(Slice src, Slice wire, Part part);
  void decode(Slice wire, Slice dst);
  /// As reduce(); one of the sources is a wire place.
  void decode_reduce(std::span<const Slice> sources, Slice dst, bool last);
  void send_wire(Slice wire, Part part, int peer, Slice origin);
  void recv_wire(int peer, Slice wire, Part part);
  /// A step of another schedule, with dependencies and a message number of its own; a message of several pieces is one.
  void add(const Step& step);

  /// New private elements, and a new place for a frame of `length` elements.
  Slice scratch(size_t length);
  Slice wire(size_t length);

  /// Slices of the caller's buffers by block, or of vectors by share (see Shape). Where a buffer
  /// holds only one block, only that of the own rank.
  Slice input_block(int rank) const;
  Slice output_block(int rank) const;

  /// The schedule, once.
  Schedule finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace uzip
