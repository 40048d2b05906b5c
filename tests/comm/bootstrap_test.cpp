// How processes find each other through the caller's all-gather: callbacks that fail or lie, and
// settings that differ.
#include "comm/bootstrap.hpp"

#include <gtest/gtest.h>

#include <barrier>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace uzip {
namespace {

using Bytes = std::vector<std::byte>;

Bytes bytes_of_text(const std::string& text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return Bytes(begin, begin + text.size());
}

/// An all-gather among threads, as a caller would provide it among processes.
class Exchange {
 public:
  explicit Exchange(int size) : size_(size), barrier_(size) {}

  uzip_oob_t oob(int rank) {
    contexts_.push_back(std::make_unique<Context>(Context{this, rank}));
    return {sizeof(uzip_oob_t), rank, size_, &Exchange::allgather, contexts_.back().get()};
  }
  /// Changes what a rank receives.
  std::function<void(int rank, std::byte* all, size_t bytes)> lie;
  /// What a rank's callback returns, 0 by default.
  std::function<int(int rank, int call)> answer;

 private:
  struct Context {
    Exchange* exchange;
    int rank;
    int calls = 0;
  };

  static int allgather(const void* src, void* dst, size_t bytes, void* context) {
    auto* self = static_cast<Context*>(context);
    Exchange& exchange = *self->exchange;
    const int call = self->calls++;
    if (self->rank == 0) exchange.all_.assign(bytes * static_cast<size_t>(exchange.size_), {});
    exchange.barrier_.arrive_and_wait();
    std::memcpy(exchange.all_.data() + bytes * static_cast<size_t>(self->rank), src, bytes);
    exchange.barrier_.arrive_and_wait();
    std::memcpy(dst, exchange.all_.data(), exchange.all_.size());
    exchange.barrier_.arrive_and_wait();
    if (exchange.lie) exchange.lie(self->rank, static_cast<std::byte*>(dst), bytes);
    return exchange.answer ? exchange.answer(self->rank, call) : 0;
  }

