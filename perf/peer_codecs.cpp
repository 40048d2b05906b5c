// One function for each neighbour. Each is used as its documentation recommends for speed: contexts
// are kept, one thread, the levels that are fast.
#include "peer_codecs.hpp"

#include <memory>

#ifdef PERF_WITH_ZSTD
#include <zstd.h>
#endif
#ifdef PERF_WITH_LZ4
#include <lz4.h>
#endif
#ifdef PERF_WITH_BLOSC
#include <blosc.h>
#endif
#ifdef PERF_WITH_FPZIP
#include <fpzip.h>
#endif
#ifdef PERF_WITH_ZFP
#include <zfp.h>
#endif

namespace uzip {
namespace {

[[maybe_unused]] bool any_type(const DataTypeInfo&) { return true; }
[[maybe_unused]] bool wide_float(const DataTypeInfo& info) {
  return info.kind == NumberKind::kFloat && info.size >= 4;
}

#ifdef PERF_WITH_ZSTD
PeerCodec zstd(int level) {
  const std::shared_ptr<ZSTD_CCtx> encoder(ZSTD_createCCtx(), ZSTD_freeCCtx);
  const std::shared_ptr<ZSTD_DCtx> decoder(ZSTD_createDCtx(), ZSTD_freeDCtx);
  return {"zstd -" + std::to_string(level), any_type,
          [=](const DataTypeInfo&, std::span<const std::byte> src, std::span<std::byte> dst) {
            const size_t bytes = ZSTD_compressCCtx(encoder.get(), dst.data(), dst.size(),
                                                   src.data(), src.size(), level);
            return ZSTD_isError(bytes) != 0 ? 0 : bytes;
          },
          [=](const DataTypeInfo&, std::span<const std::byte> src, std::span<std::byte> dst) {
            return ZSTD_decompressDCtx(decoder.get(), dst.data(), dst.size(), src.data(),
                                       src.size()) == dst.size();
          }};
}
#endif

#ifdef PERF_WITH_LZ4
PeerCodec lz4() {
  return {"lz4", any_type,
          [](const DataTypeInfo&, std::span<const std::byte> src, std::span<std::byte> dst) {
            return static_cast<size_t>(LZ4_compress_default(
                reinterpret_cast<const char*>(src.data()), reinterpret_cast<char*>(dst.data()),
                static_cast<int>(src.size()), static_cast<int>(dst.size())));
          },
          [](const DataTypeInfo&, std::span<const std::byte> src, std::span<std::byte> dst) {
            return LZ4_decompress_safe(
                       reinterpret_cast<const char*>(src.data()),
                       reinterpret_cast<char*>(dst.data()), static_cast<int>(src.size()),
                       static_cast<int>(dst.size())) == static_cast<int>(dst.size());
          }};
}
#endif

#ifdef PERF_WITH_BLOSC
PeerCodec blosc(const char* compressor, int level) {
  return {std::string("blosc shuffle ") + compressor + " -" + std::to_string(level), any_type,
          [=](const DataTypeInfo& info, std::span<const std::byte> src, std::span<std::byte> dst) {
            const int bytes =
                blosc_compress_ctx(level, BLOSC_SHUFFLE, info.size, src.size(), src.data(),
                                   dst.data(), dst.size(), compressor, 0, 1);
            return bytes > 0 ? static_cast<size_t>(bytes) : size_t{0};
          },
          [](const DataTypeInfo&, std::span<const std::byte> src, std::span<std::byte> dst) {
            return blosc_decompress_ctx(src.data(), dst.data(), dst.size(), 1) ==
                   static_cast<int>(dst.size());
          }};
}
#endif

#ifdef PERF_WITH_FPZIP
void describe(FPZ* stream, const DataTypeInfo& info, size_t count) {
  stream->type = info.size == 4 ? FPZIP_TYPE_FLOAT : FPZIP_TYPE_DOUBLE;
  stream->prec = 0;  // all bits
  stream->nx = static_cast<int>(count);
  stream->ny = stream->nz = stream->nf = 1;
}

PeerCodec fpzip() {
  return {"fpzip", wide_float,
          [](const DataTypeInfo& info, std::span<const std::byte> src, std::span<std::byte> dst) {
            FPZ* const stream = fpzip_write_to_buffer(dst.data(), dst.size());
            describe(stream, info, src.size() / info.size);
            const size_t bytes = fpzip_write(stream, src.data());
            fpzip_write_close(stream);
            return bytes;
          },
          [](const DataTypeInfo& info, std::span<const std::byte> src, std::span<std::byte> dst) {
            FPZ* const stream = fpzip_read_from_buffer(src.data());
            describe(stream, info, dst.size() / info.size);
            const size_t bytes = fpzip_read(stream, dst.data());
            fpzip_read_close(stream);
            return bytes > 0;
          }};
}
#endif

#ifdef PERF_WITH_ZFP
/// zfp's stream over some memory, set to give all bits back.
class ZfpStream {
 public:
  ZfpStream(const DataTypeInfo& info, const void* elements, size_t count,
            std::span<const std::byte> memory)
      : field_(zfp_field_1d(const_cast<void*>(elements),
                            info.size == 4 ? zfp_type_float : zfp_type_double, count),
               zfp_field_free),
        bits_(stream_open(const_cast<std::byte*>(memory.data()), memory.size()), stream_close),
        stream_(zfp_stream_open(bits_.get()), zfp_stream_close) {
    zfp_stream_set_reversible(stream_.get());
    zfp_stream_rewind(stream_.get());
  }
  size_t compress() { return zfp_compress(stream_.get(), field_.get()); }
  bool decompress() { return zfp_decompress(stream_.get(), field_.get()) != 0; }

 private:
  std::unique_ptr<zfp_field, decltype(&zfp_field_free)> field_;
  std::unique_ptr<bitstream, decltype(&stream_close)> bits_;
  std::unique_ptr<zfp_stream, decltype(&zfp_stream_close)> stream_;
};

PeerCodec zfp() {
  return {"zfp -R", wide_float,
          [](const DataTypeInfo& info, std::span<const std::byte> src, std::span<std::byte> dst) {
            return ZfpStream(info, src.data(), src.size() / info.size, dst).compress();
          },
          [](const DataTypeInfo& info, std::span<const std::byte> src, std::span<std::byte> dst) {
            return ZfpStream(info, dst.data(), dst.size() / info.size, src).decompress();
          }};
}
#endif

}  // namespace

std::vector<PeerCodec> peer_codecs() {
  std::vector<PeerCodec> all;
#ifdef PERF_WITH_LZ4
  all.push_back(lz4());
#endif
#ifdef PERF_WITH_ZSTD
  all.push_back(zstd(1));
  all.push_back(zstd(3));
#endif
#ifdef PERF_WITH_BLOSC
  all.push_back(blosc("lz4", 5));
  all.push_back(blosc("zstd", 1));
#endif
#ifdef PERF_WITH_FPZIP
  all.push_back(fpzip());
#endif
#ifdef PERF_WITH_ZFP
  all.push_back(zfp());
#endif
  return all;
}

}  // namespace uzip
