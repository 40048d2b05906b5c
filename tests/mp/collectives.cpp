// Every collective x type x operation x count x in place x algorithm x codec between real ranks, each element
// compared as bits with a naive reference, guard bands and untouched sources included.
#include "mp/mp_world.hpp"
#include "support/coll_facts.hpp"
#include "support/naive_types.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

namespace {

using uzip::CollFacts;
using uzip::facts_of;
using uzip::Holds;
using Bytes = std::vector<unsigned char>;

constexpr size_t kGuard = 64;
constexpr unsigned char kGuardByte = 0xa5;

struct Case {
  uzip_coll_t coll;
  uzip_dtype_t type;
  uzip_op_t op = UZIP_SUM;
  size_t count = 0;  // per rank; the v forms: of the longest block
  int in_place = 0;  // 0 no, 1 UZIP_IN_PLACE, 2 by address
  uzip_options_t options = UZIP_OPTIONS_INIT;
  int root = 0;
};

/// Small integers, so that sums are exact in every type, and varied enough to show a wrong index.
double value(const Case& c, int rank, size_t i) {
  const auto mixed = static_cast<unsigned>(i * 2654435761u + static_cast<size_t>(rank) * 40503u) >> 5;
  switch (c.op) {
    case UZIP_PROD: return mixed % 7 == 0 ? 2 : 1;
    case UZIP_MIN:
    case UZIP_MAX: return static_cast<double>(mixed % 13);
    default: return static_cast<double>(mixed % 3);
  }
}

double reduced(const Case& c, int size, size_t i) {
  double result = value(c, 0, i);
  for (int r = 1; r < size; ++r) {
    const double x = value(c, r, i);
    switch (c.op) {
      case UZIP_PROD: result *= x; break;
      case UZIP_MIN: result = std::min(result, x); break;
      case UZIP_MAX: result = std::max(result, x); break;
      default: result += x;
    }
  }
  if (c.op != UZIP_AVG) return result;
  if (!naive::is_float(c.type)) return std::trunc(result / size);
  return c.type == UZIP_FP64 ? result / size
                             : static_cast<double>(static_cast<float>(result) / static_cast<float>(size));
}

/// An array with guard bands, at an address that is aligned for nothing but the type.
class Array {
 public:
  Array(size_t bytes, size_t element) : bytes_(bytes), begin_(kGuard + element), data_(begin_ + bytes + kGuard, kGuardByte) {}
  unsigned char* get() { return data_.data() + begin_; }
  bool guards_intact() const {
    for (size_t i = 0; i < data_.size(); ++i)
      if ((i < begin_ || i >= begin_ + bytes_) && data_[i] != kGuardByte) return false;
    return true;
  }

