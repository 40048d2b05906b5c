// What an algorithm predicts its time with: a machine in a few figures, and what one rank does in a call. Used by the
// cost() of algorithms; the selector fills in the figures.
#pragma once

#include "algos/schedule.hpp"

#include <algorithm>

namespace uzip {

/// Rank-invariant figures for predicting a time, in seconds and bytes.
struct CostModel {
  double latency = 0;           ///< of one message, until the other end has it
  double seconds_per_byte = 0;  ///< on the wire, per rank, while all send
  double alone_per_byte = 0;    ///< the same while one rank of each host sends to others; 0: as while all do
  double reduce_per_byte = 0;   ///< of operands, and of copies
  double ratio = 1;             ///< wire bytes per original byte
  double codec_per_byte = 0;    ///< encoding plus decoding
  double message = 0;           ///< what a message takes of a core, at either end; a part of `latency`
  double step = 0;              ///< what a copy or a reduction takes besides its bytes
  bool cores_carry = false;     ///< bytes go through the ranks' cores, which do nothing else meanwhile
  double local_latency = 0;     ///< between ranks of one host, if Shape::hosts or Shape::sockets tells them apart
  double local_message = 0;
  bool local_cores_carry = false;
  double local_seconds_per_byte = 0;
  double socket_latency = 0;  ///< between the sockets of a host
  double socket_seconds_per_byte = 0;  ///< of what all ranks of a socket send to others, or receive, together
  double ranks_per_socket = 0;         ///< of the largest, if hosts have several; 0: they don't, or nobody knows
  double chunk_bytes = 0;       ///< of one rank's share in one round; 0: the call is one round
};

/// What the rank with the most to do does in a call. Hops and bytes are those of the whole call, messages and steps
/// those of each round, which has a part of the bytes.
struct Work {
  double hops = 1;      ///< messages that wait for one another
  double messages = 0;  ///< others, that it sends and that it receives: half of the sum
  double steps = 0;     ///< copies and reductions
  double wire = 0;      ///< bytes that it sends, or receives if these are more
  double operands = 0;  ///< bytes that it reduces or copies
  double coded = 0;     ///< bytes that it encodes and decodes
};

/// Rounds of a call of `bytes`; a last one that is not full counts as a part.
inline double rounds_of(const Shape& shape, double bytes, const CostModel& model) {
  return model.chunk_bytes > 0 ? std::max(bytes / (model.chunk_bytes * shape.size), 1.0) : 1;
}

/// What one rank of a host takes on the wire for a byte, where those beside it send nothing.
inline double alone_per_byte(const CostModel& model) {
  return model.alone_per_byte > 0 ? model.alone_per_byte : model.seconds_per_byte;
}

/// For calls in which one rank has all to send or to receive.
inline CostModel of_one_rank(CostModel model) {
  model.seconds_per_byte = alone_per_byte(model);
  return model;
}

/// In a round a rank's messages go while bytes of others are on the wire, and it reduces when they are there; the next
/// rounds go on meanwhile. Where cores carry the bytes, one thing comes after the other.
inline double time_of(const Work& work, const Shape& shape, double bytes, const CostModel& model) {
  const double rounds = rounds_of(shape, bytes, model);
  const double hops = 2 * model.message * work.hops, messages = 2 * model.message * std::max(work.messages, 0.0);
  const double steps =
      model.step * work.steps + (work.operands * model.reduce_per_byte + work.coded * model.codec_per_byte) / rounds;
  const double wire = work.wire * model.ratio * model.seconds_per_byte / rounds;
  const double first = model.latency * work.hops + (model.cores_carry ? messages + wire : std::max(messages, wire)) + steps;
  const double more = hops + messages + steps;
  return first + (rounds - 1) * (model.cores_carry ? more + wire : std::max(more, wire));
}

}  // namespace uzip
