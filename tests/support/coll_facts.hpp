// What tests know of each collective by themselves, without asking src/: which rank holds what, before and after.
#pragma once

#include <uzipcoll/uzipcoll.h>

namespace uzip {

/// What a buffer of a collective holds.
enum class Holds { kNothing, kVector, kOwnBlock, kAllBlocks };

struct CollFacts {
  const char* name;
  Holds src;
  Holds dst;
  bool reduces = false;
  bool src_at_root = false;  ///< only there
  bool dst_at_root = false;
  bool has_counts = false;  ///< the v forms

  bool rooted() const { return src_at_root || dst_at_root; }
  Holds src_of(int rank, int root) const { return src_at_root && rank != root ? Holds::kNothing : src; }
  Holds dst_of(int rank, int root) const { return dst_at_root && rank != root ? Holds::kNothing : dst; }
};

/// By uzip_coll_t.
inline constexpr CollFacts kCollFacts[] = {
    {"allreduce", Holds::kVector, Holds::kVector, true},
    {"reduce_scatter", Holds::kAllBlocks, Holds::kOwnBlock, true},
    {"reduce_scatterv", Holds::kAllBlocks, Holds::kOwnBlock, true, false, false, true},
    {"allgather", Holds::kOwnBlock, Holds::kAllBlocks},
    {"allgatherv", Holds::kOwnBlock, Holds::kAllBlocks, false, false, false, true},
    {"barrier", Holds::kNothing, Holds::kNothing},
    {"bcast", Holds::kVector, Holds::kVector, false, true},
    {"reduce", Holds::kVector, Holds::kVector, true, false, true},
    {"gather", Holds::kOwnBlock, Holds::kAllBlocks, false, false, true},
    {"gatherv", Holds::kOwnBlock, Holds::kAllBlocks, false, false, true, true},
    {"scatter", Holds::kAllBlocks, Holds::kOwnBlock, false, true},
    {"scatterv", Holds::kAllBlocks, Holds::kOwnBlock, false, true, false, true},
    {"alltoall", Holds::kAllBlocks, Holds::kAllBlocks},
    {"alltoallv", Holds::kAllBlocks, Holds::kAllBlocks, false, false, false, true},
    {"scan", Holds::kVector, Holds::kVector, true},
    {"exscan", Holds::kVector, Holds::kVector, true},
};
inline const CollFacts& facts_of(uzip_coll_t coll) { return kCollFacts[coll]; }

}  // namespace uzip
