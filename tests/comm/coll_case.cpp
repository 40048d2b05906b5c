#include "comm/coll_case.hpp"

#include "support/naive_types.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

namespace uzip {
namespace {

constexpr size_t kGuardBytes = 64;
constexpr unsigned char kGuard = 0xa5;

/// Bits that a careless move or reduction would change.
std::vector<uint64_t> special_bits(uzip_dtype_t type) {
  const naive::Format format = naive::format_of(type);
  const int bits = 8 * static_cast<int>(uzip_dtype_size(type));
  const uint64_t sign = uint64_t{1} << (bits - 1);
  if (format.exponent_bits == 0) return {0, 1, sign, sign - 1};
  const uint64_t one = uint64_t{1} << format.mantissa_bits;
  const uint64_t infinity = ((uint64_t{1} << format.exponent_bits) - 1) * one;
  return {0,
          sign,              // -0
          1,                 // the least denormal
          sign | (one - 1),  // the greatest, negative
          infinity,          // (of fp8_e4m3fn: a number)
          sign | infinity,
          infinity | 1,  // signalling NaN
          sign | infinity | (one - 1)};
}

void store_bits(std::vector<unsigned char>& array, size_t index, size_t size, uint64_t bits) {
  std::memcpy(array.data() + index * size, &bits, size);
}

}  // namespace

CollCase::CollCase(const CaseShape& shape)
    : shape_(shape),
      facts_(facts_of(shape.coll)),
      element_(uzip_dtype_size(shape.type)),
      ranks_(shape.counts.size()) {
  reset();
}

size_t CollCase::bytes_of(Holds holds, size_t rank) const {
  if (holds == Holds::kNothing) return 0;
  return (holds == Holds::kOwnBlock ? shape_.counts[rank] : total()) * element_;
}
size_t CollCase::total() const {
  if (facts_.src == Holds::kVector) return shape_.counts[0];
  return std::accumulate(shape_.counts.begin(), shape_.counts.end(), size_t{0});
}
size_t CollCase::block_begin(size_t rank) const {
  return std::accumulate(shape_.counts.begin(),
                         shape_.counts.begin() + static_cast<ptrdiff_t>(rank), size_t{0});
}

void CollCase::reset() {
  for (size_t r = 0; r < ranks_.size(); ++r) {
    fill_input(r);
    place(ranks_[r], r);
  }
}

// Small enough that 9 of them add up, or multiply, exactly even in fp8_e5m2.
double CollCase::exact_value(size_t rank, size_t index) const {
  const size_t draw = (index * 7 + rank * 3 + shape_.seed) % 5;
  const bool is_unsigned = shape_.type == UZIP_UINT8 || shape_.type == UZIP_UINT32 || shape_.type == UZIP_UINT64;
  if (is_unsigned) return shape_.op == UZIP_PROD ? (draw == 1 && rank < 2 ? 2 : 1) : static_cast<double>(draw);
  if (shape_.op == UZIP_PROD) return draw == 0 ? -1 : draw == 1 && rank < 2 ? 2 : 1;
  if (shape_.op == UZIP_MIN || shape_.op == UZIP_MAX) return static_cast<double>(draw) - 2;
  return rank >= 8 ? 0 : static_cast<double>(draw % 3) - 1;
}

double CollCase::reduced_value(size_t index, size_t end_rank) const {
  double value = exact_value(0, index);
  for (size_t r = 1; r < end_rank; ++r) {
    const double next = exact_value(r, index);
    switch (shape_.op) {
      case UZIP_PROD:
        value *= next;
        break;
      case UZIP_MIN:
        value = std::min(value, next);
        break;
      case UZIP_MAX:
        value = std::max(value, next);
        break;
      default:
        value += next;
    }
  }
  if (shape_.op != UZIP_AVG) return value;
  value /= static_cast<double>(ranks_.size());
  return naive::is_float(shape_.type) ? value : std::trunc(value);
}

void CollCase::fill_input(size_t rank) {
  const size_t count = bytes_of(src_of(rank), rank) / element_;
  std::vector<unsigned char>& input = ranks_[rank].input;
  input.assign(count * element_, 0);
  std::mt19937_64 random(shape_.seed * 1000 + rank);
  std::normal_distribution<double> normal(1, 0.25);
  const std::vector<uint64_t> special = special_bits(shape_.type);
  for (size_t i = 0; i < count; ++i) {
    switch (shape_.values) {
      case Values::kExact:
        naive::store(shape_.type, input.data(), i, exact_value(rank, i));
        break;
      case Values::kBits:
        store_bits(input, i, element_,
                   random() % 4 == 0 ? special[random() % special.size()] : random());
        break;
      case Values::kSmooth:
        naive::store(shape_.type, input.data(), i, normal(random));
        break;
    }
  }
}

unsigned char* CollCase::guarded(std::vector<unsigned char>& memory, size_t bytes, size_t skew) {
  memory.assign(bytes + 2 * kGuardBytes + skew, kGuard);
  return memory.data() + kGuardBytes + skew;
}

void CollCase::place(Rank& rank, size_t index) {
  constexpr Placement kTurns[] = {Placement::kApart, Placement::kOwnBlock, Placement::kInPlace};
  rank.placement = shape_.placement == Placement::kMixed ? kTurns[index % 3] : shape_.placement;
  const Holds src = src_of(index), dst = dst_of(index);
  if (src == Holds::kNothing || dst == Holds::kNothing) rank.placement = Placement::kApart;
  const size_t skew = index % 5 * element_;  // whole elements, but not vectors
  rank.src_bytes = bytes_of(src, index);
  rank.dst_bytes = bytes_of(dst, index);
  if (rank.placement == Placement::kApart) {
    rank.src = guarded(rank.memory[0], rank.src_bytes, skew);
    rank.dst = guarded(rank.memory[1], rank.dst_bytes, skew + element_);
  } else {
    unsigned char* whole = guarded(rank.memory[0], std::max(rank.src_bytes, rank.dst_bytes), skew);
    unsigned char* own = src == dst ? whole : whole + block_begin(index) * element_;
    rank.src = src == Holds::kOwnBlock ? own : whole;
    // As in MPI, the result of an in-place reduce-scatter goes to the front.
    const bool moves = facts_.reduces && rank.placement == Placement::kInPlace;
    rank.dst = dst == Holds::kOwnBlock && !moves ? own : whole;
  }
  if (!rank.input.empty()) std::memcpy(rank.src, rank.input.data(), rank.input.size());
}

std::vector<unsigned char>& CollCase::memory(int rank, size_t which) {
  return ranks_[static_cast<size_t>(rank)].memory[which];
}

void CollCase::pass_instead(int rank, size_t which, unsigned char* instead) {
  ranks_[static_cast<size_t>(rank)].instead[which] = instead;
}

unsigned char* CollCase::Rank::passed(unsigned char* place) const {
  for (size_t i = 0; i < 2; ++i) {
    if (!instead[i] || place < memory[i].data() || place >= memory[i].data() + memory[i].size()) continue;
    return instead[i] + (place - memory[i].data());
  }
  return place;
}

uzip_coll_args_t CollCase::args(int rank, const uzip_options_t* options) {
  const Rank& r = ranks_[static_cast<size_t>(rank)];
  uzip_coll_args_t args = {};
  args.struct_size = sizeof args;
  args.coll = shape_.coll;
  args.src = r.placement == Placement::kInPlace ? UZIP_IN_PLACE : r.passed(r.src);
  args.dst = r.passed(r.dst);
  if (shape_.coll == UZIP_SCATTER && r.placement == Placement::kInPlace) {
    args.src = r.passed(r.src);
    args.dst = UZIP_IN_PLACE;
  }
  args.count = facts_.has_counts ? 0 : shape_.counts[0];
  args.counts = facts_.has_counts ? shape_.counts.data() : nullptr;
  args.dtype = shape_.type;
  args.op = shape_.op;
  args.options = options;
  args.root = shape_.root;
  return args;
}

const unsigned char* CollCase::result(size_t rank) const { return ranks_[rank].dst; }

size_t CollCase::result_bytes(size_t rank) const { return ranks_[rank].dst_bytes; }

// A prefix reduction's result depends on the rank.
size_t CollCase::reduced_ranks(size_t rank) const {
  if (shape_.coll == UZIP_SCAN) return rank + 1;
  return shape_.coll == UZIP_EXSCAN ? rank : ranks_.size();
}

std::vector<unsigned char> CollCase::block_of(size_t from, size_t to) const {
  const auto begin = ranks_[from].input.begin() + static_cast<ptrdiff_t>(block_begin(to) * element_);
  return {begin, begin + static_cast<ptrdiff_t>(shape_.counts[to] * element_)};
}

std::vector<unsigned char> CollCase::expected(size_t rank) const {
  std::vector<unsigned char> bytes;
  if (shape_.coll == UZIP_BCAST) return ranks_[static_cast<size_t>(shape_.root)].input;
  if (shape_.coll == UZIP_SCATTER) return block_of(static_cast<size_t>(shape_.root), rank);
  if (shape_.coll == UZIP_ALLTOALL) {
    for (size_t from = 0; from < ranks_.size(); ++from) {
      const std::vector<unsigned char> block = block_of(from, rank);
      bytes.insert(bytes.end(), block.begin(), block.end());
    }
    return bytes;
  }
  if (!facts_.reduces) {
    for (const Rank& r : ranks_) bytes.insert(bytes.end(), r.input.begin(), r.input.end());
    return bytes;
  }
  bytes.resize(result_bytes(rank));
  const size_t begin = facts_.dst == Holds::kOwnBlock ? block_begin(rank) : 0;
  for (size_t i = 0; i < bytes.size() / element_; ++i) {
    naive::store(shape_.type, bytes.data(), i, reduced_value(begin + i, reduced_ranks(rank)));
  }
  return bytes;
}

bool CollCase::guards_hold(const Rank& rank) const {
  const auto is_guard = [](unsigned char byte) { return byte == kGuard; };
  for (const std::vector<unsigned char>& memory : rank.memory) {
    if (memory.empty()) continue;
    if (!std::all_of(memory.begin(), memory.begin() + kGuardBytes, is_guard)) return false;
    if (!std::all_of(memory.end() - kGuardBytes, memory.end(), is_guard)) return false;
  }
  return true;
}

std::string CollCase::check_result(size_t rank) const {
  if (dst_of(rank) == Holds::kNothing || reduced_ranks(rank) == 0) return "";
  if (!facts_.reduces || shape_.values == Values::kExact) {
    const std::vector<unsigned char> right = expected(rank);
    for (size_t i = 0; i < right.size(); ++i) {
      if (result(rank)[i] != right[i])
        return "element " + std::to_string(i / element_) + " is wrong";
    }
  } else if (shape_.coll == UZIP_ALLREDUCE) {
    if (!std::equal(result(rank), result(rank) + result_bytes(rank), result(0))) {
      return "differs from rank 0";
    }
  }
  return "";
}

std::string CollCase::check(int rank) const {
  const Rank& r = ranks_[static_cast<size_t>(rank)];
  std::string wrong = check_result(static_cast<size_t>(rank));
  if (!guards_hold(r)) wrong += ", wrote beyond its buffer";
  if (r.placement == Placement::kApart && !std::equal(r.input.begin(), r.input.end(), r.src)) {
    wrong += ", changed its source";
  }
  return wrong.empty() ? "" : describe() + ", rank " + std::to_string(rank) + ": " + wrong;
}

std::string CollCase::check() const {
  std::string wrong;
  for (size_t r = 0; r < ranks_.size() && wrong.empty(); ++r) wrong = check(static_cast<int>(r));
  return wrong;
}

uint64_t CollCase::hash() const {
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t r = 0; r < ranks_.size(); ++r) {
    for (size_t i = 0; i < result_bytes(r); ++i) hash = (hash ^ result(r)[i]) * 0x100000001b3u;
  }
  return hash;
}

std::string CollCase::describe() const {
  std::string text = std::string(facts_.name) + " of " + uzip_dtype_name(shape_.type) +
                     " (" + uzip_op_name(shape_.op) + "), placement " +
                     std::to_string(static_cast<int>(shape_.placement)) + ", counts";
  for (size_t count : shape_.counts) text += " " + std::to_string(count);
  return text;
}

}  // namespace uzip
