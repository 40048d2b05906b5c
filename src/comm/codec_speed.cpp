#include "comm/codec_speed.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>

namespace uzip {
namespace {

using Clock = std::chrono::steady_clock;

/// A sum of uniform numbers is close enough to a normal distribution, and the same everywhere.
float normal_number(uint64_t* state) {
  float sum = 0;
  for (int i = 0; i < 12; ++i) {
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    sum += static_cast<float>(*state >> 40) * 0x1p-24f;
  }
  return sum - 6;
}

/// Cut off, not rounded, and without subnormals: what counts is how the exponents are distributed. `noise` for the bits
/// of a mantissa that a float does not have.
uint64_t bits_of(float value, uint64_t noise, const DataTypeInfo& info) {
  if (info.type == UZIP_FP64) return std::bit_cast<uint64_t>(static_cast<double>(value)) ^ noise >> (64 - 29);
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  // The sum has been rounded while it was larger, so that its last bits are all zeros.
  if (info.type == UZIP_FP32) return bits ^ noise >> (64 - 7);
  const int bias = (1 << (info.exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>(bits >> 23 & 0xff) - 127 + bias;
  const uint64_t sign = bits >> 31;
  if (exponent <= 0) return sign << (info.exponent_bits + info.mantissa_bits);
  return (sign << info.exponent_bits | static_cast<uint64_t>(exponent)) << info.mantissa_bits |
         (bits & 0x7fffff) >> (23 - info.mantissa_bits);
}

double seconds_between(Clock::time_point start, Clock::time_point end) {
  return std::max(std::chrono::duration<double>(end - start).count(), 1e-9);
}

/// False if these elements do not compress.
bool measure_level(const Codec& codec, std::span<const std::byte> src, int calls, CodecScratch& scratch,
                   std::span<std::byte> body, std::span<std::byte> dst, TunedCodec* speed) {
  const size_t count = src.size() / datatype_size(speed->type);
  double encoding = std::numeric_limits<double>::infinity(), decoding = encoding;
  FrameHeader header;
  for (int i = 0; i <= calls; ++i) {
    const auto start = Clock::now();
    if (!codec.encode(speed->type, speed->codec.level, src.data(), count, body, scratch, header).ok()) return false;
    const auto middle = Clock::now();
    if (header.codec == kCodecRaw) return false;
    const std::span<const std::byte> all(body);
    if (!codec.decode(header, all.first(header.plain_bytes), all.subspan(header.plain_bytes, header.coded_bytes), dst,
                      scratch)
             .ok())
      return false;
    if (i == 0) continue;  // brings code and memory into the caches
    encoding = std::min(encoding, seconds_between(start, middle));
    decoding = std::min(decoding, seconds_between(middle, Clock::now()));
  }
  const auto bytes = static_cast<double>(src.size());
  speed->encode = bytes / encoding;
  speed->decode = bytes / decoding;
  speed->ratio = static_cast<double>(header.plain_bytes + header.coded_bytes) / bytes;
  speed->plain = static_cast<double>(header.plain_bytes) / bytes;
  return true;
}

}  // namespace

std::vector<std::byte> normal_elements(DataType type, size_t count) {
  const DataTypeInfo& info = datatype_info(type);
  std::vector<std::byte> bytes(count * info.size);
  uint64_t state = 1;
  for (size_t i = 0; i < count; ++i) {
    const float value = normal_number(&state);
    const uint64_t bits = bits_of(value, state, info);
    std::memcpy(bytes.data() + i * info.size, &bits, info.size);
  }
  return bytes;
}

std::vector<TunedCodec> measure_codec_speeds(std::span<const DataType> types, size_t bytes, int calls) {
  std::vector<TunedCodec> speeds;
  CodecScratch scratch;
  for (DataType type : types) {
    if (!is_float(type)) continue;
    const std::vector<std::byte> src = normal_elements(type, bytes / datatype_size(type));
    std::vector<std::byte> dst(src.size());
    for (const Codec* codec : codecs()) {
      if (codec->id == kCodecRaw || !codec->supports(type)) continue;
      const EncodedSizes bound = codec->bound(type, src.size() / datatype_size(type));
      std::vector<std::byte> body(std::max(bound.plain + bound.coded, src.size()));
      for (CodecLevel level : {CodecLevel::kFastest, CodecLevel::kBalanced, CodecLevel::kSmallest}) {
        TunedCodec speed;
        speed.codec = {codec, level};
        speed.type = type;
        if (measure_level(*codec, src, calls, scratch, body, dst, &speed)) speeds.push_back(speed);
      }
    }
  }
  return speeds;
}

CodecChoice cheapest_codec(std::span<const TunedCodec> speeds, DataType type, double bandwidth, int threads) {
  CodecChoice best;
  double least = 1 / bandwidth;
  for (const TunedCodec& speed : speeds) {
    if (speed.type != type) continue;
    if (!best.codec) best = {find_codec("raw"), CodecLevel::kBalanced};
    const double coding = (1 / speed.encode + 1 / speed.decode) / (1 + threads);
    const double time = speed.ratio / bandwidth + coding;
    if (time >= least) continue;
    best = speed.codec;
    least = time;
  }
  return best;
}

}  // namespace uzip
