#include "file_report.hpp"

#include "base/datatype.hpp"
#include "codec/codec.hpp"

#include <uzipcoll/uzipcoll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace uzip {
namespace {

using Bytes = std::span<const uint8_t>;

/// A file's bytes in memory, to be read only.
class MappedFile {
 public:
  MappedFile() = default;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile() {
    if (!bytes_.empty()) munmap(const_cast<uint8_t*>(bytes_.data()), bytes_.size());
  }

  /// Files without a byte are refused, too: neither report has anything to say about them.
  Status open(const char* path) {
    const int fd = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return error(UZIP_ERR_INVALID, "%s: %s", path, std::strerror(errno));
    const Status status = map(path, fd);
    close(fd);
    return status;
  }

  Bytes bytes() const { return bytes_; }

 private:
  Status map(const char* path, int fd) {
    struct stat facts;
    if (fstat(fd, &facts) != 0)
      return error(UZIP_ERR_INVALID, "%s: %s", path, std::strerror(errno));
    if (!S_ISREG(facts.st_mode)) return error(UZIP_ERR_INVALID, "%s: not a regular file", path);
    const auto size = static_cast<size_t>(facts.st_size);
    if (size == 0) return error(UZIP_ERR_INVALID, "%s: the file is empty", path);
    void* memory = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (memory == MAP_FAILED) return error(UZIP_ERR_INVALID, "%s: %s", path, std::strerror(errno));
    bytes_ = {static_cast<const uint8_t*>(memory), size};
    return {};
  }

  Bytes bytes_;
};

/// What a call of the public interface said.
Status status_of(uzip_status_t status) {
  return status == UZIP_OK ? Status() : Status(status, uzip_last_error());
}

/// "0.672"; "-" for a ratio to nothing.
std::string ratio_text(uint64_t encoded, uint64_t original) {
  if (original == 0) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.3f",
                static_cast<double>(encoded) / static_cast<double>(original));
  return text;
}

// ---- Frames -------------------------------------------------------------------------------------

constexpr uint64_t kMostFrameLines = 20;

struct FrameSums {
  uint64_t frames = 0;
  uint64_t count = 0;
  uint64_t plain = 0;
  uint64_t coded = 0;
  uint64_t bytes = 0;
  uint64_t original = 0;
};

void print_frame(uint64_t index, const uzip_frame_info_t& info) {
  if (index == 0)
    std::printf("%7s  %-7s  %-10s %12s %12s %12s %12s %7s  %s\n", "frame", "codec", "type",
                "elements", "plain", "coded", "bytes", "ratio", "checksum");
  char checksum[16] = "-";
  if (info.has_checksum != 0) std::snprintf(checksum, sizeof checksum, "%08x", info.checksum);
  const uint64_t original = info.count * uzip_dtype_size(info.dtype);
  std::printf("%7llu  %-7s  %-10s %12llu %12llu %12llu %12llu %7s  %s\n",
              static_cast<unsigned long long>(index), info.codec, uzip_dtype_name(info.dtype),
              static_cast<unsigned long long>(info.count),
              static_cast<unsigned long long>(info.plain_bytes),
              static_cast<unsigned long long>(info.coded_bytes),
              static_cast<unsigned long long>(info.frame_bytes),
              ratio_text(info.frame_bytes, original).c_str(), checksum);
}

void print_sums(const FrameSums& sums) {
  if (sums.frames > kMostFrameLines)
    std::printf("    ...  and %llu more\n",
                static_cast<unsigned long long>(sums.frames - kMostFrameLines));
  const std::string title = "all " + std::to_string(sums.frames);
  std::printf(
      "%7s  %-7s  %-10s %12llu %12llu %12llu %12llu %7s\n", title.c_str(), "", "",
      static_cast<unsigned long long>(sums.count), static_cast<unsigned long long>(sums.plain),
      static_cast<unsigned long long>(sums.coded), static_cast<unsigned long long>(sums.bytes),
      ratio_text(sums.bytes, sums.original).c_str());
}

// ---- Ratios -------------------------------------------------------------------------------------

constexpr size_t kPieceElements = size_t{64} << 10;
constexpr int kRuns = 3;
constexpr const char* kLevels[] = {":fastest", ":balanced", ":smallest"};

std::vector<std::string> codec_settings() {
  std::vector<std::string> names;
  for (const Codec* codec : codecs()) {
    if (codec->id == kCodecRaw)
      names.emplace_back(codec->name);
    else
      for (const char* level : kLevels) names.push_back(std::string(codec->name) + level);
  }
  return names;
}

/// Adds the seconds of the fastest of a few runs, so that the first one's page faults don't count.
template <class Body>
Status add_fastest(double* seconds, const Body& body) {
  using Clock = std::chrono::steady_clock;
  Clock::duration best = Clock::duration::max();
  for (int run = 0; run < kRuns; ++run) {
    const Clock::time_point start = Clock::now();
    UZIP_RETURN_IF_ERROR(status_of(body()));
    best = std::min(best, Clock::now() - start);
  }
  *seconds += std::chrono::duration<double>(best).count();
  return {};
}

