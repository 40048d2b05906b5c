// Measures each codec on each data in turns with memcpy, and prints medians.
//
// Data are coded in pieces that don't know of one another, as messages are. Every codec gets the
// same pieces; a walk through memory reads and writes elements there, but has the encoded piece in
// one small buffer, as the engine does.
#include "codec_table.hpp"

#include "base/cpu.hpp"
#include "base/reduce.hpp"
#include "codec/codec.hpp"
#include "codec/reduce_frames.hpp"
#include "peer_codecs.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>

namespace uzip {
namespace {

constexpr size_t kMostPiece = size_t{256} << 10;
constexpr size_t kWalk = size_t{16} << 20;
constexpr int kLeastRounds = 3;
constexpr double kLeastSeconds = 0.08;  ///< of each measurement
constexpr double kLeastPass = 3e-4;     ///< shorter ones tell of the clock

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// What is measured of a codec.
class Contestant {
 public:
  virtual ~Contestant() = default;
  virtual std::string name() const = 0;
  virtual bool supports(const DataTypeInfo& info) const = 0;
  /// Bytes of the encoded piece, kept inside; 0: it is as it was.
  virtual size_t encode(const DataTypeInfo& info, std::span<const std::byte> src) = 0;
  virtual bool decode(const DataTypeInfo& info, std::span<std::byte> dst) = 0;
  /// dst = src + decoded.
  virtual bool reduce(const DataTypeInfo& info, const std::byte* src, std::span<std::byte> dst) = 0;
};

class OwnCodec : public Contestant {
 public:
  explicit OwnCodec(CodecLevel level) : level_(level) {}

  std::string name() const override {
    constexpr const char* kLevels[] = {"fastest", "balanced", "smallest"};
    return std::string(codec_.name) + ":" + kLevels[static_cast<size_t>(level_)];
  }
  bool supports(const DataTypeInfo& info) const override { return codec_.supports(info.type); }
  size_t encode(const DataTypeInfo& info, std::span<const std::byte> src) override {
    const size_t count = src.size() / info.size;
    const EncodedSizes bound = codec_.bound(info.type, count);
    body_.resize(std::max(body_.size(), bound.plain + bound.coded));
    if (!codec_.encode(info.type, level_, src.data(), count, body_, scratch_, header_).ok())
      return 0;
    if (header_.codec == kCodecRaw) return 0;
    return kFrameHeaderBytes + header_.plain_bytes + header_.coded_bytes;
  }
  bool decode(const DataTypeInfo&, std::span<std::byte> dst) override {
    return codec_.decode(header_, plain(), coded(), dst, scratch_).ok();
  }
  bool reduce(const DataTypeInfo& info, const std::byte* src, std::span<std::byte> dst) override {
    work_.resize(std::max(work_.size(), reduce_frames_bytes(info.type, 1)));
    const ReduceOperand operands[] = {{src, nullptr, {}, {}},
                                      {nullptr, &header_, plain(), coded()}};
    return reduce_frames(UZIP_SUM, info.type, dst.data(), operands, dst.size() / info.size, 0,
                         work_, scratch_)
        .ok();
  }

 private:
  std::span<const std::byte> plain() const { return std::span(body_).first(header_.plain_bytes); }
  std::span<const std::byte> coded() const {
    return std::span(body_).subspan(header_.plain_bytes, header_.coded_bytes);
  }

  const Codec& codec_ = *find_codec("lev");
  CodecLevel level_;
  CodecScratch scratch_;
  FrameHeader header_;
  std::vector<std::byte> body_;
  std::vector<std::byte> work_;
};

/// Reduces with our own kernels after its own decoding.
class Peer : public Contestant {
 public:
  explicit Peer(PeerCodec codec) : codec_(std::move(codec)) {}

  std::string name() const override { return codec_.name; }
  bool supports(const DataTypeInfo& info) const override { return codec_.supports(info); }
  size_t encode(const DataTypeInfo& info, std::span<const std::byte> src) override {
    encoded_.resize(std::max(encoded_.size(), peer_bound(src.size())));
    bytes_ = codec_.encode(info, src, encoded_);
    return bytes_;
  }
  bool decode(const DataTypeInfo& info, std::span<std::byte> dst) override {
    return codec_.decode(info, std::span(encoded_).first(bytes_), dst);
  }
  bool reduce(const DataTypeInfo& info, const std::byte* src, std::span<std::byte> dst) override {
    decoded_.resize(std::max(decoded_.size(), dst.size()));
    if (!decode(info, std::span(decoded_).first(dst.size()))) return false;
    const void* sources[] = {src, decoded_.data()};
    uzip::reduce(UZIP_SUM, info.type, dst.data(), sources, dst.size() / info.size);
    return true;
  }

