#include "bench_check.hpp"

#include "exact_data.hpp"

#include <algorithm>
#include <cstring>

namespace perf {
namespace {

// A hash of all bytes, of which any single difference changes the value.
uint64_t hash_bytes(const std::byte* data, size_t size) {
  uint64_t hash = size;
  for (size_t at = 0; at < size; at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, data + at, std::min(sizeof(word), size - at));
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
  }
  return hash;
}

// The checks of one line, out of place or in place.
class Checker {
 public:
  Checker(const Case& bench, size_t bytes, bool in_place)
      : bench_(bench), layout_(bench.layout_of(bytes)), in_place_(in_place) {}

  size_t check_exact_data(const ExactPatterns& exact) const {
    prepare(exact.source, layout_.source_first);
    require(bench_.run(layout_, in_place_, bench_.options.call_options(), nullptr), what());
    bench_.pull();
    if (bench_.world.is_root()) corrupt_if(Corruption::kExact);
    size_t wrong = count_wrong(exact.result);
    if (!in_place_) {
      wrong += exact.source.count_differences(bench_.buffers.source.data(), layout_.source_first,
                                              layout_.send);
    }
    return wrong + trespasses();
  }

  size_t check_sample_data() const {
    uzip_options_t options = bench_.options.call_options();
    options.codec = "raw";
    run_sample(options);
    GuardedBuffer& reference = bench_.buffers.reference;
    std::copy_n(result(), result_bytes(), reference.data());
    run_sample(bench_.options.call_options());
    if (bench_.world.is_root()) corrupt_if(Corruption::kBits);
    const size_t wrong =
        count_differing_elements(reference.data(), result(), layout_.receive, bench_.type.size);
    return wrong + trespasses() + count_other_than_root();
  }

 private:
  const char* what() const { return bench_.operation.name; }

  // Elements of the result that are not those of `pattern`.
  size_t count_wrong(const Pattern& pattern) const {
    const size_t each = layout_.receive / layout_.pieces;
    size_t wrong = 0;
    for (size_t i = 0; i < layout_.pieces; ++i) {
      const auto first = static_cast<ptrdiff_t>(layout_.result_first) +
                         static_cast<ptrdiff_t>(i) * layout_.piece_distance;
      wrong += pattern.count_differences(result() + i * each * bench_.type.size,
                                         static_cast<size_t>(first), each);
    }
    return wrong;
  }

  std::byte* result() const { return bench_.result(layout_, in_place_); }
  size_t result_bytes() const { return layout_.receive * bench_.type.size; }

  // Fills the source from `pattern` and everything that will be written with other bytes.
  void prepare(const Pattern& pattern, size_t first) const {
    const size_t size = bench_.type.size;
    bench_.buffers.source.arm(layout_.send * size);
    bench_.buffers.result.arm((in_place_ ? layout_.largest() : layout_.receive) * size);
    bench_.buffers.result.poison();
    pattern.fill(bench_.source(layout_, in_place_), first, layout_.send);
    bench_.push();
  }

  void run_sample(const uzip_options_t& options) const {
    prepare(bench_.sample, sample_start(bench_.world.rank()));
    require(bench_.run(layout_, in_place_, options, nullptr), what());
    bench_.pull();
    if (bench_.world.rank() == bench_.world.ranks() - 1) corrupt_if(Corruption::kRanks);
  }

  // Falsifies the lowest bit of the result's last element.
  void corrupt_if(Corruption corruption) const {
    if (bench_.options.corruption != corruption || layout_.receive == 0) return;
    result()[result_bytes() - bench_.type.size] ^= std::byte{1};
  }

  size_t trespasses() const {
    GuardedBuffer& buffer = bench_.buffers.result;
    if (bench_.options.corruption == Corruption::kGuard) buffer.data()[-1] ^= std::byte{1};
    return buffer.count_trespasses() + bench_.buffers.source.count_trespasses();
  }

  // Counted on rank 0 only, so that the sum over the ranks counts each rank once.
  size_t count_other_than_root() const {
    if (!bench_.operation.same_everywhere) return 0;
    const uint64_t mine[] = {hash_bytes(result(), result_bytes())};
    const std::vector<uint64_t> all = bench_.world.gather(mine);
    if (!bench_.world.is_root()) return 0;
    return all.size() - static_cast<size_t>(std::ranges::count(all, mine[0]));
  }

  const Case& bench_;
  Layout layout_;
  bool in_place_;
};

}  // namespace

ExactPatterns exact_patterns(const Case& bench) {
  if (!bench.operation.reduces) return {exact_moved(bench.type), exact_moved(bench.type)};
  const int ranks = bench.world.ranks();
  return {exact_contribution(bench.type, bench.op, bench.world.rank(), ranks),
          exact_result(bench.type, bench.op, ranks)};
}

size_t check(const Case& bench, const ExactPatterns& exact, size_t bytes, bool in_place) {
  const Checker checker(bench, bytes, in_place);
  uint64_t wrong[] = {0};
  for (int i = 0; i < bench.options.checks; ++i) {
    wrong[0] += checker.check_exact_data(exact);
    wrong[0] += checker.check_sample_data();
  }
  uint64_t total = 0;
  for (uint64_t of_rank : bench.world.gather(wrong)) total += of_rank;
  return total;
}

}  // namespace perf
