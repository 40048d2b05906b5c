// Every CPU target must give the bits of a slow reference, for every operation, type, number of
// sources, count, alignment and form of in-place, whatever the caller's floating point settings
// are.
#include "base/reduce.hpp"

#include "base/cpu.hpp"
#include "base/float_reference.hpp"

#include <gtest/gtest.h>

#include <cfenv>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace uzip {
namespace {

constexpr ReduceOp kAllOps[] = {UZIP_SUM, UZIP_PROD, UZIP_MIN, UZIP_MAX, UZIP_AVG};

class ReduceTest : public testing::TestWithParam<CpuTarget> {
 protected:
  void SetUp() override { ASSERT_TRUE(set_cpu_target(cpu_target_name(GetParam())).ok()); }
  void TearDown() override { ASSERT_TRUE(set_cpu_target("auto").ok()); }
};

std::string target_name(const testing::TestParamInfo<CpuTarget>& info) {
  return cpu_target_name(info.param);
}

INSTANTIATE_TEST_SUITE_P(Targets, ReduceTest, testing::ValuesIn(available_cpu_targets()),
                         target_name);

std::vector<uint64_t> special_integers(size_t size) {
  const uint64_t sign = uint64_t{1} << (8 * size - 1);
  return {0,
          1,
          2,
          3,
          100,
          sign - 1,
          sign,
          sign + 1,
          2 * sign - 1,
          2 * sign - 2,
          sign / 2,
          0x5555555555555555};
}

// Zeros, denormals, the ends of the range, infinities, NaNs with payloads; of both signs.
std::vector<uint64_t> special_floats(DataType type) {
  const reference::Format format = reference::format_of(type);
  const uint64_t least_normal = uint64_t{1} << format.mantissa_bits;
  const uint64_t sign = least_normal << format.exponent_bits;
  const uint64_t one = (sign >> 1) - least_normal;
  const uint64_t top = sign - least_normal;  // infinity, or the largest exponent
  std::vector<uint64_t> list;
  for (uint64_t bits : {uint64_t{0}, uint64_t{1}, least_normal - 1, least_normal, least_normal + 1,
                        one, one + 1, one - 1, one + least_normal, top - 1, top - 2, top, top + 1,
                        sign - 1, sign - 2, top | least_normal >> 1, top - least_normal}) {
    list.push_back(bits);
    list.push_back(bits | sign);
  }
  return list;
}

// A value of about 1, of either sign: such values cancel and round.
uint64_t ordinary_float(DataType type, std::mt19937_64& random) {
  const reference::Format format = reference::format_of(type);
  const uint64_t bias = (uint64_t{1} << (format.exponent_bits - 1)) - 1;
  const uint64_t mantissa = random() & ((uint64_t{1} << format.mantissa_bits) - 1);
  const uint64_t sign = random() & 1;
  return sign << (format.exponent_bits + format.mantissa_bits) |
         (bias - 2 + random() % 5) << format.mantissa_bits | mantissa;
}

// Element i of the s-th source: any bits, special values, and ordinary ones.
uint64_t test_element(DataType type, std::mt19937_64& random) {
  const uint64_t draw = random();
  if (draw % 4 == 0) return random();
  if (draw % 4 == 1) {
    const auto specials = reference::is_float(type) ? special_floats(type)
                                                    : special_integers(reference::size_of(type));
    return specials[random() % specials.size()];
  }
  return reference::is_float(type) ? ordinary_float(type, random) : random() % 1000;
}

// An array of elements that starts `misalignment` bytes after a multiple of 64, between guard
// bytes.
class Elements {
 public:
  Elements(DataType type, size_t count, size_t misalignment)
      : size_(reference::size_of(type)),
        count_(count),
        bytes_(count * size_ + 2 * kGuard + 128, kFiller) {
    const auto address = reinterpret_cast<uintptr_t>(bytes_.data());
    offset_ = kGuard + (64 - address % 64) % 64 + misalignment;
  }
  Elements(const Elements&) = delete;
  Elements& operator=(const Elements&) = delete;

  unsigned char* data() { return bytes_.data() + offset_; }
  void set(size_t i, uint64_t bits) { std::memcpy(data() + i * size_, &bits, size_); }
  uint64_t get(size_t i) {
    uint64_t bits = 0;
    std::memcpy(&bits, data() + i * size_, size_);
    return bits;
  }
  bool guards_are_intact() const {
    for (size_t i = 0; i < bytes_.size(); ++i) {
      const bool inside = i >= offset_ && i < offset_ + count_ * size_;
      if (!inside && bytes_[i] != kFiller) return false;
    }
    return true;
  }