/// What one setting makes of a file.
class Trial {
 public:
  Trial(std::string name, DataType type)
      : name_(std::move(name)),
        type_(type),
        frame_(uzip_encode_bound(kPieceElements, type)),
        decoded_(kPieceElements * datatype_size(type)) {}

  Status run(Bytes file) {
    for (; !file.empty(); file = file.subspan(std::min(file.size(), decoded_.size())))
      UZIP_RETURN_IF_ERROR(add(file.first(std::min(file.size(), decoded_.size()))));
    return {};
  }

  void print() const {
    const double original = static_cast<double>(original_bytes_) / 1e9;
    std::printf("%-14s %12.3f %12.3f %14llu %7s\n", name_.c_str(), original / encode_seconds_,
                original / decode_seconds_, static_cast<unsigned long long>(encoded_bytes_),
                ratio_text(encoded_bytes_, original_bytes_).c_str());
  }

 private:
  Status add(Bytes piece) {
    const size_t count = piece.size() / datatype_size(type_);
    size_t bytes = 0;
    UZIP_RETURN_IF_ERROR(add_fastest(&encode_seconds_, [&] {
      return uzip_encode(piece.data(), count, type_, name_.c_str(), frame_.data(), frame_.size(),
                         &bytes);
    }));
    UZIP_RETURN_IF_ERROR(add_fastest(&decode_seconds_, [&] {
      return uzip_decode(frame_.data(), bytes, decoded_.data(), count, type_);
    }));
    if (!std::equal(piece.begin(), piece.end(), decoded_.begin()))
      return error(UZIP_ERR_INTERNAL, "%s changed the elements; please report it", name_.c_str());
    original_bytes_ += piece.size();
    encoded_bytes_ += bytes;
    return {};
  }

  std::string name_;
  DataType type_;
  std::vector<uint8_t> frame_;
  std::vector<uint8_t> decoded_;
  double encode_seconds_ = 0;
  double decode_seconds_ = 0;
  uint64_t original_bytes_ = 0;
  uint64_t encoded_bytes_ = 0;
};

Status no_such_type(const char* name) {
  std::string known;
  for (const DataTypeInfo& info : datatypes())
    known += std::string(known.empty() ? "" : ", ") + info.name;
  return error(UZIP_ERR_INVALID, "there is no type '%.64s'; allowed are %s", name, known.c_str());
}

}  // namespace

Status print_frames(const char* path) {
  MappedFile file;
  UZIP_RETURN_IF_ERROR(file.open(path));
  FrameSums sums;
  while (sums.bytes < file.bytes().size()) {
    const Bytes rest = file.bytes().subspan(sums.bytes);
    uzip_frame_info_t info = {};
    info.struct_size = sizeof info;
    Status status = status_of(uzip_frame_info(rest.data(), rest.size(), &info));
    if (status.ok() && info.frame_bytes > rest.size())
      status = error(UZIP_ERR_CORRUPT, "the frame is cut off: %llu of its %llu bytes are missing",
                     static_cast<unsigned long long>(info.frame_bytes - rest.size()),
                     static_cast<unsigned long long>(info.frame_bytes));
    if (!status.ok())
      return status.with_context(std::string(path) + ": frame " + std::to_string(sums.frames) +
                                 " at byte " + std::to_string(sums.bytes));
    if (sums.frames < kMostFrameLines) print_frame(sums.frames, info);
    ++sums.frames;
    sums.count += info.count;
    sums.plain += info.plain_bytes;
    sums.coded += info.coded_bytes;
    sums.bytes += info.frame_bytes;
    sums.original += info.count * uzip_dtype_size(info.dtype);
  }
  print_sums(sums);
  return {};
}

Status print_ratios(const char* path, const char* type_name) {
  const DataTypeInfo* const info = find_datatype(type_name);
  if (info == nullptr) return no_such_type(type_name);
  MappedFile file;
  UZIP_RETURN_IF_ERROR(file.open(path));
  const size_t bytes = file.bytes().size();
  if (bytes % info->size != 0)
    return error(UZIP_ERR_INVALID, "%s: %zu bytes are not a whole number of %s elements", path,
                 bytes, info->name);
  std::printf("%s: %zu %s, %zu bytes\n", path, bytes / info->size, info->name, bytes);
  std::printf("%-14s %12s %12s %14s %7s\n", "codec", "encode GB/s", "decode GB/s", "bytes",
              "ratio");
  for (const std::string& name : codec_settings()) {
    Trial trial(name, info->type);
    UZIP_RETURN_IF_ERROR(trial.run(file.bytes()).with_context(path));
    trial.print();
  }
  return {};
}

}  // namespace uzip
