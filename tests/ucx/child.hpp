// What every child process of the transport's tests has: a transport, an inbox, and waiting as the
// engine does it.
#pragma once

#include "ucx/inbox.hpp"
#include "ucx/process_group.hpp"
#include "ucx/ucx_transport.hpp"

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>

#include <sched.h>

namespace uzip {

/// How messages travel.
struct Way {
  const char* name;
  const char* tls;
  bool peer_read;
  bool local_queues = false;
};

inline constexpr Way kWays[] = {{"shm", "shm", false},
                                {"peer_read", "shm", true},
                                {"queues", "shm", true, true},
                                {"posix", "posix", false},
                                {"tcp", "tcp", false}};

class Child {
 public:
  Child(const Way& way, int rank, int size, const OutOfBandAllgather& allgather) {
    Config config;
    config.ucx_tls = way.tls;
    config.peer_read = way.peer_read;
    config.local_queues = way.local_queues;
    auto made = UcxTransport::create(config, rank, size, allgather);
    if (!made.ok()) {
      std::fprintf(stderr, "%s\n", made.status().message().c_str());
      return;
    }
    transport = std::move(*made);
    inbox = std::make_unique<Inbox>(*transport);
  }

  bool ok() const { return transport != nullptr; }

  /// Progresses, yields, then sleeps, until `condition` holds; false after `limit`.
  template <class Condition>
  bool until(Condition condition, std::chrono::milliseconds limit = std::chrono::seconds(20)) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    int idle = 0;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      if (transport->progress()) {
        idle = 0;
      } else if (++idle < 1000) {
        sched_yield();
      } else {
        transport->wait(std::chrono::milliseconds(10));
      }
    }
    return true;
  }

  /// Leaves as the engine does: when everybody has said that it has all it wants.
  bool leave(int size) {
    byes_ += static_cast<size_t>(size) - 1;  // some may have come already
    std::vector<Pending> sends;
    for (int peer = 0; peer < size; ++peer) {
      if (peer != transport->rank())
        sends.push_back(start_send(*transport, peer, as_head("bye"), {}));
    }
    return until([&] { return count("bye") >= byes_; }) &&
           until([&] { return transport->flushed(); });
  }

  size_t count(const std::string& head) const {
    size_t found = 0;
    for (const Inbox::Message& message : inbox->messages) found += message.head == head;
    return found;
  }

  std::unique_ptr<UcxTransport> transport;
  std::unique_ptr<Inbox> inbox;

 private:
  size_t byes_ = 0;
};

/// In a child process: reports where it went wrong and returns from the body.
#define CHILD_CHECK(condition)                                                            \
  do {                                                                                    \
    if (!(condition)) {                                                                   \
      std::fprintf(stderr, "%s:%d: rank %d: %s\n", __FILE__, __LINE__, rank, #condition); \
      return 1;                                                                           \
    }                                                                                     \
  } while (false)

}  // namespace uzip
