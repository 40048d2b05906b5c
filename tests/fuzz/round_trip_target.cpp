// Elements from anywhere. A fuzzer's inputs are short, so the input is a recipe: how many elements,
// made in which way from the values that follow.
#include "base/cpu.hpp"
#include "codec/codec.hpp"
#include "fuzz/fuzz_target.hpp"

#include <cstring>
#include <vector>

namespace uzip {
namespace {

constexpr size_t kHeadBytes = 4;  ///< level and way, CPU target, u16 count
enum Way { kOneAfterAnother, kAtRandom, kSummedUp, kMostlyTheFirst, kWays };

std::vector<std::byte> make_elements(std::span<const std::byte> values, size_t size, size_t count,
                                     Way way) {
  const size_t choices = values.size() / size;
  std::vector<std::byte> elements(count * size);
  uint64_t random = 1;
  uint64_t sum = 0;
  for (size_t i = 0; i < count; ++i) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    size_t choice = i;
    if (way == kAtRandom) choice = random >> 33;
    if (way == kMostlyTheFirst) choice = random >> 60 == 0 ? random >> 33 : 0;
    uint64_t value = 0;
    std::memcpy(&value, values.data() + choice % choices * size, size);
    sum += value;
    if (way == kSummedUp) value = sum;
    std::memcpy(&elements[i * size], &value, size);
  }
  return elements;
}

class RoundTrip {
 public:
  RoundTrip(DataType type, CodecLevel level, std::span<const std::byte> src)
      : type_(type), level_(level), src_(src), count_(src.size() / datatype_size(type)) {}

  void run(CodecScratch& scratch) {
    const EncodedSizes bound = codec_.bound(type_, count_);
    std::vector<std::byte> body(bound.plain + bound.coded);
    FrameHeader header;
    require(codec_.encode(type_, level_, src_.data(), count_, body, scratch, header).ok(),
            "encode failed");
    if (header.codec != kCodecRaw) {
      require(header.plain_bytes + header.coded_bytes < src_.size(), "a frame grew");
      check(header, std::span(body).first(header.plain_bytes),
            std::span(body).subspan(header.plain_bytes, header.coded_bytes), scratch);
    }
    run_in_stages(scratch);
  }

 private:
  void run_in_stages(CodecScratch& scratch) {
    const EncodedSizes bound = codec_.bound(type_, count_);
    std::vector<std::byte> plain(bound.plain);
    std::vector<std::byte> coded(bound.coded);
    FrameHeader header;
    require(codec_.encode_plain(type_, level_, src_.data(), count_, plain, scratch, header).ok(),
            "the first stage failed");
    if (header.codec == kCodecRaw) return;
    require(codec_.encode_coded(type_, level_, src_.data(), count_, coded, scratch, header).ok(),
            "the second stage failed");
    // Whole groups of 64 in each plane, and the tables.
    const size_t most = src_.size() + src_.size() / 500 + 64 * (1 + datatype_size(type_));
    require(header.plain_bytes + header.coded_bytes <= most, "a frame grew too much in stages");
    check(header, std::span(plain).first(header.plain_bytes),
          std::span(coded).first(header.coded_bytes), scratch);
  }

  void check(const FrameHeader& header, std::span<const std::byte> plain,
             std::span<const std::byte> coded, CodecScratch& scratch) {
    const std::vector<std::byte> own_plain(plain.begin(), plain.end());
    const std::vector<std::byte> own_coded(coded.begin(), coded.end());
    std::vector<std::byte> dst(src_.size());
    require(codec_.decode(header, own_plain, own_coded, dst, scratch).ok(), "own frame refused");
    require(std::memcmp(dst.data(), src_.data(), dst.size()) == 0,
            "the round trip changed the elements");
  }

  const Codec& codec_ = *find_codec("lev");
  DataType type_;
  CodecLevel level_;
  std::span<const std::byte> src_;
  size_t count_;
};

}  // namespace

void fuzz_round_trip(std::span<const std::byte> input, DataType type) {
  const size_t size = datatype_size(type);
  if (input.size() < kHeadBytes + size) return;
  const auto choice = std::to_integer<unsigned>(input[0]);
  const auto targets = available_cpu_targets();
  const auto target = targets[std::to_integer<size_t>(input[1]) % targets.size()];
  require(set_cpu_target(cpu_target_name(target)).ok(), "no CPU target");
  uint16_t count = 0;
  std::memcpy(&count, &input[2], sizeof count);
  const auto elements = make_elements(input.subspan(kHeadBytes), size, 1 + count % 5000,
                                      static_cast<Way>(choice / 3 % kWays));
  static CodecScratch scratch;
  RoundTrip(type, static_cast<CodecLevel>(choice % 3), elements).run(scratch);
}

}  // namespace uzip
