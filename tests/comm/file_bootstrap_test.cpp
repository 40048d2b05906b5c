// Rendezvous through files: each rank is a process of its own, as in real life.
#include "comm/bootstrap.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace uzip {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::byte>;

Bytes bytes_of_text(const std::string& text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return Bytes(begin, begin + text.size());
}

class FileBootstrapTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/uzip_rendezvous.XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { fs::remove_all(directory_); }

  Config config_of(int rank, int size, double limit = 5) const {
    Config config;
    config.rank = rank;
    config.size = size;
    config.rendezvous = directory_;
    config.timeout_limit = limit;
    return config;
  }

  /// Gathers a few times; what is wrong with it, if anything.
  static Status exchange(const Config& config, const std::string& word) {
    UZIP_ASSIGN_OR_RETURN(const auto bootstrap, make_file_bootstrap(config));
    for (int turn = 0; turn < 3; ++turn) {
      const std::string mine = word + std::to_string(turn) + "." + std::to_string(config.rank);
      std::vector<Bytes> all;
      UZIP_RETURN_IF_ERROR(bootstrap->all_gather(bytes_of_text(mine), &all));
      for (int r = 0; r < config.size; ++r) {
        const std::string theirs = word + std::to_string(turn) + "." + std::to_string(r);
        if (all[static_cast<size_t>(r)] != bytes_of_text(theirs))
          return error(UZIP_ERR_INTERNAL, "rank %d has the wrong bytes", r);
      }
    }
    return Status();
  }

  struct Ended {
    StatusCode code;
    std::string message;
  };

  /// Runs `body` as so many processes, and says how each ended.
  static std::vector<Ended> as_processes(int count, const std::function<Status(int)>& body) {
    std::vector<pid_t> children;
    std::vector<int> pipes;
    for (int i = 0; i < count; ++i) {
      int ends[2];
      EXPECT_EQ(pipe(ends), 0);
      const pid_t child = fork();
      if (child == 0) {
        const Status status = body(i);
        const std::string& text = status.message();
        if (write(ends[1], text.data(), text.size()) < 0) _exit(99);
        _exit(static_cast<int>(status.code()));
      }
      close(ends[1]);
      pipes.push_back(ends[0]);
      children.push_back(child);
    }
    std::vector<Ended> ended;
    for (size_t i = 0; i < children.size(); ++i) {
      std::string message(2000, '\0');
      const ssize_t length = read(pipes[i], message.data(), message.size());
      message.resize(static_cast<size_t>(std::max<ssize_t>(length, 0)));
      close(pipes[i]);
      int state = 0;
      waitpid(children[i], &state, 0);
      EXPECT_TRUE(WIFEXITED(state));
      ended.push_back({static_cast<StatusCode>(WEXITSTATUS(state)), message});
    }
    return ended;
  }

  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory_)) {
      names.push_back(entry.path().filename());
    }
    return names;
  }

  std::string directory_;
};

TEST_F(FileBootstrapTest, GathersAndLeavesNothing) {
  for (int size : {1, 2, 5}) {
    const auto ended =
        as_processes(size, [&](int rank) { return exchange(config_of(rank, size), "word"); });
    for (const Ended& rank : ended) EXPECT_EQ(rank.code, UZIP_OK) << rank.message;
    EXPECT_EQ(files(), std::vector<std::string>());
  }
}

TEST_F(FileBootstrapTest, MakesTheDirectory) {
  directory_ += "/a/b";
  const auto ended =
      as_processes(2, [&](int rank) { return exchange(config_of(rank, 2), "word"); });
  for (const Ended& rank : ended) EXPECT_EQ(rank.code, UZIP_OK) << rank.message;
  directory_ = fs::path(directory_).parent_path().parent_path();
}

TEST_F(FileBootstrapTest, ServesOneCommunicatorAfterAnother) {
  const auto ended = as_processes(3, [&](int rank) {
    for (int k = 0; k < 4; ++k) {
      UZIP_RETURN_IF_ERROR(exchange(config_of(rank, 3), "comm" + std::to_string(k) + "."));
    }
    return Status();
  });
  for (const Ended& rank : ended) EXPECT_EQ(rank.code, UZIP_OK) << rank.message;
  EXPECT_EQ(files(), std::vector<std::string>());
}

TEST_F(FileBootstrapTest, NamesWhoDoesNotCome) {
  const auto ended =
      as_processes(2, [&](int rank) { return exchange(config_of(rank, 3, 0.2), "word"); });
  for (const Ended& rank : ended) {
    EXPECT_EQ(rank.code, UZIP_ERR_TIMEOUT);
    EXPECT_NE(rank.message.find("rank 2 did not come"), std::string::npos) << rank.message;
  }
}

