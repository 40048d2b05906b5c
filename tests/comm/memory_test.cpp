// A call that was made before makes no allocation, and memory does not grow: with calls, with
// communicators, with the size of a message.
#include "comm/coll_case.hpp"
#include "comm/loopback_job.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace {

// Allocations of this thread while it counts.
thread_local bool counting = false;
thread_local size_t allocations = 0;

void* allocate(size_t bytes) {
  if (counting) ++allocations;
  void* memory = std::malloc(bytes > 0 ? bytes : 1);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(size_t bytes) { return allocate(bytes); }
void* operator new[](size_t bytes) { return allocate(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }

namespace uzip {
namespace {

/// Counts, or does not count, while it lives.
class Counting {
 public:
  explicit Counting(bool on) : before_(std::exchange(counting, on)) {}
  ~Counting() { counting = before_; }

 private:
  const bool before_;
};

/// The loopback allocates for each message, which is its own business.
class UncountedTransport final : public Transport, public TransportSink {
 public:
  explicit UncountedTransport(std::unique_ptr<Transport> inner) : inner_(std::move(inner)) {
    inner_->set_sink(this);
  }
  void set_sink(TransportSink* sink) override { sink_ = sink; }
  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  const TransportInfo& info() const override { return inner_->info(); }
  Result<Progress> send(int peer, std::span<const std::byte> head, std::span<const std::byte> body,
                        Completion* completion) override {
    const Counting off(false);
    auto counted = std::make_unique<Counted>(completion, this);
    const auto result = inner_->send(peer, head, body, counted.get());
    return kept(result, std::move(counted));
  }
  Result<Progress> receive(Incoming& message, std::span<std::byte> dst,
                           Completion* completion) override {
    const Counting off(false);
    auto counted = std::make_unique<Counted>(completion, this);
    const auto result = inner_->receive(message, dst, counted.get());
    return kept(result, std::move(counted));
  }
  void discard(Incoming& message) override {
    const Counting off(false);
    inner_->discard(message);
  }
  bool progress() override {
    counted_ = counting;
    const Counting off(false);
    return inner_->progress();
  }
  void wait(std::chrono::milliseconds limit) override { inner_->wait(limit); }
  bool flushed() override { return inner_->flushed(); }

  bool on_message(Incoming& incoming) override {
    const Counting again(counted_);
    return sink_->on_message(incoming);
  }
  void on_peer_failed(int peer, const Status& why) override { sink_->on_peer_failed(peer, why); }

 private:
  struct Counted : Completion {
    Counted(Completion* to, UncountedTransport* by) : inner(to), transport(by) {
      done = [](Completion* self, const Status& status) {
        const std::unique_ptr<Counted> ended(static_cast<Counted*>(self));
        const Counting again(ended->transport->counted_);
        ended->inner->done(ended->inner, status);
      };
    }
    Completion* inner;
    UncountedTransport* transport;
  };

  static Result<Progress> kept(Result<Progress> result, std::unique_ptr<Counted> counted) {
    if (result.ok() && *result == Progress::kPending) counted.release();
    return result;
  }

  std::unique_ptr<Transport> inner_;
  TransportSink* sink_ = nullptr;
  bool counted_ = false;
};

std::unique_ptr<Transport> uncounted(std::unique_ptr<Transport> transport) {
  return std::make_unique<UncountedTransport>(std::move(transport));
}

LoopbackOptions mixed_wire() {
  LoopbackOptions wire;
  wire.random_modes = true;
  wire.longest_delay = 3;
  wire.reorder_senders = true;
  wire.eager_limit = 4000;
  return wire;
}

constexpr int kRanks = 3;

struct Form {
  uzip_coll_t coll;
  const char* algorithm;
  const char* codec;
  int split_send;
  size_t count;
};

constexpr Form kForms[] = {
    {UZIP_ALLREDUCE, nullptr, "raw", -1, 1},      {UZIP_ALLREDUCE, "two_shot", "raw", -1, 5000},
    {UZIP_ALLREDUCE, "ring", "lev", 0, 50000},    {UZIP_ALLREDUCE, "two_shot", "lev", 1, 50000},
    {UZIP_REDUCE_SCATTER, "ring", "raw", -1, 999}, {UZIP_REDUCE_SCATTERV, "ring", "lev", 0, 9000},
    {UZIP_ALLGATHER, "bruck", "raw", -1, 100},    {UZIP_ALLGATHER, "ring", "lev", 1, 9000},
    {UZIP_ALLGATHERV, "ring", "raw", -1, 100},    {UZIP_BARRIER, nullptr, nullptr, -1, 0}};

// Allocations of one call on all ranks.
size_t allocations_of(LoopbackJob& job, CollCase& test, const Form& form,
                      std::vector<Started>& started) {
  uzip_options_t options = UZIP_OPTIONS_INIT;
  options.algorithm = form.algorithm;
  options.codec = form.codec;
  options.split_send = form.split_send;
  options.chunk_bytes = 32768;
  allocations = 0;
  const Counting on(true);
  for (size_t rank = 0; rank < started.size(); ++rank) {
    const auto r = static_cast<int>(rank);
    uzip_coll_args_t call = test.args(r, &options);
    call.coll = form.coll;
    started[rank].request = *job.start(r, call);
  }
  for (size_t rank = 0; rank < started.size(); ++rank) {
    while (!started[rank].request->done()) job.step();
    EXPECT_TRUE(started[rank].request->status().ok());
    job.engine(static_cast<int>(rank)).release(started[rank].request);
  }
  return allocations;
}

TEST(Memory, RepeatedCallsDontAllocate) {
  for (const Form& form : kForms) {
    LoopbackJob job(kRanks, mixed_wire(), Config(), uncounted);
    CaseShape shape;
    shape.coll = form.coll == UZIP_BARRIER ? UZIP_ALLREDUCE : form.coll;
    shape.type = UZIP_BF16;
    shape.counts.assign(kRanks, form.count);
    CollCase test(shape);
    std::vector<Started> started(kRanks);
    size_t first = 0, last = 0;
    for (int call = 0; call < 200; ++call) {
      const size_t count = allocations_of(job, test, form, started);
      if (call == 0) first = count;
      if (call >= 190) last += count;
    }
    EXPECT_GT(first, 0u);
    EXPECT_EQ(last, 0u) << test.describe() << " " << form.codec << ", at first " << first;
  }
}

}  // namespace
}  // namespace uzip
