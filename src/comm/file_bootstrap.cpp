// Rendezvous of processes through files in a directory that all of them see (NFS is enough: only rename is
// relied upon). Round k of process r is the file "k.r", made under another name and renamed when complete.
//
// A killed job leaves its files behind, and a process can't tell those of others from new ones by their names. So
// every process first shows a random token, and all later files begin with a digest of everybody's tokens: who has
// read an old one somewhere expects another digest than the old files have.
#include "comm/bootstrap.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <random>
#include <thread>

namespace uzip {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr size_t kMostBytes = 1 << 20;
constexpr std::chrono::milliseconds kPoll{2};
constexpr double kDefaultLimit = 60;

/// Several communicators of one job use the same directory one after another: each its own prefix.
std::atomic<unsigned> next_communicator{0};

class FileBootstrap final : public Bootstrap {
 public:
  FileBootstrap(const Config& config, std::string prefix)
      : rank_(config.rank),
        size_(config.size),
        directory_(config.rendezvous),
        prefix_(std::move(prefix)),
        limit_(config.timeout_limit > 0 ? config.timeout_limit : kDefaultLimit) {}

  /// Everybody has everything when all have come to the last round; then files of earlier rounds may go. Rank 0
  /// waits for the last round and clears it too.
  ~FileBootstrap() override {
    if (failed_ || round_ == 0) return;
    std::vector<std::vector<std::byte>> all;
    const int last = round_;
    if (rank_ == 0 ? !all_gather({}, &all).ok() : !write(last, marked({})).ok()) return;
    std::error_code ignored;
    if (rank_ != 0) return;
    for (int k = 0; k <= last; ++k)
      for (int r = 0; r < size_; ++r) fs::remove(path(k, r), ignored);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  Status all_gather(std::span<const std::byte> mine, std::vector<std::vector<std::byte>>* all) override {
    if (round_ == 0) UZIP_RETURN_IF_ERROR(exchange_tokens());
    UZIP_RETURN_IF_ERROR(exchange(marked(mine), all));
    for (int r = 0; r < size_; ++r) {
      std::vector<std::byte>& bytes = (*all)[static_cast<size_t>(r)];
      if (bytes.size() < sizeof job_ || std::memcmp(bytes.data(), &job_, sizeof job_) != 0) return left_over(r);
      bytes.erase(bytes.begin(), bytes.begin() + sizeof job_);
    }
    return Status();
  }

 private:
  fs::path path(int round, int rank) const {
    return fs::path(directory_) / (prefix_ + std::to_string(round) + "." + std::to_string(rank));
  }

  std::vector<std::byte> marked(std::span<const std::byte> bytes) const {
    const auto mark = std::as_bytes(std::span(&job_, 1));
    std::vector<std::byte> result(mark.begin(), mark.end());
    result.insert(result.end(), bytes.begin(), bytes.end());
    return result;
  }

  Status exchange_tokens() {
    std::random_device random;
    const uint64_t token = uint64_t{random()} << 32 ^ random() ^ static_cast<uint64_t>(::getpid());
    std::vector<std::vector<std::byte>> all;
    UZIP_RETURN_IF_ERROR(exchange(std::as_bytes(std::span(&token, 1)), &all));
    for (int r = 0; r < size_; ++r) {
      const std::vector<std::byte>& bytes = all[static_cast<size_t>(r)];
      uint64_t theirs;
      if (bytes.size() != sizeof theirs) return left_over(r);
      std::memcpy(&theirs, bytes.data(), sizeof theirs);
      job_ = (job_ ^ theirs) * 0x9e3779b97f4a7c15ull + 1;
      job_ ^= job_ >> 32;
    }
    return Status();
  }

  /// One round: everybody's files, whatever is in them.
  Status exchange(std::span<const std::byte> mine, std::vector<std::vector<std::byte>>* all) {
    const int round = round_++;
    Status status = write(round, mine);
    all->assign(static_cast<size_t>(size_), {});
    const Clock::time_point start = Clock::now();
    for (int r = 0; r < size_ && status.ok(); ++r) status = read(round, r, start, &(*all)[static_cast<size_t>(r)]);
    failed_ |= !status.ok();
    return status;
  }

  Status left_over(int rank) {
    failed_ = true;
    return left_over(path(round_ - 1, rank));
  }
  static Status left_over(const fs::path& name) {
    return error(UZIP_ERR_CONFIG, "UZIP_RENDEZVOUS: %s was left by an earlier job; use an empty directory for each "
                 "job", name.c_str());
  }

  Status write(int round, std::span<const std::byte> bytes) {
    const fs::path name = path(round, rank_);
    if (std::error_code none; fs::exists(fs::symlink_status(name, none))) return left_over(name);
    const fs::path partial = name.string() + ".partial";
    ::unlink(partial.c_str());
    const int file = ::open(partial.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) return io_error("create", partial);
    const ssize_t written = bytes.empty() ? 0 : ::write(file, bytes.data(), bytes.size());
    const bool complete = written == static_cast<ssize_t>(bytes.size());
    if (::close(file) != 0 || !complete) return io_error("write", partial);
    if (::rename(partial.c_str(), name.c_str()) != 0) return io_error("rename", partial);
    return Status();
  }

  Status read(int round, int rank, Clock::time_point start, std::vector<std::byte>* bytes) const {
    const fs::path name = path(round, rank);
    for (;;) {
      // Not blocking, and no link: it may be anything that somebody has put there.
      const int file = ::open(name.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
      if (file >= 0) return read_all(file, name, bytes);
      if (errno != ENOENT && errno != ESTALE) return io_error("open", name);
      if (std::chrono::duration<double>(Clock::now() - start).count() > limit_)
        return error(UZIP_ERR_TIMEOUT, "rank %d did not come to the rendezvous in %s within %g s; are all %d "
                     "ranks (UZIP_SIZE) started with the same UZIP_RENDEZVOUS?", rank, directory_.c_str(), limit_,
                     size_);
      std::this_thread::sleep_for(kPoll);
    }
  }

  /// Closes `file`.
  static Status read_all(int file, const fs::path& name, std::vector<std::byte>* bytes) {
    struct stat facts;
    Status status;
    if (::fstat(file, &facts) != 0) {
      status = io_error("read", name);
    } else if (!S_ISREG(facts.st_mode) || static_cast<uint64_t>(facts.st_size) > kMostBytes) {
      status = left_over(name);
    } else {
      bytes->resize(static_cast<size_t>(facts.st_size));
      const ssize_t got = bytes->empty() ? 0 : ::read(file, bytes->data(), bytes->size());
      if (got != static_cast<ssize_t>(bytes->size())) status = io_error("read", name);
    }
    ::close(file);
    return status;
  }

  static Status io_error(const char* what, const fs::path& name) {
    return error(UZIP_ERR_CONFIG, "UZIP_RENDEZVOUS: can't %s %s: %s", what, name.c_str(), std::strerror(errno));
  }

  const int rank_, size_;
  const std::string directory_, prefix_;
  const double limit_;
  uint64_t job_ = 0;  ///< digest of all tokens
  int round_ = 0;     ///< round 0 exchanges the tokens
  bool failed_ = false;
};

}  // namespace

Result<std::unique_ptr<Bootstrap>> make_file_bootstrap(const Config& config) {
  if (config.rank < 0 || config.size < 1 || config.rendezvous.empty())
    return error(UZIP_ERR_CONFIG, "UZIP_RANK, UZIP_SIZE and UZIP_RENDEZVOUS (a directory that all ranks see) must "
                 "be set for a communicator from the environment");
  if (config.rank >= config.size)
    return error(UZIP_ERR_CONFIG, "UZIP_RANK is %d; with UZIP_SIZE=%d ranks are 0 to %d", config.rank, config.size,
                 config.size - 1);
  std::error_code code;
  fs::create_directories(config.rendezvous, code);
  if (code)
    return error(UZIP_ERR_CONFIG, "UZIP_RENDEZVOUS: can't make the directory %s: %s", config.rendezvous.c_str(),
                 code.message().c_str());
  const std::string prefix = "uzip." + std::to_string(next_communicator++) + ".";
  return std::unique_ptr<Bootstrap>(std::make_unique<FileBootstrap>(config, prefix));
}

}  // namespace uzip