 private:
  PeerCodec codec_;
  size_t bytes_ = 0;
  std::vector<std::byte> encoded_;
  std::vector<std::byte> decoded_;
};

/// Page-aligned, as message buffers are.
class Buffer {
 public:
  explicit Buffer(size_t bytes)
      : bytes_(bytes), begin_(static_cast<std::byte*>(std::aligned_alloc(4096, bytes))) {
    std::memset(begin_, 1, bytes);
  }
  ~Buffer() { std::free(begin_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  std::byte* at(size_t offset) const { return begin_ + offset; }
  size_t size() const { return bytes_; }

 private:
  size_t bytes_;
  std::byte* begin_;
};

/// Speed in bytes of elements a second, and as a part of memcpy's in the same rounds.
struct Speed {
  double bytes_per_second = 0;
  double of_memcpy = 0;
};

/// The pieces of one data, repeated to fill a walk.
class Course {
 public:
  Course(const TableData& data, bool cached)
      : info_(datatype_info(data.type)),
        piece_(std::min(data.bytes.size(), kMostPiece) / info_.size * info_.size),
        pieces_(cached ? 1 : kWalk / piece_),
        src_((pieces_ * piece_ + 4095) / 4096 * 4096),
        dst_(src_.size()) {
    for (size_t p = 0; p < pieces_; ++p) {
      const size_t from = p * piece_ % (data.bytes.size() / piece_ * piece_);
      std::memcpy(src_.at(p * piece_), data.bytes.data() + from, piece_);
    }
  }

  const DataTypeInfo& info() const { return info_; }
  std::span<const std::byte> source(size_t piece) const {
    return {src_.at(piece * piece_), piece_};
  }
  std::span<std::byte> target(size_t piece) const { return {dst_.at(piece * piece_), piece_}; }
  size_t pieces() const { return pieces_; }

  /// Calls `body(piece)` for all pieces, in turns with memcpy.
  template <class Body>
  Speed measure(Body body) const {
    std::vector<double> coding;
    std::vector<double> copying;
    const size_t repeats = repeats_for(body);
    const Clock::time_point begin = Clock::now();
    while (coding.size() < kLeastRounds || seconds_since(begin) < 2 * kLeastSeconds) {
      coding.push_back(time(repeats, body));
      copying.push_back(time(repeats, [&](size_t p) {
        std::memcpy(target(p).data(), source(p).data(), piece_);
        asm volatile("" : : "r"(target(p).data()) : "memory");
      }));
    }
    const double pass = median(coding);
    const double bytes = static_cast<double>(repeats * pieces_ * piece_);
    return {bytes / pass, median(copying) / pass};
  }

 private:
  template <class Body>
  double time(size_t repeats, Body& body) const {
    const Clock::time_point begin = Clock::now();
    for (size_t r = 0; r < repeats; ++r)
      for (size_t p = 0; p < pieces_; ++p) body(p);
    return seconds_since(begin);
  }
  template <class Body>
  double time(size_t repeats, Body&& body) const {
    return time(repeats, body);
  }
  template <class Body>
  size_t repeats_for(Body& body) const {
    size_t repeats = 1;
    while (time(repeats, body) < kLeastPass) repeats *= 2;
    return repeats;
  }

  const DataTypeInfo& info_;
  size_t piece_;
  size_t pieces_;
  Buffer src_;
  Buffer dst_;
};

void print_title(bool cached) {
  std::printf("# one core, CPU target %s, %s; GB/s of elements, and as a part of memcpy\n",
              cpu_target_name(cpu_target()),
              cached ? "one piece again and again" : "walking through 16 MiB");
  std::printf("%-10s  %-22s  %-22s %6s  %14s  %14s  %14s\n", "type", "data", "codec", "ratio",
              "encode", "decode", "decode+reduce");
}

void print_speed(const Speed& speed) {
  std::printf("  %8.3f %5.2f", speed.bytes_per_second / 1e9, speed.of_memcpy);
  std::fflush(stdout);
}

/// One line. False when the elements did not come back.
bool print_row(const std::string& data, const Course& course, Contestant& codec) {
  const DataTypeInfo& info = course.info();
  std::printf("%-10s  %-22s  %-22s", info.name, data.c_str(), codec.name().c_str());
  const size_t bytes = codec.encode(info, course.source(0));
  const Speed encoding =
      course.measure([&](size_t p) { static_cast<void>(codec.encode(info, course.source(p))); });
  std::printf(
      " %6.3f",
      bytes == 0 ? 1.0 : static_cast<double>(bytes) / static_cast<double>(course.source(0).size()));
  print_speed(encoding);
  if (bytes == 0) {
    std::printf("  as it was\n");
    return true;
  }
  // Encodes the first piece again: it is what is decoded everywhere.
  codec.encode(info, course.source(0));
  bool good =
      codec.decode(info, course.target(0)) &&
      std::memcmp(course.target(0).data(), course.source(0).data(), course.source(0).size()) == 0;
  print_speed(course.measure([&](size_t p) { good &= codec.decode(info, course.target(p)); }));
  print_speed(course.measure(
      [&](size_t p) { good &= codec.reduce(info, course.source(p).data(), course.target(p)); }));
  std::printf("%s\n", good ? "" : "  WRONG");
  return good;
}

}  // namespace

bool print_codec_table(const TableOptions& options) {
  std::vector<std::unique_ptr<Contestant>> contestants;
  for (CodecLevel level : {CodecLevel::kFastest, CodecLevel::kBalanced, CodecLevel::kSmallest})
    contestants.push_back(std::make_unique<OwnCodec>(level));
  for (PeerCodec& peer : peer_codecs())
    contestants.push_back(std::make_unique<Peer>(std::move(peer)));
  print_title(options.cached);
  bool good = true;
  for (const TableData& data : options.data) {
    const Course course(data, options.cached);
    for (const auto& contestant : contestants) {
      const std::string row =
          std::string(course.info().name) + " " + data.name + " " + contestant->name();
      if (!contestant->supports(course.info()) || row.find(options.match) == std::string::npos)
        continue;
      good &= print_row(data.name, course, *contestant);
    }
  }
  return good;
}

}  // namespace uzip
