#include "comm/gpu_vote.hpp"

#include "comm/communicator.hpp"
#include "comm/engine.hpp"
#include "comm/request.hpp"

#include <algorithm>
#include <string_view>

namespace uzip {

void GpuVote::prepare(Ballot mine, int size) {
  mine_ = mine;
  decided_ = !votes();
  wants_plain_ = false;
  if (!votes()) return;
  voters_.resize(static_cast<size_t>(size));
  for (Voter& voter : voters_) {
    voter.handle_here.done = &GpuVote::on_handle;
    voter.vote = this;
    voter.first = voter.second = Ballot::kNone;
    voter.arriving = false;
  }
  if (mine == Ballot::kOffer) handles_.resize(voters_.size());
}

void GpuVote::start() {
  Voter& own = voters_[static_cast<size_t>(request_.rank())];
  own.first = mine_;
  if (mine_ == Ballot::kOffer) handles_[static_cast<size_t>(request_.rank())] = request_.comm()->peers()->handle();
  tell_all(mine_);
  decide();  // the others may have voted before
}

void GpuVote::tell_all(Ballot ballot) {
  for (int peer = 0; peer < request_.size(); ++peer)
    if (peer != request_.rank()) request_.comm()->send_ballot(peer, request_.stamp(), ballot);
}

bool GpuVote::on_message(Incoming& incoming, int source, uint32_t number) {
  const auto ballot = static_cast<Ballot>(number);
  if (ballot == Ballot::kNone || ballot > Ballot::kPlain) return false;  // an inquiry: we agree
  if (!votes()) {
    if (ballot == Ballot::kReady || ballot == Ballot::kPlain || ballot == Ballot::kOffer)
      request_.comm()->send_ballot(source, request_.stamp(), Ballot::kNo);
    return false;
  }
  if (decided_) return false;
  Voter& voter = voters_[static_cast<size_t>(source)];
  const bool is_second = ballot == Ballot::kOpened || ballot == Ballot::kFailed;
  Ballot& place = is_second ? voter.second : voter.first;
  if (place != Ballot::kNone || (!is_second && voter.arriving)) return false;  // nobody says it twice
  if (ballot == Ballot::kOffer) return take_handle(incoming, source);
  place = ballot;
  decide();
  return false;
}

bool GpuVote::take_handle(Incoming& incoming, int source) {
  Voter& voter = voters_[static_cast<size_t>(source)];
  if (incoming.body_bytes != sizeof(gpu::PeerHandle)) {
    request_.fail(error(UZIP_ERR_CORRUPT, "rank %d opened memory of its GPU with a handle of %zu bytes instead of %zu", source,
                        incoming.body_bytes, sizeof(gpu::PeerHandle)));
    return false;
  }
  if (mine_ != Ballot::kOffer) {  // nobody needs it
    voter.first = Ballot::kOffer;
    decide();
    return false;
  }
  voter.arriving = true;
  const std::span<gpu::PeerHandle> place(&handles_[static_cast<size_t>(source)], 1);
  const Result<Progress> taken = request_.engine().take(incoming, std::as_writable_bytes(place), &voter.handle_here);
  if (!taken.ok()) request_.fail(taken.status());
  else if (*taken == Progress::kPending) ++pending_;
  else {
    voter.first = Ballot::kOffer;
    decide();
  }
  return true;
}

void GpuVote::on_handle(Completion* self, const Status& status) {
  Voter& voter = *reinterpret_cast<Voter*>(self);  // its first member
  GpuVote& vote = *voter.vote;
  --vote.pending_;
  if (!status.ok()) vote.request_.fail(status);
  else if (!vote.decided_) {
    voter.first = Ballot::kOffer;
    vote.decide();
  }
}

/// A function of what all have said, so all that vote come to the same.
void GpuVote::decide() {
  const auto some = [&](Ballot Voter::* which, Ballot ballot) {
    return std::ranges::any_of(voters_, [&](const Voter& voter) { return voter.*which == ballot; });
  };
  if (some(&Voter::first, Ballot::kNo)) return end(false);
  if (some(&Voter::first, Ballot::kNone)) return;
  GpuPeers& peers = *request_.comm()->peers();
  // Who is ready knows that all have opened the others' memory, also those that have not heard so yet of each other.
  wants_plain_ = some(&Voter::first, Ballot::kPlain);
  if (wants_plain_ || some(&Voter::first, Ballot::kReady)) return end(true);
  Voter& own = voters_[static_cast<size_t>(request_.rank())];
  if (own.second == Ballot::kNone) {
    own.second = peers.open(handles_) ? Ballot::kOpened : Ballot::kFailed;
    tell_all(own.second);
  }
  if (some(&Voter::second, Ballot::kFailed)) {
    peers.refuse("not all ranks can open the others' memory");
    return end(false);
  }
  if (some(&Voter::second, Ballot::kNone)) return;
  peers.all_have_opened();
  end(true);
}

void GpuVote::end(bool yes) {
  decided_ = true;
  request_.on_voted(yes);
}

void GpuVote::waits_for(std::vector<bool>& ranks) const {
  if (!active()) return;
  const bool opened = voters_[static_cast<size_t>(request_.rank())].second != Ballot::kNone;
  for (size_t r = 0; r < voters_.size(); ++r)
    if ((opened ? voters_[r].second : voters_[r].first) == Ballot::kNone) ranks[r] = true;
}

}  // namespace uzip