TEST_F(FileBootstrapTest, NeedsItsSettings) {
  const auto refused = [](const Config& config, const char* said) {
    const auto bootstrap = make_file_bootstrap(config);
    ASSERT_FALSE(bootstrap.ok());
    EXPECT_EQ(bootstrap.status().code(), UZIP_ERR_CONFIG);
    EXPECT_NE(bootstrap.status().message().find(said), std::string::npos)
        << bootstrap.status().message();
  };
  refused(Config(), "UZIP_RANK");
  Config config = config_of(2, 2);
  refused(config, "UZIP_RANK is 2");
  config = config_of(0, 2);
  config.rendezvous = "";
  refused(config, "UZIP_RENDEZVOUS");
  std::ofstream(directory_ + "/file") << "not a directory";
  config.rendezvous = directory_ + "/file";
  refused(config, "/file");
  config.rendezvous = directory_ + "/file/below";
  refused(config, "/file/below");
}

// What a killed job has left: files of some or all of its ranks, from any of its rounds.
TEST_F(FileBootstrapTest, LeftoversAreFound) {
  constexpr int kRanks = 3;
  const auto old = as_processes(kRanks, [&](int rank) {
    const auto bootstrap = make_file_bootstrap(config_of(rank, kRanks));
    std::vector<Bytes> all;
    for (int turn = 0; turn < 3; ++turn) {
      UZIP_RETURN_IF_ERROR((*bootstrap)->all_gather(bytes_of_text("old"), &all));
    }
    _exit(UZIP_OK);  // killed before it could tidy up
  });
  for (const Ended& rank : old) ASSERT_EQ(rank.code, UZIP_OK);
  const std::vector<std::string> left = files();
  ASSERT_EQ(left.size(), size_t{kRanks} * 4);  // the tokens' round, and three
  fs::copy(directory_, directory_ + ".copy");
  for (int kept = 1; kept < 1 << kRanks; ++kept) {  // whose files are still there
    fs::remove_all(directory_);
    fs::copy(directory_ + ".copy", directory_);
    for (const std::string& name : left) {
      const int owner = name.back() - '0';
      if ((kept & 1 << owner) == 0) fs::remove(directory_ + "/" + name);
    }
    const auto ended = as_processes(
        kRanks, [&](int rank) { return exchange(config_of(rank, kRanks, 0.3), "new"); });
    for (int rank = 0; rank < kRanks; ++rank) {
      const Ended& end = ended[static_cast<size_t>(rank)];
      EXPECT_TRUE(end.code == UZIP_ERR_CONFIG || end.code == UZIP_ERR_TIMEOUT)
          << kept << ", rank " << rank << ": " << end.code << end.message;
      if ((kept & 1 << rank) != 0) {
        EXPECT_NE(end.message.find("earlier job"), std::string::npos) << end.message;
      }
    }
  }
  fs::remove_all(directory_ + ".copy");
}

// Things with the names of our files that are none.
TEST_F(FileBootstrapTest, StrangeFilesDoNoHarm) {
  const auto plant = [&](const std::string& name, int kind) {
    const std::string path = directory_ + "/" + name;
    if (kind == 0) std::ofstream(path) << "";
    if (kind == 1) fs::create_directory(path);
    if (kind == 2) fs::create_symlink("/nowhere", path);
    if (kind == 3) fs::create_symlink("/etc/passwd", path);
    if (kind == 4) std::ofstream(path) << std::string(3 << 20, 'x');
    if (kind == 5) {
      ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    }
  };
  const auto names = [&] {  // as a job uses them
    const auto ended = as_processes(1, [&](int) {
      const auto bootstrap = make_file_bootstrap(config_of(0, 1));
      std::vector<Bytes> all;
      UZIP_RETURN_IF_ERROR((*bootstrap)->all_gather({}, &all));
      _exit(UZIP_OK);
    });
    EXPECT_EQ(ended[0].code, UZIP_OK);
    return files();
  }();
  ASSERT_EQ(names.size(), 2u);
  for (const std::string& name : names) fs::remove(directory_ + "/" + name);
  std::string base = std::min(names[0], names[1]);
  base.pop_back();
  for (int kind = 0; kind < 6; ++kind) {
    for (const std::string& name : {base + "1", base + "1.partial", base + "0"}) {
      plant(name, kind);
      const auto ended =
          as_processes(2, [&](int rank) { return exchange(config_of(rank, 2, 0.3), "word"); });
      for (const Ended& rank : ended) {
        EXPECT_TRUE(rank.code == UZIP_OK || rank.code == UZIP_ERR_CONFIG ||
                    rank.code == UZIP_ERR_TIMEOUT)
            << name << " " << kind << ": " << rank.code << " " << rank.message;
      }
      fs::remove_all(directory_);
      fs::create_directory(directory_);
    }
  }
}

}  // namespace
}  // namespace uzip