  const int size_;
  std::barrier<> barrier_;
  Bytes all_;
  std::vector<std::unique_ptr<Context>> contexts_;
};

/// Runs `body` for each rank in a thread of its own and returns their status.
std::vector<Status> on_all_ranks(Exchange& exchange, int size,
                                 const std::function<Status(Bootstrap&, int)>& body) {
  std::vector<std::unique_ptr<Bootstrap>> bootstraps;
  for (int rank = 0; rank < size; ++rank) {
    bootstraps.push_back(std::move(*make_oob_bootstrap(exchange.oob(rank))));
  }
  std::vector<Status> statuses(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      const auto r = static_cast<size_t>(rank);
      statuses[r] = body(*bootstraps[r], rank);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return statuses;
}

TEST(OobBootstrap, GathersStringsOfAnyLength) {
  constexpr int kRanks = 4;
  Exchange exchange(kRanks);
  const std::vector<std::string> texts = {"", "x", std::string(100000, 'y'), "four"};
  const auto statuses = on_all_ranks(exchange, kRanks, [&](Bootstrap& bootstrap, int rank) {
    EXPECT_EQ(bootstrap.rank(), rank);
    EXPECT_EQ(bootstrap.size(), kRanks);
    for (int turn = 0; turn < 3; ++turn) {
      const Bytes mine = bytes_of_text(texts[static_cast<size_t>((rank + turn) % kRanks)]);
      std::vector<Bytes> all;
      UZIP_RETURN_IF_ERROR(bootstrap.all_gather(mine, &all));
      EXPECT_EQ(all.size(), static_cast<size_t>(kRanks));
      for (int r = 0; r < kRanks; ++r) {
        const std::string& text = texts[static_cast<size_t>((r + turn) % kRanks)];
        EXPECT_EQ(all[static_cast<size_t>(r)], bytes_of_text(text));
      }
    }
    return Status();
  });
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.message();
}

TEST(OobBootstrap, GathersNothing) {
  Exchange exchange(2);
  const auto statuses = on_all_ranks(exchange, 2, [&](Bootstrap& bootstrap, int) {
    std::vector<Bytes> all;
    UZIP_RETURN_IF_ERROR(bootstrap.all_gather({}, &all));
    EXPECT_EQ(all, std::vector<Bytes>(2));
    return Status();
  });
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.message();
}

TEST(OobBootstrap, ReportsTheCallbacksFailure) {
  for (int failing_call : {0, 1}) {
    Exchange exchange(2);
    exchange.answer = [&](int rank, int call) { return call == failing_call ? -5 - rank : 0; };
    const auto statuses = on_all_ranks(exchange, 2, [](Bootstrap& bootstrap, int) {
      std::vector<Bytes> all;
      return bootstrap.all_gather(bytes_of_text("mine"), &all);
    });
    for (int rank = 0; rank < 2; ++rank) {
      const Status& status = statuses[static_cast<size_t>(rank)];
      EXPECT_EQ(status.code(), UZIP_ERR_PEER);
      EXPECT_NE(status.message().find(std::to_string(-5 - rank)), std::string::npos);
    }
  }
}

// Lengths come from the caller's code: nothing is allocated or read because of a wrong one.
TEST(OobBootstrap, RefusesImpossibleLengths) {
  for (uint64_t length : {uint64_t{1} << 21, uint64_t{1} << 32, uint64_t{1} << 63, ~uint64_t{0}}) {
    Exchange exchange(2);
    exchange.lie = [&](int rank, std::byte* all, size_t bytes) {
      if (rank == 0 && bytes == sizeof length) std::memcpy(all + bytes, &length, sizeof length);
    };
    exchange.answer = [](int rank, int call) { return rank == 1 && call == 0 ? 1 : 0; };
    const auto statuses = on_all_ranks(exchange, 2, [](Bootstrap& bootstrap, int) {
      std::vector<Bytes> all;
      return bootstrap.all_gather(bytes_of_text("mine"), &all);
    });
    EXPECT_EQ(statuses[0].code(), UZIP_ERR_INVALID);
    EXPECT_NE(statuses[0].message().find("callback"), std::string::npos);
  }
}

// What comes back for the rank itself must be what it gave: a callback that fills nothing in, or
// shifts the ranks, is found before its lengths are relied upon.
TEST(OobBootstrap, RefusesItsOwnBytesChanged) {
  const auto zero = [](std::byte* all, size_t bytes) { std::memset(all, 0, bytes); };
  const auto flip = [](std::byte* all, size_t) { all[0] ^= std::byte{1}; };
  const std::function<void(std::byte*, size_t)> lies[] = {zero, flip};
  for (const auto& change : lies) {
    for (int lying_call : {0, 1}) {
      Exchange exchange(1);
      int call = 0;
      exchange.lie = [&](int, std::byte* all, size_t bytes) {
        if (call++ == lying_call) change(all, bytes);
      };
      const auto statuses = on_all_ranks(exchange, 1, [](Bootstrap& bootstrap, int) {
        std::vector<Bytes> all;
        return bootstrap.all_gather(bytes_of_text("longer than a length"), &all);
      });
      EXPECT_EQ(statuses[0].code(), UZIP_ERR_INVALID) << statuses[0].message();
      EXPECT_NE(statuses[0].message().find("rank order"), std::string::npos);
    }
  }
}

std::vector<Status> agree(const std::vector<Config>& configs) {
  const auto size = static_cast<int>(configs.size());
  Exchange exchange(size);
  return on_all_ranks(exchange, size, [&](Bootstrap& bootstrap, int rank) {
    return check_agreement(bootstrap, configs[static_cast<size_t>(rank)]);
  });
}

TEST(Agreement, OfEqualSettings) {
  for (const Status& status : agree(std::vector<Config>(3))) {
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

TEST(Agreement, NamesSettingRanksAndValues) {
  std::vector<Config> configs(3);
  configs[2].codec = "lev";
  for (const Status& status : agree(configs)) {
    EXPECT_EQ(status.code(), UZIP_ERR_MISMATCH);
    for (const char* said : {"UZIP_CODEC=auto", "UZIP_CODEC=lev", "rank 0", "rank 2"}) {
      EXPECT_NE(status.message().find(said), std::string::npos) << status.message();
    }
  }
}

// The same answer on all ranks, whichever settings differ.
TEST(Agreement, IsTheSameAnswerEverywhere) {
  std::vector<Config> configs(4);
  configs[1].checksum = true;
  configs[2].chunk_bytes = 4096;
  configs[3].algorithm = "ring";
  const auto statuses = agree(configs);
  for (const Status& status : statuses) {
    EXPECT_EQ(status.code(), UZIP_ERR_MISMATCH);
    EXPECT_EQ(status.message(), statuses[0].message());
  }
}

TEST(Agreement, OfWhetherSomeProcessDoesSomething) {
  for (const int who : {-1, 0, 2}) {
    Exchange exchange(3);
    std::vector<int> answers(3, -1);
    const auto statuses = on_all_ranks(exchange, 3, [&](Bootstrap& bootstrap, int rank) -> Status {
      UZIP_ASSIGN_OR_RETURN(answers[static_cast<size_t>(rank)], is_true_somewhere(bootstrap, rank == who));
      return Status();
    });
    for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(answers, std::vector<int>(3, who >= 0));
  }
}

TEST(Agreement, IsNotNeededForOwnChoices) {
  std::vector<Config> configs(2);
  configs[1].timeout = 5;
  configs[1].timeout_limit = 6;
  configs[1].spin = 0.5;
  configs[1].cpu = "scalar";
  configs[1].log_level = 3;
  configs[1].rank = 1;
  for (const Status& status : agree(configs)) EXPECT_TRUE(status.ok()) << status.message();
}

}  // namespace
}  // namespace uzip
