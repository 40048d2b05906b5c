#include "comm/gpu_offer.hpp"

#include "comm/communicator.hpp"
#include "comm/engine.hpp"
#include "comm/request.hpp"

#include <string>
#include <utility>

namespace uzip {

GpuOffer::GpuOffer(Request& request) : request_(request) {
  handle_.done = &GpuOffer::on_handle;
  handle_.offer = this;
}

void GpuOffer::prepare(bool offers) {
  offers_ = offers;
  state_ = State::kIdle;
  has_handle_ = false;
  levels_ = 0;
}

GpuPeers::Way GpuOffer::way() const {
  if (levels_ == 0) return {};
  return {find_codec("lev"), levels_ == 1 ? CodecLevel::kFastest : CodecLevel::kBalanced};
}

int GpuOffer::source() const { return request_.args().peer; }

void GpuOffer::say(OfferWord word) {
  GpuPeers& peers = *request_.comm()->peers();
  std::string body;
  if (word == OfferWord::kOfferHandle || word == OfferWord::kAcceptHandle)
    body.assign(reinterpret_cast<const char*>(peers.handle().bytes), sizeof peers.handle().bytes);
  const OfferNumber number{word, levels_, static_cast<uint8_t>(request_.type())};
  request_.comm()->say_of_message(request_.args().peer, request_.stamp(), request_.args().tag, number, body);
}

// ---- The sender ------------------------------------------------------------------------------------------

void GpuOffer::start() {
  GpuPeers& peers = *request_.comm()->peers();
  const GpuPeers::Way way = peers.way_of(request_.plan());
  levels_ = way.codec ? static_cast<uint8_t>(gpu::levels_on_gpu(way.level)) : 0;
  state_ = State::kOffered;
  counted_ = true;
  peers.offer_begun();
  say(peers.paired(request_.args().peer) ? OfferWord::kOffer : OfferWord::kOfferHandle);
}

void GpuOffer::open_receiver() {
  GpuPeers& peers = *request_.comm()->peers();
  const bool opened = peers.open_pair(request_.args().peer, handle_.value);
  if (opened) peers.set_paired(request_.args().peer);
  say(opened ? OfferWord::kOpened : OfferWord::kFailed);
  decide(opened);
}

// ---- The receiver ----------------------------------------------------------------------------------------

void GpuOffer::expect() { state_ = State::kExpected; }

/// What has been offered is known.
void GpuOffer::consider() {
  GpuPeers& peers = *request_.comm()->peers();
  state_ = State::kWaiting;
  if (peers.takes(request_.args()) && (has_handle_ || peers.paired(source()))) peers.wait_to_receive(*this);
  else decline();
}

void GpuOffer::accept() {
  GpuPeers& peers = *request_.comm()->peers();
  request_.on_accepted();
  if (!has_handle_) {
    say(OfferWord::kAccept);
    return wait_to_start();
  }
  state_ = State::kOpening;
  if (peers.open_pair(source(), handle_.value)) return say(OfferWord::kAcceptHandle);
  say(OfferWord::kNo);
  decide(false);
}

void GpuOffer::wait_to_start() {
  GpuPeers& peers = *request_.comm()->peers();
  peers.leave(*this);
  state_ = State::kAccepted;
  peers.wait_to_start(*this);
}

void GpuOffer::decline() {
  say(OfferWord::kNo);
  decide(false);
}

// ---- Both ------------------------------------------------------------------------------------------------

bool GpuOffer::on_message(Incoming& incoming, uint32_t packed) {
  const OfferNumber number = OfferNumber::unpack(packed);
  GpuPeers& peers = *request_.comm()->peers();
  if (state_ == State::kExpected && pending_ == 0 && number.offers()) {
    if (number.type != static_cast<uint8_t>(request_.type())) {
      say(OfferWord::kNo);
      const char* const theirs = number.type <= UZIP_FP8_E5M2 ? datatype_info(static_cast<DataType>(number.type)).name : "?";
      request_.fail(error(UZIP_ERR_MISMATCH, "rank %d sends elements of type %s", source(), theirs));
      return false;
    }
    levels_ = number.levels;
    if (number.word == OfferWord::kOfferHandle) return take_handle(incoming);
    consider();
  } else if (state_ == State::kOpening && number.word == OfferWord::kOpened) {
    peers.set_paired(source());
    wait_to_start();
  } else if (state_ == State::kOpening && number.word == OfferWord::kFailed) {
    decide(false);
  } else if (state_ == State::kOffered && number.word == OfferWord::kAcceptHandle) {
    return take_handle(incoming);
  } else if (state_ == State::kOffered && number.word == OfferWord::kAccept && peers.paired(request_.args().peer)) {
    decide(true);
  } else if (state_ == State::kOffered && number.word == OfferWord::kNo) {
    decide(false);
  }
  return false;
}

bool GpuOffer::take_handle(Incoming& incoming) {
  if (incoming.body_bytes != sizeof(gpu::PeerHandle)) {
    request_.fail(error(UZIP_ERR_CORRUPT, "rank %d opened memory of its GPU with a handle of %zu bytes instead of %zu",
                        request_.args().peer, incoming.body_bytes, sizeof(gpu::PeerHandle)));
    return false;
  }
  const std::span<gpu::PeerHandle> place(&handle_.value, 1);
  const Result<Progress> taken = request_.engine().take(incoming, std::as_writable_bytes(place), &handle_);
  if (!taken.ok()) request_.fail(taken.status());
  else if (*taken == Progress::kPending) ++pending_;
  else on_handle(&handle_, Status());
  return true;
}

void GpuOffer::on_handle(Completion* self, const Status& status) {
  GpuOffer& offer = *static_cast<Handle*>(self)->offer;
  if (offer.pending_ > 0) --offer.pending_;
  if (!status.ok()) return offer.request_.fail(status);
  offer.has_handle_ = true;
  if (offer.state_ == State::kOffered) offer.open_receiver();
  else if (offer.state_ == State::kExpected) offer.consider();
}

void GpuOffer::decide(bool at_peers) {
  abandon();
  request_.on_answered(at_peers);
}

void GpuOffer::abandon() {
  GpuPeers* const peers = request_.comm() ? request_.comm()->peers() : nullptr;
  if (peers && std::exchange(counted_, false)) peers->offer_ended();
  if (peers && (state_ == State::kWaiting || state_ == State::kOpening || state_ == State::kAccepted)) peers->leave(*this);
  state_ = State::kIdle;
}

}  // namespace uzip
