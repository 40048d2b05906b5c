// Element-wise reduction of arrays in the memory of a device, with the bits of base/reduce.hpp.
// Instantiated by reduce.cu.
#pragma once

#include "gpu/emit.hpp"

namespace uzip::gpu {

template <int kType>
UZIP_DEVICE void reduce_arrays(const ReduceArgs& args, bool aligned) {
  using Accumulator = typename AccumulatorOf<kType>::Type;
  using Bits = typename Accumulator::Bits;
  constexpr unsigned kSize = sizeof(Bits);
  const uint64_t step = static_cast<uint64_t>(grid_size()) * kThreads * kSegmentValues;
  for (uint64_t first =
           (static_cast<uint64_t>(block_index()) * kThreads + thread_index()) * kSegmentValues;
       first < args.count; first += step) {
    const uint64_t left = args.count - first;
    const unsigned count = left < kSegmentValues ? static_cast<unsigned>(left) : kSegmentValues;
    const bool whole = aligned && count == kSegmentValues;
    auto load = [&](unsigned source) {
      const uint8_t* const src = args.sources[source] + first * kSize;
      return whole ? load_values<kSize>(src) : load_some_values<kSize>(src, count, 0);
    };
    if (args.source_count == 2 && is_pair_sum(args.op, args.average_over)) {
      const Words<kSize> a = load(0);
      const Words<kSize> b = load(1);
      const Words<kSize> result = is_pair_average(args.op, args.average_over)
                                      ? combine_words<kType, true, kSize>(a, b)
                                      : combine_words<kType, false, kSize>(a, b);
      if (whole)
        store_values<kSize>(args.dst + first * kSize, result);
      else
        store_some_values<kSize>(args.dst + first * kSize, count, result);
      continue;
    }
    // One accumulator after another would read each source eight times from the cache.
    Words<kSize> words = load(0);
    Accumulator accumulators[kSegmentValues] = {
        {args.op, element_of<Bits>(words, 0)}, {args.op, element_of<Bits>(words, 1)},
        {args.op, element_of<Bits>(words, 2)}, {args.op, element_of<Bits>(words, 3)},
        {args.op, element_of<Bits>(words, 4)}, {args.op, element_of<Bits>(words, 5)},
        {args.op, element_of<Bits>(words, 6)}, {args.op, element_of<Bits>(words, 7)}};
    for (unsigned s = 1; s < args.source_count; ++s) {
      words = load(s);
      UZIP_UNROLL
      for (unsigned i = 0; i < kSegmentValues; ++i)
        accumulators[i].next(element_of<Bits>(words, i));
    }
    Words<kSize> result{};
    UZIP_UNROLL
    for (unsigned i = 0; i < kSegmentValues; ++i)
      put_element<Bits>(result, i, accumulators[i].result(args.average_over));
    if (whole)
      store_values<kSize>(args.dst + first * kSize, result);
    else
      store_some_values<kSize>(args.dst + first * kSize, count, result);
  }
}

}  // namespace uzip::gpu
