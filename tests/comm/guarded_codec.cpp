#include "comm/guarded_codec.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

namespace uzip {

const char* or_null(const char* name) { return name != nullptr ? name : "NULL"; }

Bytes encode(DataType type, const char* codec, const Bytes& elements) {
  const size_t count = elements.size() / datatype_size(type);
  Bytes frame(uzip_encode_bound(count, type));
  size_t bytes = 0;
  EXPECT_EQ(uzip_encode(count == 0 ? nullptr : elements.data(), count, type, codec, frame.data(),
                        frame.size(), &bytes),
            UZIP_OK)
      << uzip_last_error();
  frame.resize(bytes);
  return frame;
}

FrameHeader header_of(const Bytes& frame) {
  FrameHeader header;
  std::memcpy(&header, frame.data(), sizeof header);
  return header;
}

Bytes with_header(Bytes frame, const FrameHeader& header) {
  std::memcpy(frame.data(), &header, sizeof header);
  return frame;
}

uzip_status_t GuardedCodec::encode(DataType type, const char* codec, const Bytes& elements,
                                   Bytes* frame) {
  const size_t count = elements.size() / datatype_size(type);
  const auto src = place(elements_, elements);
  const auto room = frame_.last(uzip_encode_bound(count, type));
  size_t bytes = 0;
  const uzip_status_t status =
      uzip_encode(src.data(), count, type, codec, room.data(), room.size(), &bytes);
  const auto* begin = reinterpret_cast<const uint8_t*>(room.data());
  frame->assign(begin, begin + bytes);
  return status;
}

uzip_status_t GuardedCodec::decode(const Bytes& frame, DataType type, size_t count) {
  const auto src = place(frame_, frame);
  const auto dst = prepare(Bytes(count * datatype_size(type), kUntouched));
  return uzip_decode(src.data(), src.size(), dst.data(), count, type);
}

uzip_status_t GuardedCodec::decode_reduce(const Bytes& frame, DataType type, uzip_op_t op,
                                          const Bytes& own) {
  const auto src = place(frame_, frame);
  const auto dst = prepare(own);
  return uzip_decode_reduce(src.data(), src.size(), dst.data(), own.size() / datatype_size(type),
                            type, op);
}

uzip_status_t GuardedCodec::frame_info(const Bytes& frame, uzip_frame_info_t* info) {
  const auto src = place(frame_, frame);
  *info = {};
  info->struct_size = sizeof *info;
  return uzip_frame_info(src.data(), src.size(), info);
}

Bytes GuardedCodec::elements() const {
  const auto bytes = elements_.last(element_bytes_);
  const auto* begin = reinterpret_cast<const uint8_t*>(bytes.data());
  return {begin, begin + bytes.size()};
}

bool GuardedCodec::margin_is_untouched() const {
  const auto margin = elements_.last(element_bytes_ + kMargin).first(kMargin);
  return std::all_of(margin.begin(), margin.end(),
                     [](std::byte byte) { return byte == std::byte{kUntouched}; });
}

std::span<std::byte> GuardedCodec::place(const GuardedMemory& memory, const Bytes& bytes) {
  const auto room = memory.last(bytes.size());
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<uint8_t*>(room.data()));
  return room;
}

std::span<std::byte> GuardedCodec::prepare(const Bytes& elements) {
  element_bytes_ = elements.size();
  const auto room = elements_.last(element_bytes_ + kMargin);
  std::memset(room.data(), kUntouched, kMargin);
  return place(elements_, elements);
}

const std::vector<Specimen>& specimens() {
  static const auto all = [] {
    std::vector<Specimen> result;
    auto add = [&](DataType type, SampleKind kind, size_t count, const char* codec) {
      Bytes elements = make_sample(type, kind, count);
      Bytes frame = encode(type, codec, elements);
      result.push_back(
          {std::string(uzip_dtype_name(type)) + " " + sample_kind_name(kind) + " " + or_null(codec),
           type, std::move(elements), std::move(frame)});
    };
    add(UZIP_BF16, SampleKind::kGaussian, 0, "lev");
    add(UZIP_INT32, SampleKind::kRandomBits, 17, "lev");
    add(UZIP_FP32, SampleKind::kSpecials, 33, "raw");
    for (const DataTypeInfo& info : datatypes()) {
      if (!is_float(info.type)) continue;
      add(info.type, SampleKind::kGaussian, 1000, "lev");
      add(info.type, SampleKind::kConstant, 500, "lev:fastest");
      add(info.type, SampleKind::kOddOne, 500, "lev:smallest");
      add(info.type, SampleKind::kSparse, 1500, "lev:smallest");
      add(info.type, SampleKind::kSmooth, 700, "lev:smallest");
    }
    return result;
  }();
  return all;
}

}  // namespace uzip
