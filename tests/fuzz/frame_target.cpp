#include "fuzz/frame_target.hpp"

#include "codec/codec.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace uzip {
namespace {

constexpr size_t kMostOutput = size_t{1} << 22;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "fuzz_frame: %s\n", what);
  std::abort();
}

void require(bool condition, const char* what) {
  if (!condition) fail(what);
}

/// Exactly sized heap blocks, so that a sanitizer sees every byte too much.
std::vector<std::byte> copy(std::span<const std::byte> bytes) {
  return {bytes.begin(), bytes.end()};
}

void decode_anything(std::span<const std::byte> input, CodecScratch& scratch) {
  const auto header = parse_frame_header(input);
  if (!header.ok()) return;
  const auto body = input.subspan(kFrameHeaderBytes);
  const size_t raw = header->count * datatype_size(static_cast<DataType>(header->type));
  if (raw > kMostOutput || header->plain_bytes > body.size()) return;
  if (header->coded_bytes > body.size() - header->plain_bytes) return;
  std::vector<std::byte> dst(raw);
  const auto plain = copy(body.first(header->plain_bytes));
  const auto coded = copy(body.subspan(header->plain_bytes, header->coded_bytes));
  const Status status = find_codec(header->codec)->decode(*header, plain, coded, dst, scratch);
  require(status.ok() || status.code() == UZIP_ERR_CORRUPT, "decode failed with another code");
}

void round_trip(std::span<const std::byte> input, CodecScratch& scratch) {
  if (input.size() < 2) return;
  const Codec& codec = *find_codec("lev");
  const auto choice = std::to_integer<size_t>(input[0]);
  const DataTypeInfo& info = datatypes()[choice % datatypes().size()];
  const auto level = static_cast<CodecLevel>(choice / datatypes().size() % 3);
  const size_t count = (input.size() - 1) / info.size;
  const auto src = copy(input.subspan(1, count * info.size));
  const EncodedSizes bound = codec.bound(info.type, count);
  std::vector<std::byte> body(bound.plain + bound.coded);
  FrameHeader header;
  const Status status = codec.encode(info.type, level, src.data(), count, body, scratch, header);
  require(status.ok(), "encode failed");
  if (header.codec == kCodecRaw) return;
  require(header.plain_bytes + header.coded_bytes < src.size(), "a frame grew");
  const auto plain = copy(std::span(body).first(header.plain_bytes));
  const auto coded = copy(std::span(body).subspan(header.plain_bytes, header.coded_bytes));
  std::vector<std::byte> dst(src.size());
  require(codec.decode(header, plain, coded, dst, scratch).ok(), "own frame refused");
  require(dst == src, "round trip changed the elements");
}

}  // namespace

void fuzz_frame(const uint8_t* data, size_t size) {
  static CodecScratch scratch;
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  decode_anything({bytes, size}, scratch);
  round_trip({bytes, size}, scratch);
}

}  // namespace uzip

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  uzip::fuzz_frame(data, size);
  return 0;
}
