// A sink that writes down what it is told, for tests of transports.
#pragma once

#include "base/transport.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace uzip {

/// A completion that remembers whether and how it was called.
struct Ticket : Completion {
  Ticket() {
    done = [](Completion* self, const Status& status) {
      auto* ticket = static_cast<Ticket*>(self);
      ++ticket->calls;
      ticket->status = status;
    };
  }
  int calls = 0;
  Status status;
};

/// One operation and its answer, at once or later.
struct Pending {
  std::unique_ptr<Ticket> ticket = std::make_unique<Ticket>();
  Result<Progress> answer = Progress::kPending;

  bool finished() const { return !answer.ok() || *answer == Progress::kDone || ticket->calls > 0; }
  Status status() const {
    if (!answer.ok()) return answer.status();
    return *answer == Progress::kDone ? Status() : ticket->status;
  }
};

inline Pending start_send(Transport& transport, int peer, std::span<const std::byte> head,
                          std::span<const std::byte> body, const SendHints& hints = {}) {
  Pending pending;
  pending.answer = transport.send(peer, head, body, pending.ticket.get(), hints);
  return pending;
}

/// Sends must be over before their bodies and tickets go away.
bool all_finished(const auto& sends) {
  return std::all_of(sends.begin(), sends.end(), [](const auto& send) { return send.finished(); });
}

class Inbox : public TransportSink {
 public:
  enum class Policy { kTake, kKeep, kDiscard, kDrop };

  struct Message {
    int peer = -1;
    std::string head;
    std::vector<std::byte> body;
    bool exposed = false;  ///< the body was there when the message was announced, and right
    Incoming incoming;     ///< kKeep: to be received later
    Pending receive;
  };

  explicit Inbox(Transport& transport) : transport_(&transport) { transport.set_sink(this); }

  bool on_message(Incoming& incoming) override {
    Message& message = messages.emplace_back();
    message.peer = incoming.peer;
    message.head.assign(reinterpret_cast<const char*>(incoming.head), incoming.head_bytes);
    message.incoming = incoming;
    if (incoming.body != nullptr) {
      message.exposed = true;
      exposed_copy_.assign(incoming.body, incoming.body + incoming.body_bytes);
    }
    switch (policy) {
      case Policy::kTake:
        take(message);
        if (message.exposed && message.receive.finished() && message.body != exposed_copy_) {
          message.exposed = false;
        }
        break;
      case Policy::kDiscard:
        transport_->discard(message.incoming);
        break;
      case Policy::kDrop:
        return false;
      case Policy::kKeep:
        break;
    }
    if (on_each) on_each(message);
    return true;
  }

  void on_peer_failed(int peer, const Status& why) override {
    ++failures[peer];
    reasons[peer] = why;
  }

  void take(Message& message) {
    message.body.assign(message.incoming.body_bytes, std::byte{0xee});
    message.receive.answer =
        transport_->receive(message.incoming, message.body, message.receive.ticket.get());
  }

  bool all_received() const {
    for (const Message& message : messages) {
      if (!message.receive.finished()) return false;
    }
    return true;
  }

  Policy policy = Policy::kTake;
  std::function<void(Message&)> on_each;
  std::deque<Message> messages;
  std::map<int, int> failures;
  std::map<int, Status> reasons;

 private:
  Transport* transport_;
  std::vector<std::byte> exposed_copy_;
};

/// Bytes that depend on place and number, so that a lost, doubled or shifted part shows.
inline std::vector<std::byte> pattern(size_t bytes, uint64_t number) {
  std::vector<std::byte> data(bytes);
  uint64_t state = number * 0x9e3779b97f4a7c15u + 1;
  for (size_t i = 0; i + 8 <= bytes; i += 8) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    std::memcpy(data.data() + i, &state, 8);
  }
  for (size_t i = bytes & ~size_t{7}; i < bytes; ++i) {
    data[i] = static_cast<std::byte>(number + i);
  }
  return data;
}

inline std::span<const std::byte> as_head(const std::string& text) {
  return std::as_bytes(std::span(text));
}

}  // namespace uzip
