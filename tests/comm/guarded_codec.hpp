// The C API's functions on frames, with the frame and the elements right before guard pages, and
// small frames of all kinds. Used by the tests of these functions.
#pragma once

#include "codec/frame.hpp"
#include "codec/guarded_memory.hpp"
#include "codec/samples.hpp"

#include <uzipcoll/uzipcoll.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace uzip {

using Bytes = std::vector<uint8_t>;

/// What the elements are before a call that must not write any.
inline constexpr uint8_t kUntouched = 0x5a;

/// The name, or "NULL".
const char* or_null(const char* name);

/// A frame of the elements; a failure is a failure of the test.
Bytes encode(DataType type, const char* codec, const Bytes& elements);

FrameHeader header_of(const Bytes& frame);
/// The frame with another header.
Bytes with_header(Bytes frame, const FrameHeader& header);

class GuardedCodec {
 public:
  uzip_status_t encode(DataType type, const char* codec, const Bytes& elements, Bytes* frame);
  uzip_status_t decode(const Bytes& frame, DataType type, size_t count);
  /// `own` is what the elements of the destination are before.
  uzip_status_t decode_reduce(const Bytes& frame, DataType type, uzip_op_t op, const Bytes& own);
  uzip_status_t frame_info(const Bytes& frame, uzip_frame_info_t* info);

  /// The destination's elements after the last decode() or decode_reduce().
  Bytes elements() const;
  /// Nothing was written in front of them.
  bool margin_is_untouched() const;

 private:
  static constexpr size_t kCapacity = size_t{1} << 20;
  static constexpr size_t kMargin = 64;

  static std::span<std::byte> place(const GuardedMemory& memory, const Bytes& bytes);
  std::span<std::byte> prepare(const Bytes& elements);

  GuardedMemory frame_{kCapacity};
  GuardedMemory elements_{kCapacity + kMargin};
  size_t element_bytes_ = 0;
};

/// A small frame and its elements.
struct Specimen {
  std::string name;
  DataType type;
  Bytes elements;
  Bytes frame;

  size_t count() const { return elements.size() / datatype_size(type); }
};

/// One of each kind that the codecs make.
const std::vector<Specimen>& specimens();

}  // namespace uzip
