#include "codec_report.hpp"

#include "base/cpu.hpp"
#include "base/float_convert.hpp"
#include "codec/codec.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

namespace uzip {
namespace {

/// Enough to be typical, and little enough for the cache and a person's patience.
constexpr size_t kBytes = size_t{256} << 10;
constexpr auto kPatience = std::chrono::milliseconds(3);

/// Normal random numbers by Box and Muller, from a generator that is the same everywhere.
class Normal {
 public:
  float next() {
    constexpr double kTurn = 6.283185307179586;
    return static_cast<float>(std::sqrt(-2 * std::log(uniform())) * std::cos(kTurn * uniform()));
  }

 private:
  /// In (0, 1].
  double uniform() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return (static_cast<double>(state_ >> 40) + 1) / 16777216;
  }
  uint64_t state_ = 1;
};

template <class T>
void put(std::vector<std::byte>& bytes, size_t i, T value) {
  std::memcpy(&bytes[i * sizeof value], &value, sizeof value);
}

std::vector<std::byte> normal_elements(const DataTypeInfo& info) {
  std::vector<std::byte> bytes(kBytes);
  Normal normal;
  for (size_t i = 0; i < kBytes / info.size; ++i) {
    const float value = normal.next();
    switch (info.type) {
      case UZIP_FP16:
        put(bytes, i, float_to_fp16(value));
        break;
      case UZIP_BF16:
        put(bytes, i, float_to_bf16(value));
        break;
      case UZIP_FP32:
        put(bytes, i, value);
        break;
      case UZIP_FP64:  // a second number, for the lower half of the mantissa
        put(bytes, i, double{value} * (1 + double{normal.next()} * 1e-8));
        break;
      case UZIP_FP8_E4M3FN:
        put(bytes, i, float_to_fp8_e4m3fn(value));
        break;
      case UZIP_FP8_E5M2:
        put(bytes, i, float_to_fp8_e5m2(value));
        break;
      default:
        bytes[i * info.size] = static_cast<std::byte>(static_cast<int>(value * 16));
    }
  }
  return bytes;
}

/// 10^9 bytes of elements a second: the fastest of as many runs as patience allows.
template <class Run>
Result<double> speed_of(Run run) {
  using Clock = std::chrono::steady_clock;
  Clock::duration best = Clock::duration::max();
  const Clock::time_point begin = Clock::now();
  for (int runs = 0; runs < 3 || Clock::now() - begin < kPatience; ++runs) {
    const Clock::time_point start = Clock::now();
    UZIP_RETURN_IF_ERROR(run());
    best = std::min(best, Clock::now() - start);
  }
  return static_cast<double>(kBytes) / std::chrono::duration<double>(best).count() / 1e9;
}

Status print_speeds(const Codec& codec, const DataTypeInfo& info,
                    const std::vector<std::byte>& elements) {
  CodecScratch scratch;
  const size_t count = elements.size() / info.size;
  const EncodedSizes bound = codec.bound(info.type, count);
  std::vector<std::byte> body(bound.plain + bound.coded);
  std::vector<std::byte> decoded(elements.size());
  FrameHeader header;
  std::printf("      %-11s", info.name);
  for (CpuTarget target : available_cpu_targets()) {
    UZIP_RETURN_IF_ERROR(set_cpu_target(cpu_target_name(target)));
    UZIP_ASSIGN_OR_RETURN(const double encoding, speed_of([&] {
                            return codec.encode(info.type, CodecLevel::kBalanced, elements.data(),
                                                count, body, scratch, header);
                          }));
    const std::span<const std::byte> frame =
        header.codec == kCodecRaw ? std::span(elements) : std::span<const std::byte>(body);
    UZIP_ASSIGN_OR_RETURN(const double decoding, speed_of([&] {
                            return codec.decode(
                                header, frame.first(header.plain_bytes),
                                frame.subspan(header.plain_bytes, header.coded_bytes), decoded,
                                scratch);
                          }));
    if (decoded != elements)
      return error(UZIP_ERR_INTERNAL, "%s changed elements of %s on %s; please report it",
                   codec.name, info.name, cpu_target_name(target));
    if (target == available_cpu_targets().front())
      std::printf(" %5.3f", static_cast<double>(header.plain_bytes + header.coded_bytes) /
                                static_cast<double>(kBytes));
    std::printf("   %6.2f %6.2f", encoding, decoding);
  }
  std::printf("\n");
  return {};
}

/// A table for the codecs that do something.
Status print_table(const Codec& codec) {
  std::printf(
      "      GB/s of encoding and decoding normal random numbers on one core, here and now\n");
  std::printf("      %-11s %5s", "type", "ratio");
  for (CpuTarget target : available_cpu_targets()) std::printf("   %13s", cpu_target_name(target));
  std::printf("\n");
  for (const DataTypeInfo& info : datatypes())
    if (codec.supports(info.type))
      UZIP_RETURN_IF_ERROR(print_speeds(codec, info, normal_elements(info)));
  return set_cpu_target("auto");
}

}  // namespace

void print_codec_names() {
  for (const Codec* codec : codecs()) std::printf("%s\n", codec->name);
}

Status print_codecs() {
  for (const Codec* codec : codecs()) {
    std::printf("%s\n      %s\n", codec->name, codec->summary);
    if (codec->id != kCodecRaw) {
      UZIP_RETURN_IF_ERROR(print_table(*codec));
      continue;
    }
    std::printf("      types:");
    for (const DataTypeInfo& info : datatypes())
      if (codec->supports(info.type)) std::printf(" %s", info.name);
    std::printf("\n");
  }
  return {};
}

}  // namespace uzip