 private:
  size_t bytes_, begin_;
  Bytes data_;
};

struct Blocks {
  std::vector<size_t> counts, begins;
  size_t total = 0;
};

/// Equal blocks, or in the v forms blocks of many lengths, some empty. Of an alltoallv those of one rank; what goes to
/// another has the size of what comes from it.
Blocks blocks_of(const Case& c, int size, int rank) {
  const bool v = facts_of(c.coll).has_counts;
  const int turn = c.coll == UZIP_ALLTOALLV ? rank : 0;
  Blocks blocks;
  for (int r = 0; r < size; ++r) {
    const int kind = (r + turn) % size;
    const size_t count =
        !v ? c.count : kind % 3 == 1 ? 0 : c.count * static_cast<size_t>(kind + 1) / static_cast<size_t>(size);
    blocks.counts.push_back(count);
    blocks.begins.push_back(blocks.total);
    blocks.total += count;
  }
  return blocks;
}

std::string compare(const Case& c, const unsigned char* got, size_t count, const std::function<double(size_t)>& want) {
  const size_t element = uzip_dtype_size(c.type);
  unsigned char expected[8];
  for (size_t i = 0; i < count; ++i) {
    naive::store(c.type, expected, 0, want(i));
    if (std::memcmp(got + i * element, expected, element) == 0) continue;
    return "element " + std::to_string(i) + " of " + std::to_string(count) + " is wrong";
  }
  return "";
}

/// What must be at `output` on this rank.
std::string check(const Case& c, const unsigned char* output, const Blocks& blocks, const mp::World& world) {
  const CollFacts& facts = facts_of(c.coll);
  const auto rank = static_cast<size_t>(world.rank);
  if (facts.dst_of(world.rank, c.root) == Holds::kNothing) return "";
  if (c.coll == UZIP_EXSCAN && rank == 0) return "";
  if (c.coll == UZIP_BCAST) return compare(c, output, c.count, [&](size_t i) { return value(c, c.root, i); });
  if (facts.reduces) {
    const bool own = facts.dst == Holds::kOwnBlock;
    const int ranks = c.coll == UZIP_SCAN ? world.rank + 1 : c.coll == UZIP_EXSCAN ? world.rank : world.size;
    const size_t begin = own ? blocks.begins[rank] : 0;
    return compare(c, output, own ? blocks.counts[rank] : c.count,
                   [&](size_t i) { return reduced(c, ranks, begin + i); });
  }
  if (c.coll == UZIP_SCATTER || c.coll == UZIP_SCATTERV)
    return compare(c, output, blocks.counts[rank], [&](size_t i) { return value(c, c.root, blocks.begins[rank] + i); });
  const bool exchange = c.coll == UZIP_ALLTOALL || c.coll == UZIP_ALLTOALLV;
  for (int r = 0; r < world.size; ++r) {
    const auto from = static_cast<size_t>(r);
    const size_t begin = exchange ? blocks_of(c, world.size, r).begins[rank] : 0;
    std::string wrong = compare(c, output + blocks.begins[from] * uzip_dtype_size(c.type), blocks.counts[from],
                                [&](size_t i) { return value(c, r, begin + i); });
    if (!wrong.empty()) return "block of rank " + std::to_string(r) + ": " + wrong;
  }
  return "";
}

std::string run(const Case& c, const mp::World& world) {
  const CollFacts& facts = facts_of(c.coll);
  const size_t element = uzip_dtype_size(c.type);
  const Blocks blocks = blocks_of(c, world.size, world.rank);
  const auto rank = static_cast<size_t>(world.rank);
  const Holds src_holds = facts.src_of(world.rank, c.root), dst_holds = facts.dst_of(world.rank, c.root);
  const auto count_of = [&](Holds holds) {
    return holds == Holds::kNothing     ? 0
           : holds == Holds::kVector   ? c.count
           : holds == Holds::kOwnBlock ? blocks.counts[rank]
                                       : blocks.total;
  };
  const size_t src_count = count_of(src_holds), dst_count = count_of(dst_holds);

  Array src(src_count * element, element), dst(std::max(src_count, dst_count) * element, element);
  unsigned char* input = src.get();
  unsigned char* output = dst.get();
  const bool in_place = c.in_place && src_holds != Holds::kNothing && dst_holds != Holds::kNothing;
  if (in_place) {
    // The inputs are where the call expects them in the destination.
    const size_t own = blocks.begins[rank] * element;
    input = output + (src_holds == Holds::kOwnBlock ? own : 0);
    const bool moves = facts.reduces && c.in_place == 1;
    if (dst_holds == Holds::kOwnBlock && !moves) output += own;
  }
  for (size_t i = 0; i < src_count; ++i) naive::store(c.type, input, i, value(c, world.rank, i));
  const Bytes before(input, input + src_count * element);

  uzip_coll_args_t args = {};
  args.struct_size = sizeof args;
  args.coll = c.coll;
  args.src = input;
  args.dst = output;
  args.count = c.count;
  args.counts = blocks.counts.data();
  args.src_counts = blocks.counts.data();
  const bool scatters = c.coll == UZIP_SCATTER || c.coll == UZIP_SCATTERV;
  if (c.coll == UZIP_GATHERV || c.coll == UZIP_SCATTERV) {
    args.count = blocks.counts[rank];
    if (world.rank != c.root) args.counts = nullptr;
  }
  // The v forms whose blocks may stand anywhere know one in-place form only.
  const bool pairs = c.coll == UZIP_GATHERV || c.coll == UZIP_SCATTERV || c.coll == UZIP_ALLTOALLV;
  if (in_place && (pairs || c.in_place == 1)) {
    args.src = scatters ? input : UZIP_IN_PLACE;
    if (scatters) args.dst = UZIP_IN_PLACE;
  }
  args.dtype = c.type;
  args.op = c.op;
  args.root = c.root;
  args.options = &c.options;
  if (std::string wrong = mp::expect(uzip_coll_run(&args, world.comm), UZIP_OK); !wrong.empty()) return wrong;

  if (!src.guards_intact() || !dst.guards_intact()) return "wrote outside the buffers";
  if (!in_place && std::memcmp(before.data(), input, before.size()) != 0) return "changed the source";
  return check(c, output, blocks, world);
}

std::string name_of(const Case& c) {
  std::string name = facts_of(c.coll).name;
  name += std::string(" ") + uzip_dtype_name(c.type) + " " + uzip_op_name(c.op);
  name += c.options.algorithm ? std::string(" ") + c.options.algorithm : " auto";
  name += c.options.codec ? std::string(" ") + c.options.codec : "";
  if (c.options.chunk_bytes) name += " chunk " + std::to_string(c.options.chunk_bytes);
  if (c.options.split_send >= 0) name += c.options.split_send ? " split" : " whole";
  return name;
}

/// One reported case: all counts and in-place forms of one combination.
void sweep(mp::World& world, Case c, const std::vector<size_t>& counts) {
  world.test(name_of(c), [&]() -> std::string {
    for (size_t count : counts)
      for (int in_place = 0; in_place < 3; ++in_place) {
        c.root = static_cast<int>((count + static_cast<size_t>(in_place)) % static_cast<size_t>(world.size));
        c.count = count;
        c.in_place = in_place;
        const std::string wrong = run(c, world);
        if (!wrong.empty())
          return "count " + std::to_string(count) + ", in place " + std::to_string(in_place) + ": " + wrong;
      }
    return "";
  });
}

const uzip_coll_t kColls[] = {UZIP_ALLREDUCE, UZIP_REDUCE_SCATTER, UZIP_REDUCE_SCATTERV, UZIP_ALLGATHER,
                              UZIP_ALLGATHERV, UZIP_BCAST,          UZIP_REDUCE,          UZIP_GATHER,
                              UZIP_GATHERV,    UZIP_SCATTER,        UZIP_SCATTERV,        UZIP_ALLTOALL,
                              UZIP_ALLTOALLV,  UZIP_SCAN,           UZIP_EXSCAN};
const uzip_op_t kOps[] = {UZIP_SUM, UZIP_PROD, UZIP_MIN, UZIP_MAX, UZIP_AVG};

std::vector<const char*> algorithms_of(uzip_coll_t coll) {
  if (coll == UZIP_ALLREDUCE) return {"ring", "two_shot", "one_shot", "recursive_doubling", "rabenseifner", "hierarchical"};
  if (coll == UZIP_REDUCE_SCATTER || coll == UZIP_REDUCE_SCATTERV) return {"ring", "two_shot", "recursive_halving"};
  if (coll == UZIP_BCAST) return {"scatter_allgather", "direct", "binomial", "chain", "double_tree", "hierarchical"};
  if (coll == UZIP_REDUCE) return {"two_shot", "binomial", "chain"};
  if (coll == UZIP_GATHER || coll == UZIP_SCATTER) return {"direct", "binomial"};
  if (coll == UZIP_ALLTOALL) return {"pairwise", "bruck"};
  if (coll == UZIP_GATHERV || coll == UZIP_SCATTERV || coll == UZIP_ALLTOALLV) return {"pairwise"};
  if (coll == UZIP_SCAN || coll == UZIP_EXSCAN) return {"linear", "recursive_doubling"};
  return {"ring", "two_shot"};
}

bool has_hierarchy(uzip_coll_t coll) {
  return coll == UZIP_ALLREDUCE || coll == UZIP_BCAST || coll == UZIP_REDUCE || coll == UZIP_REDUCE_SCATTER ||
         coll == UZIP_REDUCE_SCATTERV || coll == UZIP_ALLGATHER || coll == UZIP_ALLGATHERV;
}

}  // namespace

