#include "gpu/planned_frame.hpp"

#include "codec/lev_layout.hpp"
#include "codec/planner.hpp"
#include "codec/scratch.hpp"
#include "codec/sequence.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace uzip {
namespace {

using Bytes = std::vector<std::byte>;

void pad(Bytes& bytes, size_t alignment) { bytes.resize(padded(bytes.size(), alignment)); }

void append(Bytes& bytes, const uint8_t* more, size_t count) {
  const auto* const begin = reinterpret_cast<const std::byte*>(more);
  bytes.insert(bytes.end(), begin, begin + count);
}

/// One block of planes, none of them without zeros or of differences.
class BlockWriter {
 public:
  BlockWriter(const LevTraits& traits, CodecScratch& scratch)
      : traits_(traits), scratch_(scratch.state()) {}

  void write(BlockDescriptor block, const uint8_t* src, Bytes* plain, Bytes* coded) {
    std::array<uint8_t*, kMaxTypeSize> planes{};
    for (size_t p = 0; p < traits_.size; ++p) planes[p] = scratch_.planes[p];
    const CodecKernels& kernels = codec_kernels();
    kernels.split[traits_.size_class](src, block.values, block.rotation + 1u, planes.data());
    Bytes sections;
    std::vector<uint8_t> room(2 * kMaxBlockValues);
    for (size_t p = traits_.size; p-- > 0;) {
      SequenceRecord& record = block.planes[p];
      Bytes& stored_part = (record.place & kStoredInCoded) != 0 ? sections : *plain;
      append(stored_part, room.data(),
             encode_stored(kernels, record, planes[p], block.values, room.data()));
      if (!record.has_fields()) continue;
      Bytes& field_part = (record.place & kFieldsInCoded) != 0 ? sections : *plain;
      const size_t bytes =
          encode_fields(kernels, planes[p], block.values, scratch_, &record, room.data());
      ASSERT_NE(bytes, SIZE_MAX) << "levels that don't pay";
      append(field_part, room.data(), bytes);
    }
    Bytes described(descriptor_bytes(block, traits_.size));
    write_descriptor(block, traits_.size, described.data());
    coded->insert(coded->end(), described.begin(), described.end());
    coded->insert(coded->end(), sections.begin(), sections.end());
    pad(*plain, kBlockAlignment);
    pad(*coded, kBlockAlignment);
  }

 private:
  LevTraits traits_;
  CodecScratch::State& scratch_;
};

void write_constant(const BlockDescriptor& block, size_t type_size, Bytes* coded) {
  EXPECT_EQ(block.exceptions, 0u);
  Bytes bytes(padded(constant_block_bytes(block, type_size), kBlockAlignment));
  write_descriptor(block, type_size, bytes.data());
  coded->insert(coded->end(), bytes.begin(), bytes.end());
}

}  // namespace

EncodedFrame encode_as_planned(const EncodedFrame& frame, std::span<const uint8_t> elements) {
  EncodedFrame result;
  result.header = frame.header;
  if (frame.header.codec == kCodecRaw) {
    append(result.plain, elements.data(), elements.size());
    return result;
  }
  const auto type = static_cast<DataType>(frame.header.type);
  const LevTraits traits = lev_traits(type);
  CodecScratch scratch;
  LevHead head;
  std::memcpy(&head, frame.coded.data(), sizeof head);
  const size_t block_values = size_t{1} << head.block_log2;
  std::vector<LevTableEntry> table;
  Bytes blocks;
  size_t plain_at = 0;
  size_t coded_at = lev_first_block(head.blocks);
  for (size_t b = 0; b < head.blocks; ++b) {
    LevTableEntry sizes;
    std::memcpy(&sizes, frame.coded.data() + sizeof head + b * sizeof sizes, sizeof sizes);
    const size_t values = std::min(block_values, frame.header.count - b * block_values);
    BlockDescriptor block;
    size_t described = 0;
    const Status status =
        read_descriptor(std::span(frame.coded).subspan(coded_at, sizes.coded), sizes.plain, values,
                        traits.size, &block, &described);
    EXPECT_TRUE(status.ok()) << status.message();
    const uint8_t* src = elements.data() + b * block_values * traits.size;
    Bytes plain;
    Bytes coded;
    if (block.kind == BlockKind::kConstant)
      write_constant(block, traits.size, &coded);
    else
      BlockWriter(traits, scratch).write(block, src, &plain, &coded);
    table.push_back({static_cast<uint32_t>(plain.size()), static_cast<uint32_t>(coded.size())});
    result.plain.insert(result.plain.end(), plain.begin(), plain.end());
    blocks.insert(blocks.end(), coded.begin(), coded.end());
    plain_at += sizes.plain;
    coded_at += sizes.coded;
  }
  append(result.coded, reinterpret_cast<const uint8_t*>(&head), sizeof head);
  append(result.coded, reinterpret_cast<const uint8_t*>(table.data()),
         table.size() * sizeof table[0]);
  pad(result.coded, kBlockAlignment);
  result.coded.insert(result.coded.end(), blocks.begin(), blocks.end());
  result.header.plain_bytes = result.plain.size();
  result.header.coded_bytes = result.coded.size();
  return result;
}

}  // namespace uzip
