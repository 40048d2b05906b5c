#include "comm/tuning_file.hpp"

#include "base/fnv1a.hpp"
#include "base/log.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace uzip {
namespace {

constexpr size_t kMostFileBytes = size_t{1} << 20;

/// Closes itself.
class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

/// At most `limit` bytes; fewer at the file's end.
bool read_some(int descriptor, size_t limit, std::string* text) {
  text->resize(limit);
  size_t have = 0;
  while (have < limit) {
    const ssize_t got = ::read(descriptor, text->data() + have, limit - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return false;
    if (got == 0) break;
    have += static_cast<size_t>(got);
  }
  text->resize(have);
  return true;
}

/// Its name is among the first lines; the rest grows with the number of cores.
std::string processor_name() {
  const File file(::open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC));
  std::string text;
  if (file.get() < 0 || !read_some(file.get(), 4096, &text)) return "";
  const size_t at = text.find("model name");
  const size_t colon = at == text.npos ? at : text.find(": ", at);
  return colon == text.npos ? "" : text.substr(colon + 2, text.find('\n', colon) - colon - 2);
}

Status failed(const char* what, const std::string& path) {
  return error(UZIP_ERR_CONFIG, "%s: %s: %s", path.c_str(), what, std::strerror(errno));
}

Status make_folders(const std::string& path) {
  for (size_t at = path.find('/', 1); at != path.npos; at = path.find('/', at + 1)) {
    const std::string folder = path.substr(0, at);
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return failed("can't make the folder", folder);
  }
  return Status();
}

}  // namespace

std::string describe_machine() {
  std::string name = processor_name();
  if (name.empty()) name = "unknown processor";
  return name + ", " + std::to_string(sysconf(_SC_NPROCESSORS_CONF)) + " cores";
}

std::string tuning_path(const Config& config) {
  if (config.tuning_file == "none") return "";
  if (config.tuning_file != "auto") return config.tuning_file;
  const std::string folder = cache_folder();
  if (folder.empty()) return "";
  Fnv1a hash;
  hash.add(describe_machine());
  char name[96];
  std::snprintf(name, sizeof name, "/uzipcoll/tuning-%s-%016llx", uzip_version_string(),
                static_cast<unsigned long long>(hash.value()));
  return folder + name;
}

Result<TuningTable> read_tuning_file(const std::string& path) {
  // Opening a pipe without O_NONBLOCK would wait for its writer.
  const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return failed("can't open it", path);
  struct stat facts = {};
  if (::fstat(file.get(), &facts) != 0) return failed("can't look at it", path);
  if (!S_ISREG(facts.st_mode)) return error(UZIP_ERR_CONFIG, "%s: not a file", path.c_str());
  std::string text;
  if (!read_some(file.get(), kMostFileBytes + 1, &text)) return failed("can't read it", path);
  if (text.size() > kMostFileBytes)
    return error(UZIP_ERR_CONFIG, "%s: larger than %zu bytes", path.c_str(), kMostFileBytes);
  Result<TuningTable> table = TuningTable::parse(text);
  if (!table.ok()) return table.status().with_context(path);
  return table;
}

Status write_tuning_file(const std::string& path, const TuningTable& table) {
  return write_text_file(path, table.print());
}

Status write_text_file(const std::string& path, const std::string& text) {
  UZIP_RETURN_IF_ERROR(make_folders(path));
  const std::string fresh = path + "." + std::to_string(getpid());
  {
    const File file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (file.get() < 0) return failed("can't write it", fresh);
    for (size_t done = 0; done < text.size();) {
      const ssize_t put = ::write(file.get(), text.data() + done, text.size() - done);
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) {
        const Status status = failed("can't write it", fresh);
        ::unlink(fresh.c_str());
        return status;
      }
      done += static_cast<size_t>(put);
    }
  }
  if (::rename(fresh.c_str(), path.c_str()) == 0) return Status();
  const Status status = failed("can't replace it", path);
  ::unlink(fresh.c_str());
  return status;
}

std::shared_ptr<const TuningTable> load_tuning(const Config& config) {
  const std::string path = tuning_path(config);
  if (path.empty()) return nullptr;
  // Most machines have none in the cache, which is no reason for a word.
  if (config.tuning_file == "auto" && ::access(path.c_str(), F_OK) != 0) return nullptr;
  Result<TuningTable> table = read_tuning_file(path);
  if (table.ok()) return std::make_shared<const TuningTable>(std::move(*table));
  log(LogLevel::kWarn, "the tuning table is ignored: %s; uzip_tune makes a new one", table.status().message().c_str());
  return nullptr;
}

Result<std::shared_ptr<const TuningTable>> agree_on_tuning(Bootstrap& bootstrap,
                                                           std::shared_ptr<const TuningTable> mine) {
  const uint64_t digest = mine ? mine->digest() : 0;
  std::vector<std::vector<std::byte>> all;
  UZIP_RETURN_IF_ERROR(bootstrap.all_gather(std::as_bytes(std::span(&digest, 1)), &all));
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].size() != sizeof digest)
      return error(UZIP_ERR_MISMATCH, "rank %zu sent %zu bytes where all ranks send the digest of their tuning table",
                   rank, all[rank].size());
  }
  const auto other = std::ranges::find_if(all, [&](const auto& bytes) { return bytes != all[0]; });
  if (other == all.end()) return mine;
  if (bootstrap.rank() == 0) {
    log(LogLevel::kWarn,
        "rank %td has another tuning table than rank 0, or only one of them has any: none is used; let UZIP_TUNING_FILE "
        "name one that all ranks can read, or be none",
        other - all.begin());
  }
  return std::shared_ptr<const TuningTable>();
}

}  // namespace uzip