int main(int argc, char** argv) {
  mp::World world(&argc, &argv);
  const auto ranks = static_cast<size_t>(world.size);
  const std::vector<size_t> small = {0, 1, ranks > 1 ? ranks - 1 : 2, ranks + 1, 257};
  if (argc > 1 && std::string(argv[1]) == "hosts") {
    for (const char* codec : {"raw", "lev"}) {
      for (uzip_coll_t coll : kColls) {
        Case c{coll, UZIP_BF16};
        c.options.codec = codec;
        c.options.chunk_bytes = 20000;
        if (has_hierarchy(coll)) c.options.algorithm = "hierarchical";
        sweep(world, c, {0, 1, 257, 65537});
      }
    }
    return world.failures() ? 1 : 0;
  }
  // Types and operations, on the automatic choice.
  for (uzip_coll_t coll : kColls)
    for (int type = UZIP_INT8; type <= UZIP_FP8_E5M2; ++type)
      for (uzip_op_t op : kOps) {
        if (!facts_of(coll).reduces && op != UZIP_SUM) continue;
        if (op == UZIP_AVG && (coll == UZIP_SCAN || coll == UZIP_EXSCAN)) continue;
        sweep(world, {coll, static_cast<uzip_dtype_t>(type), op}, small);
      }
  // Algorithms and codecs, with pieces that need several rounds and tails; the types take turns.
  const uzip_dtype_t types[] = {UZIP_BF16, UZIP_FP32, UZIP_FP64};
  size_t turn = 0;
  for (uzip_coll_t coll : kColls)
    for (const char* algorithm : algorithms_of(coll))
      for (const char* codec : {"raw", "lev"})
        for (int split = 0; split < (codec[0] == 'l' ? 2 : 1); ++split) {
          Case c{coll, types[turn++ % std::size(types)]};
          c.options.algorithm = algorithm;
          c.options.codec = codec;
          c.options.chunk_bytes = 20000;
          c.options.split_send = split;
          sweep(world, c, {0, 1, 7, 257, 65537});
        }
  // One element in each piece: as many rounds as elements.
  Case fine{UZIP_ALLREDUCE, UZIP_FP32};
  fine.options.chunk_bytes = 1;
  sweep(world, fine, {ranks * 3 + 1, 100});
  // Larger than any cache level's share, with the library's own choices.
  for (uzip_coll_t coll : kColls) sweep(world, {coll, UZIP_FP16}, {400009});
  // A result that is written past the caches, on any processor and on Intel's only.
  for (const size_t bytes : {size_t{32} << 20, std::max(size_t{8} << 20, (size_t{32} << 20) / ranks)})
    sweep(world, {UZIP_ALLGATHER, UZIP_FP16}, {bytes / ranks / 2 + 9});
  return world.failures() ? 1 : 0;
}
