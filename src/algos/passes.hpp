// Transformations of schedules. Each keeps the meaning: verify() accepts what it accepted before.
#pragma once

#include "algos/schedule.hpp"

namespace uzip {

/// Puts encode and decode around every send and receive of elements: what leaves the rank is a
/// frame. A slice that is sent several times is encoded once; a frame that was received and whose
/// elements have not changed since is forwarded as it is. Messages of no elements stay plain.
/// Between ranks of one host (Shape::hosts) elements stay plain.
/// Pieces of a message (Step::pieces) are frames of their own. What then fills scratch for nobody is dropped.
/// `split`: frames are encoded, sent and received in two parts (split-send).
Schedule lower_codec(const Schedule& schedule, const Shape& shape, int rank, bool split);

/// After lower_codec(): where the elements of a frame are needed for one reduction and nothing else,
/// decode and reduce become one decode_reduce; of each reduction for one frame. The values, their
/// order and the messages stay what they were; scratch that nobody uses any more is given up.
Schedule fuse(const Schedule& schedule, const Shape& shape, int rank);

/// Without the copies and decodings into scratch that no later step reads, and the scratch that nobody uses then.
Schedule drop_unread(Schedule schedule, const Shape& shape, int rank);

/// Moves what the steps use of scratch together. What does not overlap goes on not to, so that dependencies stay as they
/// are.
void compact_scratch(Schedule& schedule);

}  // namespace uzip
