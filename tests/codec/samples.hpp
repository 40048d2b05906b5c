// Element data of many kinds for the codec tests and golden frames: what codecs meet, and what
// breaks them.
#pragma once

#include "base/datatype.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace uzip {

enum class SampleKind {
  kGaussian,
  kUniform,
  kZeros,
  kMinusZeros,
  kConstant,
  kRandomBits,
  kSpecials,     ///< NaN payloads, infinities, denormals, -0 among ordinary values
  kOddOne,       ///< one odd value among zeros
  kAlternating,  ///< two far exponents in turn
  kAllRare,      ///< every exponent equally often
  kTwoPeaks,
  kRowScaled,  ///< another scale every 4096 values
  kSparse,     ///< nine of ten are zeros of either sign
  kNarrowed,   ///< values computed in a narrower type: low mantissa bits are zero
  kSmooth,     ///< a field whose neighbours differ little
  kMisleading  ///< a sample at regular places sees another distribution
};
std::span<const SampleKind> sample_kinds();
const char* sample_kind_name(SampleKind kind);

/// `count` elements of `type`; the same for the same arguments on every machine.
std::vector<uint8_t> make_sample(DataType type, SampleKind kind, size_t count, uint32_t seed = 1);

/// A real tensor's sample from tests/data/tensors.
struct TensorSample {
  std::string name;
  DataType type;
  std::vector<uint8_t> bytes;
};
const std::vector<TensorSample>& tensor_samples();

}  // namespace uzip
