// Binds the buffers of gatherv, scatterv and alltoallv, whose ranks know only their own counts. Used by
// coll_buffers.cpp only.
#pragma once

#include "comm/coll_args.hpp"

namespace uzip {

/// Fills in pairs, src, dst and in_place; kind, type and root are there already.
Status bind_pairs(const uzip_coll_args_t& user, const CallContext& context, CollArgs& args);

}  // namespace uzip
