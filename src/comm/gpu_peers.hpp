// The GPUs of a communicator whose ranks share a host and open memory to one another: a collective on their memory is
// put on the GPUs' streams as a whole, instead of in rounds that the host drives. Used by Communicator and Request.
#pragma once

#include "base/completion.hpp"
#include "base/status.hpp"
#include "comm/gpu_vote.hpp"
#include "comm/plan.hpp"
#include "gpu/plugin.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

namespace uzip {

class GpuDevices;
class GpuOffer;
class Request;
struct Config;

class GpuPeers {
 public:
  /// Costs nothing yet: memory is taken by the first call that suits.
  GpuPeers(GpuDevices& gpus, const Config& config, int rank, int size);
  /// Gives up what is still at work.
  ~GpuPeers();
  GpuPeers(const GpuPeers&) = delete;
  GpuPeers& operator=(const GpuPeers&) = delete;

  // Agreement. Which calls the ranks vote on, and how, is the same from run to run: nothing depends on time.
  /// What this rank says of a call. Counts calls that it wants not to be coded.
  Ballot vote(const CollArgs& args, const Plan& plan);
  /// Of the memory that this rank opens to the others, once it has offered it.
  const gpu::PeerHandle& handle() const { return handle_; }
  /// Opens the memory of all, by rank; whether that could be done.
  bool open(std::span<const gpu::PeerHandle> handles);
  void all_have_opened();
  /// From now on this rank says no.
  void refuse(const char* why);

  // Messages (GpuOffer). Kernels that wait for other ranks must have what they wait for at work, so what a rank receives
  // never waits beside a collective: it is accepted only while there is none here, and this rank votes only while it receives
  // nothing. What it receives at a time is from one rank, which sends in the order in which it was accepted.
  /// Whether the GPUs may carry a message of this rank's.
  bool offers(const CollArgs& args);
  /// Whether its buffer is on this rank's GPU.
  bool takes(const CollArgs& args) { return !is_refused() && has_memory_for(args); }
  void offer_begun() { ++offered_; }
  void offer_ended() { --offered_; }
  /// Whether this rank and another one have opened their memory to one another.
  bool paired(int rank) const { return state_ == State::kReady || (!paired_.empty() && paired_[static_cast<size_t>(rank)]); }
  bool open_pair(int rank, const gpu::PeerHandle& handle);
  void set_paired(int rank) { paired_[static_cast<size_t>(rank)] = true; }
  /// GpuOffer::accept() or decline() is called, from progress().
  void wait_to_receive(GpuOffer& offer) { offers_.push_back(&offer); }
  /// It has been accepted: GpuOffer::start_to_receive() is called, from progress().
  void wait_to_start(GpuOffer& offer) { accepted_.push_back(&offer); }
  void leave(GpuOffer& offer);

  // Order. All ranks must start the calls that they agree on in the same order, which is that in which they were made.
  /// `request` waits for what the ranks agree on. False: it must not vote yet; Request::start_vote() is called, from
  /// progress(), when it may.
  bool wait_for_turn(Request& request);
  /// They have agreed; Request::start_at_peers() is called when all before it is decided, perhaps at once.
  void take_turn(Request& request);
  /// It is carried out otherwise, or has failed.
  void leave_turn(Request& request);

  /// How a call is carried out here: coded as asked for, or else when that is faster.
  struct Way {
    const Codec* codec = nullptr;
    CodecLevel level = CodecLevel::kBalanced;
  };
  Way way_of(const Plan& plan) const;
  /// Bytes that leave this rank.
  struct Sent {
    uint64_t payload, wire;
  };
  /// Puts a call on `stream`, or without one on a stream of its own, behind `after` if that is not null; `completion`
  /// is called, from progress(), when it has ended. After an error no other call can be started.
  Result<Sent> start(const CollArgs& args, const Way& way, const CallStamp& stamp, void* stream, void* after,
                     Completion* completion);
  /// For other calls than those that may be on the caller's stream itself: nobody else puts anything there meanwhile.
  void* own_stream(CallKind kind) const;
  static bool may_be_on_callers_stream(const CollArgs& args);
  /// A call failed that others may have begun: lets nothing wait for other ranks any more. The calls at work fail soon.
  void give_up();
  bool progress();
  bool busy() const { return !calls_.empty(); }

 private:
  enum class State : uint8_t {
    kUnused,
    kOffered,  ///< this rank's memory is there
    kOpened,   ///< the others' memory is open to this rank
    kReady,    ///< and this rank's to the others
    kRefused,
  };
  struct Turn {
    Request* request;
    bool voted;
    bool agreed;
  };
  struct Call {
    uint64_t ticket;
    gpu::PeerColl coll;
    int peer;         ///< of a message
    bool is_part;     ///< of a collective, though it is a message
    Completion* completion;  ///< of the last part to end; null: nobody waits any more
    uint16_t habit;  ///< of what is coded; kNoHabit: it is not, or nothing is learnt from it
  };
  bool is_refused() const { return state_ == State::kRefused; }
  bool has_memory_for(const CollArgs& args);
  bool has_room() const;
  bool has_collectives() const;
  bool receives() const;
  bool receives_from_others_than(int rank) const;
  template <class Question>
  bool any_group(Question question) const;
  Status put(const gpu::PeerCall& call, void* stream, bool is_part, Completion* completion, Sent* sent);
  Status put_moves(const CollArgs& args, gpu::PeerCall call, void* after, Completion* completion, Sent* sent);
  bool end_calls();
  bool answer_offers();
  bool start_to_receive();
  bool start_votes();
  /// What this rank knows of calls like one.
  struct Habit {
    uint8_t plain = 0;  ///< so many are not to be coded
    uint8_t pause = 0;  ///< after the last that did not shrink there were so many
  };
  static constexpr uint16_t kNoHabit = 0xffff;
  static uint16_t habit_of(gpu::PeerColl coll, DataType type, size_t count);
  void learn(const Call& call);
  Status create(int device);
  Status create_here();
  void advance();
  Status check(int failed) const;

  GpuDevices& gpus_;
  const Config& config_;
  const int rank_, size_;
  State state_ = State::kUnused;
  const gpu::PluginApi* api_ = nullptr;
  int device_ = -1;
  gpu::PeerGroup* group_ = nullptr;
  gpu::PeerHandle handle_{};
  void* stream_ = nullptr;
  std::deque<Turn> turns_;
  std::vector<Call> calls_;  ///< at work
  uint64_t last_ticket_ = 0;
  std::vector<bool> paired_;    ///< by rank
  std::deque<GpuOffer*> offers_;  ///< to this rank, that wait
  std::deque<GpuOffer*> accepted_;  ///< and will be started
  int turns_of_accepted_ = 0;       ///< that they have waited
  GpuOffer* opening_ = nullptr;   ///< accepted, but its sender opens this rank's memory first
  size_t offered_ = 0;            ///< by this rank, and not answered yet
  std::vector<Habit> habits_;  ///< once the memory of all is open
  bool given_up_ = false;
};

}  // namespace uzip
