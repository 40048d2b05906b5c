// Rendezvous of processes through files in a directory that all of them see (NFS is enough: only rename is
// relied upon). Round k of process r is the file "k.r", made under another name and renamed when complete.
#include "comm/bootstrap.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
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
    if (failed_) return;
    std::vector<std::vector<std::byte>> all;
    const int last = round_;
    if (rank_ == 0 ? !all_gather({}, &all).ok() : !write(last, {}).ok()) return;
    std::error_code ignored;
    if (rank_ != 0) return;
    for (int k = 0; k <= last; ++k)
      for (int r = 0; r < size_; ++r) fs::remove(path(k, r), ignored);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  Status all_gather(std::span<const std::byte> mine, std::vector<std::vector<std::byte>>* all) override {
    const int round = round_++;
    Status status = write(round, mine);
    all->assign(static_cast<size_t>(size_), {});
    const Clock::time_point start = Clock::now();
    for (int r = 0; r < size_ && status.ok(); ++r) status = read(round, r, start, &(*all)[static_cast<size_t>(r)]);
    failed_ |= !status.ok();
    return status;
  }

 private:
  fs::path path(int round, int rank) const {
    return fs::path(directory_) / (prefix_ + std::to_string(round) + "." + std::to_string(rank));
  }

  Status write(int round, std::span<const std::byte> bytes) {
    const fs::path name = path(round, rank_);
    if (std::error_code none; fs::exists(name, none))
      return error(UZIP_ERR_CONFIG, "UZIP_RENDEZVOUS: %s exists already, left by an earlier job; use an empty "
                   "directory for each job", name.c_str());
    const fs::path partial = name.string() + ".partial";
    const int file = ::open(partial.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
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
      std::ifstream file(name, std::ios::binary);
      if (file) {
        bytes->resize(kMostBytes);
        file.read(reinterpret_cast<char*>(bytes->data()), static_cast<std::streamsize>(kMostBytes));
        bytes->resize(static_cast<size_t>(file.gcount()));
        return Status();
      }
      if (std::chrono::duration<double>(Clock::now() - start).count() > limit_)
        return error(UZIP_ERR_TIMEOUT, "rank %d did not come to the rendezvous in %s within %g s; are all %d "
                     "ranks (UZIP_SIZE) started with the same UZIP_RENDEZVOUS?", rank, directory_.c_str(), limit_,
                     size_);
      std::this_thread::sleep_for(kPoll);
    }
  }

  static Status io_error(const char* what, const fs::path& name) {
    return error(UZIP_ERR_CONFIG, "UZIP_RENDEZVOUS: can't %s %s: %s", what, name.c_str(), std::strerror(errno));
  }

  const int rank_, size_;
  const std::string directory_, prefix_;
  const double limit_;
  int round_ = 0;
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
