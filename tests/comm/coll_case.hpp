// One collective call on all ranks of a job: buffers with guards around them, inputs, and what must
// come out, by a naive opinion that shares no code with src/.
#pragma once

#include "support/coll_facts.hpp"

#include <uzipcoll/uzipcoll.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace uzip {

/// Where source and destination lie.
enum class Placement {
  kApart,
  kInPlace,   ///< UZIP_IN_PLACE
  kOwnBlock,  ///< source and destination meet in the own block; if they are alike: src == dst
  kMixed,     ///< each rank another of the above
};
inline constexpr Placement kPlacements[] = {Placement::kApart, Placement::kInPlace,
                                            Placement::kOwnBlock, Placement::kMixed};

enum class Values {
  kExact,   ///< small integers: every order of reduction gives the same
  kBits,    ///< any bits, with NaN, infinities, denormals, -0
  kSmooth,  ///< floats around 1 that compress
};

struct CaseShape {
  uzip_coll_t coll = UZIP_ALLREDUCE;
  uzip_dtype_t type = UZIP_FP32;
  uzip_op_t op = UZIP_SUM;
  std::vector<size_t> counts;  ///< one for each rank; the v forms only may have different ones
  Placement placement = Placement::kApart;
  Values values = Values::kExact;
  uint64_t seed = 1;
  int root = 0;
};

class CollCase {
 public:
  explicit CollCase(const CaseShape& shape);

  /// Fresh inputs in the buffers of all ranks.
  void reset();
  uzip_coll_args_t args(int rank, const uzip_options_t* options = nullptr);

  /// The arrays that a rank's buffers lie in, guards included. args() passes the same places of `instead`, once that
  /// was given, for the test to copy to and from.
  std::vector<unsigned char>& memory(int rank, size_t which);
  void pass_instead(int rank, size_t which, unsigned char* instead);

  /// "" if the result of every rank is right, sources and guards are untouched. Of reductions of
  /// other than exact values only that all ranks have the same.
  std::string check() const;
  std::string check(int rank) const;
  /// Of all results.
  uint64_t hash() const;

  std::string describe() const;

 private:
  struct Rank {
    std::vector<unsigned char> input;  // what it contributes
    std::vector<unsigned char> memory[2];
    unsigned char* instead[2] = {};
    unsigned char* passed(unsigned char* place) const;
    unsigned char* src = nullptr;
    unsigned char* dst = nullptr;
    size_t src_bytes = 0;
    size_t dst_bytes = 0;
    Placement placement = Placement::kApart;
  };

  Holds src_of(size_t rank) const { return facts_.src_of(static_cast<int>(rank), shape_.root); }
  Holds dst_of(size_t rank) const { return facts_.dst_of(static_cast<int>(rank), shape_.root); }
  size_t bytes_of(Holds holds, size_t rank) const;
  size_t total() const;
  size_t block_begin(size_t rank) const;
  void fill_input(size_t rank);
  void place(Rank& rank, size_t index);
  unsigned char* guarded(std::vector<unsigned char>& memory, size_t bytes, size_t skew);
  const unsigned char* result(size_t rank) const;
  size_t result_bytes(size_t rank) const;
  std::vector<unsigned char> expected(size_t rank) const;
  std::vector<unsigned char> block_of(size_t from, size_t to) const;
  double exact_value(size_t rank, size_t index) const;
  double reduced_value(size_t index, size_t end_rank) const;
  size_t reduced_ranks(size_t rank) const;
  std::string check_result(size_t rank) const;
  bool guards_hold(const Rank& rank) const;

  const CaseShape shape_;
  const CollFacts& facts_;
  const size_t element_;
  std::vector<Rank> ranks_;
};

}  // namespace uzip
