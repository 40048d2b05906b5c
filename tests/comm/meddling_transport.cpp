#include "comm/meddling_transport.hpp"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace uzip {
namespace {

class MeddlingTransport final : public Transport, public TransportSink {
 public:
  MeddlingTransport(std::unique_ptr<Transport> inner, const Meddling& meddling)
      : inner_(std::move(inner)), meddling_(meddling) {
    inner_->set_sink(this);
  }

  void set_sink(TransportSink* sink) override { sink_ = sink; }
  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  const TransportInfo& info() const override { return inner_->info(); }
  bool progress() override { return inner_->progress() || meddling_.always_moving; }
  void wait(std::chrono::milliseconds limit) override { inner_->wait(limit); }
  bool flushed() override { return inner_->flushed(); }

  Result<Progress> send(int peer, std::span<const std::byte> head, std::span<const std::byte> body,
                        Completion* completion, const SendHints& hints) override {
    SendHints left = hints;
    if (meddling_.second && hints.second) meddling_.second(body, *std::exchange(left.second, nullptr));
    return inner_->send(peer, head, body, completion, left);
  }

  Result<Progress> receive(Incoming& message, std::span<std::byte> dst,
                           Completion* completion) override {
    if (meddling_.taken) meddling_.taken(dst);
    if (message.handle != nullptr) return inner_->receive(message, dst, completion);
    if (dst.size() < message.body_bytes) return error(UZIP_ERR_INTERNAL, "no room");
    if (message.body_bytes > 0) std::memcpy(dst.data(), message.body, message.body_bytes);
    return Progress::kDone;
  }

  void discard(Incoming& message) override {
    if (message.handle != nullptr) inner_->discard(message);
  }

  bool on_message(Incoming& incoming) override {
    if (meddling_.alter) meddling_.alter(incoming);
    const bool has_body = incoming.body != nullptr || incoming.body_bytes == 0;
    const bool again = has_body && meddling_.repeat && meddling_.repeat(incoming);
    bool kept = false;
    if (has_body && (again || meddling_.fleeting)) {
      deliver_fleeting(incoming);
      if (again) deliver_fleeting(incoming);
    } else {
      kept = sink_->on_message(incoming);
    }
    return kept;
  }

  void on_peer_failed(int peer, const Status& why) override { sink_->on_peer_failed(peer, why); }

 private:
  void deliver_fleeting(const Incoming& incoming) {
    std::vector<std::byte> body(incoming.body, incoming.body + incoming.body_bytes);
    Incoming copy = incoming;
    copy.handle = nullptr;
    copy.body = body.data();
    sink_->on_message(copy);
    std::fill(body.begin(), body.end(), std::byte{0xdb});
  }

  std::unique_ptr<Transport> inner_;
  const Meddling meddling_;
  TransportSink* sink_ = nullptr;
};

}  // namespace

std::unique_ptr<Transport> Meddling::operator()(std::unique_ptr<Transport> transport) const {
  return std::make_unique<MeddlingTransport>(std::move(transport), *this);
}

}  // namespace uzip