 private:
  static constexpr size_t kGuard = 64;
  static constexpr unsigned char kFiller = 0xa5;
  size_t size_;
  size_t count_;
  size_t offset_;
  std::vector<unsigned char> bytes_;
};

// Values for a reduction of several sources and what must come out; elements are independent, so
// one case serves every count up to its own.
struct Case {
  ReduceOp op;
  DataType type;
  size_t average_over;
  std::vector<std::vector<uint64_t>> sources;
  std::vector<uint64_t> expected;
};

Case make_case(ReduceOp op, DataType type, size_t source_count, size_t count, size_t average_over,
               uint64_t seed) {
  Case made{op, type, average_over, {}, {}};
  std::mt19937_64 random(seed);
  const size_t size = reference::size_of(type);
  const uint64_t mask = size == 8 ? ~uint64_t{0} : (uint64_t{1} << 8 * size) - 1;
  made.sources.assign(source_count, std::vector<uint64_t>(count));
  std::vector<uint64_t> operands(source_count);
  for (size_t i = 0; i < count; ++i) {
    for (size_t s = 0; s < source_count; ++s) {
      operands[s] = test_element(type, random) & mask;
      made.sources[s][i] = operands[s];
    }
    made.expected.push_back(reference::reduce(op, type, operands, average_over));
  }
  return made;
}

constexpr int kSeparate = -1;

// Runs the first `count` elements with `dst` separate or equal to source `in_place`; "" or what is
// wrong.
std::string run_case(const Case& made, size_t count, int in_place, size_t misalignment) {
  std::vector<std::unique_ptr<Elements>> sources;
  std::vector<const void*> pointers;
  for (size_t s = 0; s < made.sources.size(); ++s) {
    sources.push_back(std::make_unique<Elements>(made.type, count, misalignment * (s + 1) % 64));
    for (size_t i = 0; i < count; ++i) sources[s]->set(i, made.sources[s][i]);
    pointers.push_back(sources[s]->data());
  }
  Elements separate(made.type, count, misalignment * 7 % 64);
  Elements& dst = in_place == kSeparate ? separate : *sources[static_cast<size_t>(in_place)];
  reduce(made.op, made.type, dst.data(), pointers, count, made.average_over);

  const std::string where =
      std::string(" (") + reduce_op_name(made.op) + " of " + std::to_string(made.sources.size()) +
      " " + datatype_info(made.type).name + ", count " + std::to_string(count) + ", in place " +
      std::to_string(in_place) + ", misaligned " + std::to_string(misalignment) + ", over " +
      std::to_string(made.average_over) + ")";
  for (size_t i = 0; i < count; ++i) {
    if (dst.get(i) == made.expected[i]) continue;
    char text[120];
    std::snprintf(text, sizeof text, "element %zu is %#jx, not %#jx", i, uintmax_t{dst.get(i)},
                  uintmax_t{made.expected[i]});
    return text + where;
  }
  for (size_t s = 0; s < sources.size(); ++s) {
    if (!sources[s]->guards_are_intact()) return "bytes beside a source changed" + where;
    if (static_cast<int>(s) == in_place) continue;
    for (size_t i = 0; i < count; ++i) {
      if (sources[s]->get(i) != made.sources[s][i]) return "a source changed" + where;
    }
  }
  if (!dst.guards_are_intact()) return "bytes beside dst changed" + where;
  return "";
}

std::vector<size_t> interesting_counts() {
  std::vector<size_t> counts;
  for (size_t count = 0; count <= 70; ++count) counts.push_back(count);
  counts.insert(counts.end(), {127, 128, 129, 255, 256, 257, 511, 513, 1000});
  return counts;
}

TEST_P(ReduceTest, EveryOperationTypeCountAndForm) {
  for (ReduceOp op : kAllOps) {
    for (const DataTypeInfo& type : datatypes()) {
      for (size_t source_count : {1, 2, 3, 5}) {
        const Case made =
            make_case(op, type.type, source_count, 1000, op == UZIP_AVG ? source_count : 0,
                      1000 * size_t{type.type} + source_count);
        for (size_t count : interesting_counts()) {
          const size_t misalignment = count * 5 % 64;
          ASSERT_EQ(run_case(made, count, kSeparate, misalignment), "");
          ASSERT_EQ(run_case(made, count, 0, misalignment), "");
          ASSERT_EQ(run_case(made, count, static_cast<int>(source_count) - 1, 0), "");
        }
      }
    }
  }
}

TEST_P(ReduceTest, EveryAlignment) {
  for (const DataTypeInfo& type : datatypes()) {
    const Case made = make_case(UZIP_SUM, type.type, 2, 200, 0, 1);
    for (size_t misalignment = 0; misalignment < 64; ++misalignment) {
      ASSERT_EQ(run_case(made, 200, kSeparate, misalignment), "");
      ASSERT_EQ(run_case(made, 33, 0, misalignment), "");
    }
  }
}

TEST_P(ReduceTest, ManySourcesAndLongArrays) {
  for (const DataTypeInfo& type : datatypes()) {
    for (ReduceOp op : kAllOps) {
      const Case many = make_case(op, type.type, 33, 100, op == UZIP_AVG ? 33 : 0, 2);
      ASSERT_EQ(run_case(many, 100, 7, 8), "");
    }
    const Case long_one = make_case(UZIP_SUM, type.type, 2, 20011, 0, 3);
    ASSERT_EQ(run_case(long_one, 20011, 0, 4), "");
  }
}

TEST_P(ReduceTest, AverageByAnyNumber) {
  for (const DataTypeInfo& type : datatypes()) {
    for (size_t over : {size_t{1}, size_t{2}, size_t{3}, size_t{7}, size_t{127}, size_t{128},
                        size_t{255}, size_t{256}, size_t{1000}, size_t{65537},
                        (size_t{1} << 24) + 1, (size_t{1} << 32) + 1, ~size_t{0}}) {
      ASSERT_EQ(run_case(make_case(UZIP_AVG, type.type, 1, 500, over, over), 500, 0, 0), "");
      ASSERT_EQ(run_case(make_case(UZIP_AVG, type.type, 3, 500, over, over), 500, kSeparate, 3),
                "");
    }
    // Not the last reduction of the value: a sum.
    ASSERT_EQ(run_case(make_case(UZIP_AVG, type.type, 2, 500, 0, 4), 500, 0, 0), "");
  }
}

// The divisor concerns averages only.
TEST_P(ReduceTest, OtherOperationsIgnoreTheDivisor) {
  for (const DataTypeInfo& type : datatypes()) {
    Case made = make_case(UZIP_SUM, type.type, 2, 100, 0, 5);
    made.average_over = 2;
    ASSERT_EQ(run_case(made, 100, 0, 0), "");
  }
}

TEST_P(ReduceTest, EveryPairOfEightBitFloats) {
  for (DataType type : {UZIP_FP8_E4M3FN, UZIP_FP8_E5M2}) {
    for (ReduceOp op : kAllOps) {
      Case made{op, type, op == UZIP_AVG ? size_t{2} : 0, {{}, {}}, {}};
      for (uint64_t a = 0; a < 256; ++a) {
        for (uint64_t b = 0; b < 256; ++b) {
          made.sources[0].push_back(a);
          made.sources[1].push_back(b);
          made.expected.push_back(reference::reduce(op, type, {a, b}, made.average_over));
        }
      }
      ASSERT_EQ(run_case(made, made.expected.size(), 0, 0), "");
    }
  }
}

// An average over one widens and rounds every pattern: numbers come back, NaNs become the canonical
// one.
TEST_P(ReduceTest, EverySixteenBitFloatSurvivesTheAccumulator) {
  for (DataType type : {UZIP_FP16, UZIP_BF16}) {
    for (size_t over : {1, 2, 3, 1024}) {
      Case made{UZIP_AVG, type, over, {{}}, {}};
      for (uint64_t bits = 0; bits < 65536; ++bits) {
        made.sources[0].push_back(bits);
        const bool nan = std::isnan(reference::decode(reference::format_of(type), bits));
        if (over == 1) {
          made.expected.push_back(nan ? reference::canonical_nan(reference::format_of(type))
                                      : bits);
        } else {
          made.expected.push_back(reference::reduce(UZIP_AVG, type, {bits}, over));
        }
      }
      ASSERT_EQ(run_case(made, made.expected.size(), kSeparate, 0), "");
    }
  }
}

TEST_P(ReduceTest, RandomPairsOfSixteenBitFloatsRoundToNearestEven) {
  for (DataType type : {UZIP_FP16, UZIP_BF16}) {
    for (ReduceOp op : {UZIP_SUM, UZIP_PROD}) {
      ASSERT_EQ(run_case(make_case(op, type, 2, 200000, 0, 6), 200000, 0, 0), "");
    }
  }
}

// What needs care in one element must not change its neighbours, nor be lost among them: a kernel may treat vectors
// without denormals and NaNs differently.
TEST_P(ReduceTest, RunsOfOrdinarySixteenBitFloatsAndOneOther) {
  std::mt19937_64 random(11);
  for (DataType type : {UZIP_FP16, UZIP_BF16}) {
    const auto specials = special_floats(type);
    for (ReduceOp op : {UZIP_SUM, UZIP_PROD, UZIP_AVG}) {
      for (size_t source_count : {2, 3}) {
        Case made{op, type, op == UZIP_AVG ? source_count : 0, {}, {}};
        made.sources.resize(source_count);
        for (size_t i = 0; i < 64 * 600; ++i) {
          std::vector<uint64_t> operands;
          for (size_t s = 0; s < source_count; ++s) operands.push_back(ordinary_float(type, random));
          const size_t run = i / 64;
          if (run % 3 == 0 && i % 64 == run / 3 % 64) operands[run % source_count] = specials[run / 3 % specials.size()];
          for (size_t s = 0; s < source_count; ++s) made.sources[s].push_back(operands[s]);
          made.expected.push_back(reference::reduce(op, type, operands, made.average_over));
        }
        ASSERT_EQ(run_case(made, made.expected.size(), 0, 0), "");
      }
    }
  }
}

// 1 + 2^-9 + 2^-9 is 1 in bf16 if every sum is rounded, and 1 + 2^-7 (to even) if only the last one
// is.
TEST_P(ReduceTest, SmallFloatsAreRoundedOnce) {
  const uint16_t one = 0x3f80, small = 0x3b80, tiny = 0x3b00;  // 1, 2^-8, 2^-9
  const void* sources[] = {&one, &small, &tiny};
  uint16_t dst = 0;
  reduce(UZIP_SUM, UZIP_BF16, &dst, sources, 1);
  EXPECT_EQ(dst, 0x3f81);
}

TEST_P(ReduceTest, OrderOfSourcesIsTheOrderOfEvaluation) {
  const float big = 1e8f, one = 1, minus_big = -1e8f;
  const void* sources[] = {&big, &one, &minus_big};
  const void* other_order[] = {&big, &minus_big, &one};
  float dst = 5;
  reduce(UZIP_SUM, UZIP_FP32, &dst, sources, 1);
  EXPECT_EQ(dst, 0.0f);
  reduce(UZIP_SUM, UZIP_FP32, &dst, other_order, 1);
  EXPECT_EQ(dst, 1.0f);
}

TEST_P(ReduceTest, CountZeroTouchesNothing) {
  const void* sources[] = {nullptr, nullptr};
  for (const DataTypeInfo& type : datatypes()) {
    for (ReduceOp op : kAllOps) reduce(op, type.type, nullptr, sources, 0, 2);
  }
}

#if defined(__SSE2__)

// Flush-to-zero, denormals-are-zero, rounding upwards, and traps for everything.
TEST_P(ReduceTest, CallersFloatingPointSettingsDoNotMatter) {
  for (const DataTypeInfo& type : datatypes()) {
    for (ReduceOp op : kAllOps) {
      const Case made = make_case(op, type.type, 3, 300, op == UZIP_AVG ? 3 : 0, 7);
      const unsigned saved = _mm_getcsr();
      const unsigned hostile = _MM_FLUSH_ZERO_ON | 0x40u /* DAZ */ | _MM_ROUND_UP;
      _mm_setcsr(hostile);
      const std::string wrong = run_case(made, 300, 0, 0);
      const unsigned after = _mm_getcsr();
      _mm_setcsr(saved);
      ASSERT_EQ(wrong, "");
      ASSERT_EQ(after, hostile);
    }
  }
}

#endif

TEST(ReduceOpTest, NamesAndValuesAgree) {
  for (ReduceOp op : kAllOps) {
    EXPECT_TRUE(is_reduce_op(op));
    EXPECT_EQ(find_reduce_op(reduce_op_name(op)), op);
  }
  EXPECT_STREQ(reduce_op_name(UZIP_SUM), "sum");
  EXPECT_STREQ(reduce_op_name(UZIP_AVG), "avg");
  EXPECT_FALSE(is_reduce_op(static_cast<ReduceOp>(5)));
  EXPECT_FALSE(is_reduce_op(static_cast<ReduceOp>(-1)));
  EXPECT_EQ(find_reduce_op("SUM"), -1);
  EXPECT_EQ(find_reduce_op(""), -1);
  EXPECT_EQ(find_reduce_op("summ"), -1);
}

}  // namespace
}  // namespace uzip
