// One line of the output before its size is chosen: an operation for one type and one reduction,
// with the buffers and data that checking and timing share.
#pragma once

#include "bench_operation.hpp"
#include "bench_options.hpp"
#include "guarded_buffer.hpp"
#include "pattern.hpp"
#include "world.hpp"

#include <string>

namespace perf {

struct Buffers {
  GuardedBuffer source;
  GuardedBuffer result;     ///< also the one buffer of the in-place form
  GuardedBuffer reference;  ///< results of the plain run, to compare with
};

struct Case {
  const World& world;
  const Operation& operation;
  const Options& options;
  const ElementType& type;
  uzip_op_t op;
  Buffers& buffers;
  const Pattern& sample;  ///< realistic data, from sample_start(rank)

  Layout layout_of(size_t bytes) const {
    const size_t elements = bytes / type.size;
    return operation.layout(operation.count(elements, type.size, world.ranks()), world.rank(),
                            world.ranks());
  }
  std::byte* source(const Layout& layout, bool in_place) const {
    return in_place ? buffers.result.data() + layout.in_place_source * type.size
                    : buffers.source.data();
  }
  std::byte* result(const Layout& layout, bool in_place) const {
    return buffers.result.data() + (in_place ? layout.in_place_result * type.size : 0);
  }
  /// What a call gets is what was last pushed; what it has made must be pulled.
  void push() const {
    buffers.source.push();
    buffers.result.push();
  }
  void pull() const {
    buffers.source.pull();
    buffers.result.pull();
  }
  /// One call; `info` may be null.
  uzip_status_t run(const Layout& layout, bool in_place, const uzip_options_t& options,
                    uzip_coll_info_t* info) const {
    return operation.run(describe(layout, in_place, options, info));
  }
  /// The same, not waited for, out of place.
  uzip_status_t start(const Layout& layout, const uzip_options_t& options, uzip_request_t* request) const {
    return operation.start(describe(layout, false, options, nullptr), request);
  }
  Call describe(const Layout& layout, bool in_place, const uzip_options_t& options, uzip_coll_info_t* info) const {
    const GuardedBuffer& from = in_place ? buffers.result : buffers.source;
    return {from.passed(source(layout, in_place)), buffers.result.passed(result(layout, in_place)), layout.count,
            type.type, op, world.rank(), world.ranks(), &options, info, world.comm()};
  }
};

}  // namespace perf
