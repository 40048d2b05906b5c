#include "exact_data.hpp"

#include <algorithm>
#include <cmath>

namespace perf {
namespace {

// Streams of random numbers, one for each purpose.
enum Stream : uint64_t {
  kTotal,
  kDetour,
  kScale,
  kRotate,
  kSlot,
  kSign,
  kOther,
  kMoved,
  kPrefix = 1000
};

// Neighbouring elements share a range of exponents, as real data do, so that they can be
// compressed.
constexpr size_t kBlock = 4096;

uint64_t truncate(const ElementType& type, uint64_t bits) {
  return type.size == 8 ? bits : bits & ((uint64_t{1} << type.bits()) - 1);
}

int64_t sign_extend(const ElementType& type, uint64_t bits) {
  const int unused = 64 - type.bits();
  return static_cast<int64_t>(bits << unused) >> unused;
}

// A rank's place in the sequence of contributions to element `index`: another one for each element.
int place_of(size_t index, int rank, int ranks) {
  const uint64_t shift = mix(kRotate, index) % static_cast<uint64_t>(ranks);
  return static_cast<int>((static_cast<uint64_t>(rank) + shift) % static_cast<uint64_t>(ranks));
}

// Part of `total` that falls to `place`: the parts have one sign and add up to `total`, so the sum
// of any of them lies between 0 and `total`.
int64_t part_of(int64_t total, int place, int ranks) {
  const int64_t magnitude = std::abs(total);
  const int64_t part = magnitude * (place + 1) / ranks - magnitude * place / ranks;
  return total < 0 ? -part : part;
}

// Two ranks go `detour` up and down again, which changes no total.
int64_t detour_of(int64_t detour, int place, int ranks) {
  if (ranks < 2 || place > 1) return 0;
  return place == 0 ? detour : -detour;
}

// ---- Sums and averages of floats: |total| + 2 |detour| <= 2^(significant bits), scaled.

int64_t significant_limit(const ElementType& type) {
  // A rank's part of the total is computed as total * ranks, which 40 bits leave room for.
  return int64_t{1} << std::min(type.mantissa_bits + 1, 40);
}

int64_t sum_total(const ElementType& type, size_t index) {
  const int64_t limit = significant_limit(type) / 2;
  return static_cast<int64_t>(mix(kTotal, index) % static_cast<uint64_t>(2 * limit + 1)) - limit;
}

int64_t sum_detour(const ElementType& type, size_t index) {
  return static_cast<int64_t>(mix(kDetour, index) %
                              static_cast<uint64_t>(significant_limit(type) / 4 + 1));
}

int sum_scale(size_t index) { return static_cast<int>(mix(kScale, index / kBlock) % 8) - 4; }

uint64_t float_sum_contribution(const ElementType& type, size_t index, int place, int ranks) {
  const int64_t units = part_of(sum_total(type, index), place, ranks) +
                        detour_of(sum_detour(type, index), place, ranks);
  return encode_float(type, std::ldexp(static_cast<double>(units), sum_scale(index)));
}

uint64_t float_sum_result(const ElementType& type, uzip_op_t op, size_t index, int ranks) {
  const double total = std::ldexp(static_cast<double>(sum_total(type, index)), sum_scale(index));
  if (op == UZIP_SUM) return encode_float(type, total);
  // All but fp64 accumulate, and divide, in binary32; the narrow types are rounded after that.
  if (type.type == UZIP_FP64) return encode_float(type, total / ranks);
  return encode_float(type, static_cast<float>(total) / static_cast<float>(ranks));
}

// ---- Products of floats: all ranks have powers of two, one of them an odd factor, too.

int64_t product_exponent(size_t index) { return static_cast<int64_t>(mix(kTotal, index) % 7) - 3; }

double product_factor(const ElementType& type, size_t index) {
  const auto limit = static_cast<uint64_t>(significant_limit(type));
  return static_cast<double>((mix(kOther, index) % limit) | 1);
}

uint64_t float_product_contribution(const ElementType& type, size_t index, int place, int ranks) {
  const uint64_t signs = mix(kSign, index);
  const int64_t exponent = part_of(product_exponent(index), place, ranks) +
                           detour_of(static_cast<int64_t>(signs % 2), place, ranks);
  const bool owns_factor =
      place == static_cast<int>(mix(kSlot, index) % static_cast<uint64_t>(ranks));
  double value =
      std::ldexp(owns_factor ? product_factor(type, index) : 1.0, static_cast<int>(exponent));
  if (place == 0 && (signs & 2) != 0) value = -value;              // the sign of the product
  if (ranks > 1 && place < 2 && (signs & 4) != 0) value = -value;  // two signs that cancel
  return encode_float(type, value);
}

uint64_t float_product_result(const ElementType& type, size_t index) {
  const double magnitude =
      std::ldexp(product_factor(type, index), static_cast<int>(product_exponent(index)));
  return encode_float(type, (mix(kSign, index) & 2) != 0 ? -magnitude : magnitude);
}

// ---- Integers wrap: differences (quotients) of random prefix sums (products) can be any.

uint64_t prefix_sum(size_t index, int place) {
  return place == 0 ? 0 : mix(kPrefix + place, index);
}

uint64_t prefix_product(size_t index, int place) {
  return place == 0 ? 1 : mix(kPrefix + place, index) | 1;
}

// Inverse of an odd number modulo 2^64, by Newton's method: each step doubles the correct bits.
uint64_t inverse(uint64_t odd) {
  uint64_t x = odd;
  for (int step = 0; step < 5; ++step) x *= 2 - odd * x;
  return x;
}

uint64_t integer_contribution(uzip_op_t op, size_t index, int place, int ranks) {
  if (op != UZIP_PROD) return prefix_sum(index, place + 1) - prefix_sum(index, place);
  const uint64_t quotient =
      prefix_product(index, place + 1) * inverse(prefix_product(index, place));
  const bool owns_factor =
      place == static_cast<int>(mix(kSlot, index) % static_cast<uint64_t>(ranks));
  return owns_factor ? quotient * mix(kOther, index) : quotient;
}

uint64_t integer_result(const ElementType& type, uzip_op_t op, size_t index, int ranks) {
  if (op == UZIP_PROD) return prefix_product(index, ranks) * mix(kOther, index);
  const uint64_t sum = truncate(type, prefix_sum(index, ranks));
  if (op == UZIP_SUM) return sum;
  if (!type.is_signed) return sum / static_cast<uint64_t>(ranks);
  return static_cast<uint64_t>(sign_extend(type, sum) / ranks);
}

// ---- Minima and maxima: keys that are ordered as the elements are.

struct Range {
  int64_t low, high;
};

// Unsigned 64-bit elements have their keys shifted by half of the range.
uint64_t bits_of_key(const ElementType& type, int64_t key) {
  if (!type.is_float()) {
    return type.is_signed ? static_cast<uint64_t>(key)
                          : static_cast<uint64_t>(key) + (uint64_t{1} << (type.bits() - 1));
  }
  if (key >= 0) return static_cast<uint64_t>(key);
  return static_cast<uint64_t>(-1 - key) | uint64_t{1} << (type.bits() - 1);
}

Range key_range(const ElementType& type, size_t index) {
  if (!type.is_float()) {
    const int64_t high = static_cast<int64_t>((uint64_t{1} << (type.bits() - 1)) - 1);
    return {-high - 1, high};
  }
  if (mix(kScale, index / kBlock) % 2 == 0) {
    const auto high = static_cast<int64_t>(largest_finite(type));
    return {-high - 1, high};
  }
  return {static_cast<int64_t>(encode_float(type, 0.25)),
          static_cast<int64_t>(encode_float(type, 4))};
}

// low + a random number in 0 ... high - low, without overflow.
int64_t draw(uint64_t random, Range range) {
  const uint64_t width = static_cast<uint64_t>(range.high) - static_cast<uint64_t>(range.low);
  const uint64_t offset = width == UINT64_MAX ? random : random % (width + 1);
  return static_cast<int64_t>(static_cast<uint64_t>(range.low) + offset);
}

int64_t extreme_key(const ElementType& type, size_t index) {
  return draw(mix(kTotal, index), key_range(type, index));
}

uint64_t extreme_contribution(const ElementType& type, uzip_op_t op, size_t index, int place) {
  const int64_t extreme = extreme_key(type, index);
  if (place == 0) return bits_of_key(type, extreme);
  Range range = key_range(type, index);
  (op == UZIP_MIN ? range.low : range.high) = extreme;
  return bits_of_key(type, draw(mix(kPrefix + place, index), range));
}

}  // namespace

Pattern exact_contribution(const ElementType& type, uzip_op_t op, int rank, int ranks,
                           size_t period) {
  Pattern pattern(type, period);
  for (size_t i = 0; i < period; ++i) {
    const int place = place_of(i, rank, ranks);
    if (op == UZIP_MIN || op == UZIP_MAX) {
      pattern.set(i, extreme_contribution(type, op, i, place));
    } else if (!type.is_float()) {
      pattern.set(i, integer_contribution(op, i, place, ranks));
    } else if (op == UZIP_PROD) {
      pattern.set(i, float_product_contribution(type, i, place, ranks));
    } else {
      pattern.set(i, float_sum_contribution(type, i, place, ranks));
    }
  }
  return pattern;
}

Pattern exact_result(const ElementType& type, uzip_op_t op, int ranks, size_t period) {
  Pattern pattern(type, period);
  for (size_t i = 0; i < period; ++i) {
    if (op == UZIP_MIN || op == UZIP_MAX) {
      pattern.set(i, bits_of_key(type, extreme_key(type, i)));
    } else if (!type.is_float()) {
      pattern.set(i, integer_result(type, op, i, ranks));
    } else if (op == UZIP_PROD) {
      pattern.set(i, float_product_result(type, i));
    } else {
      pattern.set(i, float_sum_result(type, op, i, ranks));
    }
  }
  return pattern;
}

Pattern exact_moved(const ElementType& type, size_t period) {
  Pattern pattern(type, period);
  for (size_t i = 0; i < period; ++i) {
    const uint64_t random = mix(kMoved, i);
    const uint64_t sign = type.is_float() ? random >> 63 << (type.bits() - 1) : 0;
    switch (mix(kScale, i / kBlock) % 4) {
      case 0:
        pattern.set(i, random);
        break;
      case 1: {
        const auto low = static_cast<int64_t>(type.is_float() ? encode_float(type, 0.25) : 16);
        const auto high = static_cast<int64_t>(type.is_float() ? encode_float(type, 4) : 127);
        pattern.set(i, static_cast<uint64_t>(draw(random >> 1, {low, high})) | sign);
        break;
      }
      case 2:
        pattern.set(i, sign);
        break;
      default: {
        const auto small = static_cast<double>(random % 8);
        pattern.set(i, type.is_float() ? encode_float(type, small) | sign : random % 8);
      }
    }
  }
  return pattern;
}

}  // namespace perf
