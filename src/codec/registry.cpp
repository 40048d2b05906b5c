// The list of codecs. A new codec is a line here, a file in this folder and a section in
// docs/FORMAT.md.
#include "codec/codec.hpp"
#include "codec/lev.hpp"
#include "codec/raw.hpp"

#include <array>

namespace uzip {
namespace {

constexpr std::array<const Codec*, 2> kCodecs = {&kRawCodec, &kLevCodec};

}  // namespace

std::span<const Codec* const> codecs() { return kCodecs; }

const Codec* find_codec(std::string_view name) {
  for (const Codec* codec : kCodecs)
    if (name == codec->name) return codec;
  return nullptr;
}

const Codec* find_codec(uint8_t id) {
  for (const Codec* codec : kCodecs)
    if (id == codec->id) return codec;
  return nullptr;
}

}  // namespace uzip
