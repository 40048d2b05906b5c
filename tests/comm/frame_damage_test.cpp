// What the C API finds in frames: facts in good ones, errors in damaged ones, whatever the damage.
#include "base/crc32c.hpp"
#include "base/reduce.hpp"
#include "codec/frame.hpp"
#include "comm/guarded_codec.hpp"

#include <gtest/gtest.h>

#include <span>
#include <string>

namespace uzip {
namespace {

/// What must hold for a frame that may be damaged: an error with a sentence, or the very elements.
void expect_found_or_harmless(GuardedCodec& codec, const Specimen& specimen, const Bytes& frame) {
  const uzip_status_t status = codec.decode(frame, specimen.type, specimen.count());
  ASSERT_TRUE(codec.margin_is_untouched());
  if (status == UZIP_OK) {
    ASSERT_EQ(codec.elements(), specimen.elements);
  } else {
    ASSERT_TRUE(status == UZIP_ERR_CORRUPT || status == UZIP_ERR_MISMATCH ||
                status == UZIP_ERR_UNSUPPORTED)
        << uzip_status_string(status);
    ASSERT_STRNE(uzip_last_error(), "");
  }
  ASSERT_EQ(codec.decode_reduce(frame, specimen.type, UZIP_MAX, specimen.elements), status);
  ASSERT_TRUE(codec.margin_is_untouched());
  if (status == UZIP_OK) {
    const void* const sources[] = {specimen.elements.data(), specimen.elements.data()};
    Bytes expected(specimen.elements.size());
    reduce(UZIP_MAX, specimen.type, expected.data(), sources, specimen.count());
    ASSERT_EQ(codec.elements(), expected);
  }
  uzip_frame_info_t info;
  const uzip_status_t described = codec.frame_info(frame, &info);
  if (described == UZIP_OK) {
    ASSERT_TRUE(status != UZIP_OK || info.frame_bytes <= frame.size());
  } else {
    ASSERT_EQ(described, UZIP_ERR_CORRUPT);
    ASSERT_NE(status, UZIP_OK);
  }
}

/// Every kind of frame, not only raw ones.
TEST(DamagedFrame, SpecimensAreCoded) {
  size_t coded = 0;
  for (const Specimen& specimen : specimens())
    coded += header_of(specimen.frame).codec != kCodecRaw;
  EXPECT_GE(coded, specimens().size() * 3 / 4);
}

TEST(DamagedFrame, EveryTruncationIsFound) {
  GuardedCodec codec;
  for (const Specimen& specimen : specimens()) {
    SCOPED_TRACE(specimen.name);
    for (size_t bytes = 0; bytes < specimen.frame.size(); ++bytes) {
      const Bytes cut(specimen.frame.begin(),
                      specimen.frame.begin() + static_cast<ptrdiff_t>(bytes));
      ASSERT_EQ(codec.decode(cut, specimen.type, specimen.count()), UZIP_ERR_CORRUPT);
      ASSERT_EQ(codec.elements(), Bytes(specimen.elements.size(), kUntouched));
      ASSERT_EQ(codec.decode_reduce(cut, specimen.type, UZIP_SUM, specimen.elements),
                UZIP_ERR_CORRUPT);
      ASSERT_EQ(codec.elements(), specimen.elements);
      const std::string said =
          bytes < kFrameHeaderBytes
              ? "a frame has at least 64 bytes"
              : "the frame is cut off: " + std::to_string(specimen.frame.size() - bytes) +
                    " of its " + std::to_string(specimen.frame.size());
      ASSERT_NE(std::string(uzip_last_error()).find(said), std::string::npos) << uzip_last_error();
      uzip_frame_info_t info;
      ASSERT_EQ(codec.frame_info(cut, &info),
                bytes < kFrameHeaderBytes ? UZIP_ERR_CORRUPT : UZIP_OK);
    }
  }
}

TEST(DamagedFrame, EveryBitOfTheHeader) {
  GuardedCodec codec;
  for (const Specimen& specimen : specimens()) {
    SCOPED_TRACE(specimen.name);
    for (size_t bit = 0; bit < 8 * kFrameHeaderBytes; ++bit) {
      SCOPED_TRACE("bit " + std::to_string(bit));
      Bytes damaged = specimen.frame;
      damaged[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
      ASSERT_NO_FATAL_FAILURE(expect_found_or_harmless(codec, specimen, damaged));
    }
  }
}

TEST(DamagedFrame, EveryByteOfTheBody) {
  GuardedCodec codec;
  for (const Specimen& specimen : specimens()) {
    SCOPED_TRACE(specimen.name);
    for (size_t at = kFrameHeaderBytes; at < specimen.frame.size(); ++at) {
      SCOPED_TRACE("byte " + std::to_string(at));
      for (unsigned flip : {1u << at % 8, 0xffu}) {
        Bytes damaged = specimen.frame;
        damaged[at] ^= static_cast<uint8_t>(flip);
        ASSERT_NO_FATAL_FAILURE(expect_found_or_harmless(codec, specimen, damaged));
      }
    }
  }
}

TEST(DamagedFrame, OtherElementsWithTheSameChecksumFieldAreFound) {
  GuardedCodec codec;
  const Bytes elements = make_sample(UZIP_FP32, SampleKind::kGaussian, 300);
  Bytes others = elements;
  others[others.size() / 2] ^= 1;
  for (const char* name : {"raw", "lev"}) {
    FrameHeader header = header_of(encode(UZIP_FP32, name, elements));
    const Bytes other_frame = encode(UZIP_FP32, name, others);
    const uint32_t checksum = header.checksum;
    header = header_of(other_frame);
    header.checksum = checksum;
    const Bytes damaged = with_header(other_frame, header);
    EXPECT_EQ(codec.decode(damaged, UZIP_FP32, 300), UZIP_ERR_CORRUPT);
    EXPECT_EQ(codec.decode_reduce(damaged, UZIP_FP32, UZIP_SUM, elements), UZIP_ERR_CORRUPT);
  }
}

/// All of the frame, with something behind it, and nothing but the header.
TEST(FrameInfo, TellsWhatTheHeaderSays) {
  GuardedCodec codec;
  for (const Specimen& specimen : specimens()) {
    SCOPED_TRACE(specimen.name);
    const FrameHeader header = header_of(specimen.frame);
    Bytes more = specimen.frame;
    more.resize(more.size() + 100);
    const Bytes head(specimen.frame.begin(), specimen.frame.begin() + UZIP_FRAME_HEADER_BYTES);
    for (const Bytes& frame : {specimen.frame, more, head}) {
      uzip_frame_info_t info;
      ASSERT_EQ(codec.frame_info(frame, &info), UZIP_OK) << uzip_last_error();
      EXPECT_EQ(info.dtype, specimen.type);
      EXPECT_EQ(info.count, specimen.count());
      EXPECT_EQ(info.frame_bytes, specimen.frame.size());
      EXPECT_EQ(info.frame_bytes, kFrameHeaderBytes + info.plain_bytes + info.coded_bytes);
      EXPECT_EQ(info.plain_bytes, header.plain_bytes);
      EXPECT_EQ(info.coded_bytes, header.coded_bytes);
      EXPECT_STREQ(info.codec, header.codec == kCodecRaw ? "raw" : "lev");
      EXPECT_EQ(info.has_checksum, 1);
      EXPECT_EQ(info.checksum, crc32c(std::as_bytes(std::span(specimen.elements))));
    }
  }
}

TEST(FrameInfo, ChecksumsAreOptional) {
  GuardedCodec codec;
  for (const Specimen& specimen : specimens()) {
    FrameHeader header = header_of(specimen.frame);
    header.flags = 0;
    header.checksum = 0;
    const Bytes frame = with_header(specimen.frame, header);
    uzip_frame_info_t info;
    ASSERT_EQ(codec.frame_info(frame, &info), UZIP_OK) << uzip_last_error();
    EXPECT_EQ(info.has_checksum, 0);
    EXPECT_EQ(info.checksum, 0u);
    ASSERT_EQ(codec.decode(frame, specimen.type, specimen.count()), UZIP_OK);
    EXPECT_EQ(codec.elements(), specimen.elements);
  }
}

/// A frame of a codec that a later version may bring isn't damaged.
TEST(FrameInfo, CodecsOfLaterVersionsAreUnknown) {
  GuardedCodec codec;
  const Specimen& specimen = specimens().back();
  FrameHeader header = header_of(specimen.frame);
  header.codec = 200;
  const Bytes frame = with_header(specimen.frame, header);
  uzip_frame_info_t info;
  ASSERT_EQ(codec.frame_info(frame, &info), UZIP_OK) << uzip_last_error();
  EXPECT_STREQ(info.codec, "unknown");
  EXPECT_EQ(info.frame_bytes, frame.size());
  EXPECT_EQ(codec.decode(frame, specimen.type, specimen.count()), UZIP_ERR_UNSUPPORTED);
  EXPECT_NE(std::string(uzip_last_error()).find("no codec 200"), std::string::npos);
  EXPECT_EQ(codec.decode_reduce(frame, specimen.type, UZIP_SUM, specimen.elements),
            UZIP_ERR_UNSUPPORTED);
  header.plain_bytes = uint64_t{1} << 40;
  EXPECT_EQ(codec.frame_info(with_header(frame, header), &info), UZIP_ERR_CORRUPT);
}

TEST(FrameInfo, HalfAFrameIsNotOne) {
  GuardedCodec codec;
  for (const Specimen& specimen : specimens()) {
    FrameHeader header = header_of(specimen.frame);
    header.flags |= kFrameCodedFollows;
    header.coded_bytes = 0;
    const Bytes frame = with_header(specimen.frame, header);
    uzip_frame_info_t info;
    EXPECT_EQ(codec.frame_info(frame, &info), UZIP_ERR_CORRUPT);
    EXPECT_EQ(codec.decode(frame, specimen.type, specimen.count()), UZIP_ERR_CORRUPT);
    EXPECT_NE(std::string(uzip_last_error()).find("its coded part is missing"), std::string::npos);
  }
}

}  // namespace
}  // namespace uzip
