// A call that was made before makes no allocation, and memory does not grow: with calls, with
// communicators, with the size of a message.
#include "comm/api_job.hpp"
#include "comm/api_operation.hpp"
#include "comm/coll_case.hpp"
#include "comm/loopback_job.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace {

// Allocations of this thread while it counts.
thread_local bool counting = false;
thread_local size_t allocations = 0;
thread_local size_t allocated_bytes = 0;
// All that are not freed, of all threads.
std::atomic<int64_t> live{0};

void* try_to_allocate(size_t bytes) {
  if (counting) {
    ++allocations;
    allocated_bytes += bytes;
  }
  void* memory = std::malloc(bytes > 0 ? bytes : 1);
  if (memory != nullptr) ++live;
  return memory;
}

void* allocate(size_t bytes) {
  void* memory = try_to_allocate(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void release(void* memory) {
  if (memory != nullptr) --live;
  std::free(memory);
}

}  // namespace

void* operator new(size_t bytes) { return allocate(bytes); }
void* operator new[](size_t bytes) { return allocate(bytes); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return try_to_allocate(bytes); }
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept { return try_to_allocate(bytes); }
void operator delete(void* memory) noexcept { release(memory); }
void operator delete[](void* memory) noexcept { release(memory); }
void operator delete(void* memory, size_t) noexcept { release(memory); }
void operator delete[](void* memory, size_t) noexcept { release(memory); }

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
                        Completion* completion, const SendHints& hints) override {
    const Counting off(false);
    auto counted = std::make_unique<Counted>(completion, this);
    const auto result = inner_->send(peer, head, body, counted.get(), hints);
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
    {UZIP_ALLREDUCE, nullptr, "raw", -1, 1},       {UZIP_ALLREDUCE, "two_shot", "raw", -1, 5000},
    {UZIP_ALLREDUCE, "ring", "lev", 0, 50000},     {UZIP_ALLREDUCE, "two_shot", "lev", 1, 50000},
    {UZIP_REDUCE_SCATTER, "ring", "raw", -1, 999}, {UZIP_REDUCE_SCATTERV, "ring", "lev", 0, 9000},
    {UZIP_ALLGATHER, "bruck", "raw", -1, 100},     {UZIP_ALLGATHER, "ring", "lev", 1, 9000},
    {UZIP_ALLGATHERV, "ring", "raw", -1, 100},     {UZIP_BARRIER, nullptr, nullptr, -1, 0}};

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

/// Starts the operations of all ranks and ends them; the allocations meanwhile.
size_t allocations_of(LoopbackJob& job, std::vector<Operation>& operations) {
  allocations = 0;
  const Counting on(true);
  for (size_t rank = 0; rank < operations.size(); ++rank) {
    EXPECT_TRUE(operations[rank].start(job.comm(static_cast<int>(rank))).ok());
  }
  for (Operation& operation : operations) {
    while (!operation.done()) job.step();
    EXPECT_TRUE(operation.end().ok());
  }
  return allocations;
}

// Not even the first start does, but for messages that come before they are expected: these take their
// memory when there are more of them than ever before.
TEST(Memory, PersistentOperationsDontAllocate) {
  LoopbackOptions in_order;
  in_order.eager_limit = 0;
  for (const bool mixed : {false, true}) {
    for (const Form& form : kForms) {
      LoopbackJob job(kRanks, mixed ? mixed_wire() : in_order, Config(), uncounted);
      CaseShape shape;
      shape.coll = form.coll == UZIP_BARRIER ? UZIP_ALLREDUCE : form.coll;
      shape.type = UZIP_BF16;
      shape.counts.assign(kRanks, form.count);
      CollCase test(shape);
      uzip_options_t options = UZIP_OPTIONS_INIT;
      options.algorithm = form.algorithm;
      options.codec = form.codec;
      options.split_send = form.split_send;
      options.chunk_bytes = 32768;
      std::vector<Operation> operations;
      for (int rank = 0; rank < kRanks; ++rank) {
        uzip_coll_args_t call = test.args(rank, &options);
        call.coll = form.coll;
        auto args = validate_collective(call, job.comm(rank).context());
        operations.push_back(
            std::move(*Operation::persistent(nullptr, job.world(rank), std::move(*args))));
      }
      size_t early = 0, late = 0;
      for (int start = 0; start < 60; ++start) {
        (start < 40 ? early : late) += allocations_of(job, operations);
      }
      if (!mixed) {
        EXPECT_EQ(early, 0u) << test.describe() << " " << form.codec;
      }
      EXPECT_EQ(late, 0u) << test.describe() << " " << form.codec;
      if (form.coll != UZIP_BARRIER) {
        EXPECT_EQ(test.check(), "");
      }
      for (Operation& operation : operations) operation.release();
      for (int rank = 0; rank < kRanks; ++rank) {
        EXPECT_EQ(job.engine(rank).buffers().in_use_bytes(), 0u);
      }
    }
  }
}

TEST(Memory, RepeatedMessagesDontAllocate) {
  for (const char* codec : {"raw", "lev"}) {
    uzip_options_t options = UZIP_OPTIONS_INIT;
    options.codec = codec;
    options.chunk_bytes = 16384;
    LoopbackJob job(2, mixed_wire(), Config(), uncounted);
    const std::vector<float> in(20000, 1.5F);
    std::vector<float> out(in.size());
    size_t last = 0;
    for (int turn = 0; turn < 300; ++turn) {
      allocations = 0;
      const Counting on(true);
      Request* requests[2];
      const bool send_first = turn % 2 == 0;
      for (int k = 0; k < 2; ++k) {
        const bool send = (k == 0) == send_first;
        requests[send] =
            send ? *job.start_send(0, in.data(), in.size(), UZIP_FP32, 1, 0, &options)
                 : *job.start_recv(1, out.data(), out.size(), UZIP_FP32, 0, 0, &options);
        for (int step = 0; step < turn % 50; ++step) job.step();
      }
      while (!requests[0]->done() || !requests[1]->done()) job.step();
      job.engine(1).release(requests[0]);
      job.engine(0).release(requests[1]);
      if (turn >= 200) last += allocations;
    }
    EXPECT_EQ(last, 0u) << codec;
    EXPECT_EQ(in, out);
  }
}

// Through the C API, where requests have handles.
TEST(Memory, RepeatedNonblockingCallsDontAllocate) {
  const uzip_oob_t oob = {sizeof oob, 0, 1,
                          [](const void* src, void* dst, size_t bytes, void*) {
                            std::memcpy(dst, src, bytes);
                            return 0;
                          },
                          nullptr};
  uzip_comm_t comm;
  ASSERT_EQ(uzip_comm_create(&oob, &comm), UZIP_OK) << uzip_last_error();
  const std::vector<float> in(1000, 1);
  std::vector<float> out(1000);
  for (int turn = 0; turn < 50; ++turn) {
    if (turn == 40) allocations = 0;
    const Counting on(true);
    uzip_request_t requests[16];
    for (uzip_request_t& request : requests) {
      ASSERT_EQ(uzip_iallreduce(in.data(), out.data(), 1000, UZIP_FP32, UZIP_SUM, comm, &request),
                UZIP_OK);
    }
    ASSERT_EQ(uzip_waitall(16, requests, nullptr), UZIP_OK);
    ASSERT_EQ(uzip_allreduce(in.data(), out.data(), 1000, UZIP_FP32, UZIP_SUM, comm), UZIP_OK);
  }
  EXPECT_EQ(allocations, 0u);
  EXPECT_EQ(uzip_comm_free(&comm), UZIP_OK);
}

// ---- Bounds ----

struct Footprint {
  size_t scratch = 0;  // most bytes in use at a time, of a rank
  size_t heap = 0;     // bytes allocated during the call
};

// Of a few equal calls at a time.
Footprint footprint_of(const Form& form, size_t count) {
  constexpr size_t kCalls = 4;
  LoopbackJob job(kRanks, {}, Config(), uncounted);
  const std::vector<uint16_t> in(count * kRanks, 0x3f80);
  std::vector<uint16_t> out(count * kRanks);
  uzip_options_t options = UZIP_OPTIONS_INIT;
  options.algorithm = form.algorithm;
  options.codec = form.codec;
  options.chunk_bytes = 65536;
  std::vector<Started> started;
  started.reserve(kCalls * kRanks);
  Footprint result;
  allocated_bytes = 0;
  const Counting on(true);
  for (size_t call = 0; call < kCalls; ++call) {
    for (int rank = 0; rank < kRanks; ++rank) {
      // All write the same.
      auto args = make_call(form.coll, in.data(), out.data(), count, UZIP_BF16, UZIP_MAX);
      args.options = &options;
      started.push_back({rank, *job.start(rank, args)});
    }
  }
  const auto unfinished = [](const Started& s) { return !s.request->done(); };
  while (std::any_of(started.begin(), started.end(), unfinished)) {
    job.step();
    result.scratch = std::max(result.scratch, job.engine(0).buffers().in_use_bytes());
  }
  result.heap = allocated_bytes;
  for (const Started& s : started) {
    EXPECT_TRUE(s.request->status().ok());
    job.engine(s.rank).release(s.request);
  }
  return result;
}

// The rounds of a long call use the same memory one after another.
TEST(Memory, DoesNotGrowWithTheMessage) {
  for (const Form& form :
       {Form{UZIP_ALLREDUCE, "two_shot", "raw", -1, 0}, Form{UZIP_ALLREDUCE, "ring", "lev", -1, 0},
        Form{UZIP_ALLGATHER, "ring", "lev", -1, 0},
        Form{UZIP_REDUCE_SCATTER, "ring", "raw", -1, 0}}) {
    const Footprint some = footprint_of(form, 3 * 32768 * 10),
                    many = footprint_of(form, 3 * 32768 * 80);
    EXPECT_EQ(some.scratch, many.scratch) << form.algorithm;
    EXPECT_LT(many.heap, some.heap + some.heap / 10) << form.algorithm << form.codec;
  }
}

TEST(Memory, ScratchIsGivenBack) {
  LoopbackJob job(kRanks, mixed_wire());
  CollCase test({UZIP_ALLREDUCE, UZIP_FP32, UZIP_SUM, std::vector<size_t>(kRanks, 50000),
                 Placement::kApart, Values::kExact, 1});
  EXPECT_EQ(expect_all(job.run([&](int rank) { return test.args(rank); }), UZIP_OK), "");
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(job.engine(rank).buffers().in_use_bytes(), 0u);
  }
}

TEST(Memory, CommunicatorsLeaveNothing) {
  LoopbackJob job(2);
  const auto turn = [&] {
    std::vector<CommunicatorHandle> comm = job.make_communicator();
    job.join(comm);
    int32_t in = 1, out[2];
    std::vector<Started> started;
    for (int rank = 0; rank < 2; ++rank) {
      started.push_back(
          {rank, *job.start(rank, make_call(UZIP_ALLREDUCE, &in, &out[rank], 1, UZIP_INT32),
                            comm[static_cast<size_t>(rank)].comm.get())});
    }
    ASSERT_EQ(expect_all(job.finish(started), UZIP_OK), "");
    job.leave(comm);
  };
  for (int k = 0; k < 50; ++k) turn();
  const int64_t before = live;
  for (int k = 0; k < 3000; ++k) turn();
  EXPECT_LE(live, before + 2);
}

/// Makes and frees a duplicate, a part and, with that, a call, over and over.
void make_and_free(uzip_comm_t world, int times) {
  for (int k = 0; k < times; ++k) {
    uzip_comm_t duplicate, part;
    ASSERT_EQ(uzip_comm_dup(world, &duplicate), UZIP_OK) << uzip_last_error();
    ASSERT_EQ(uzip_comm_split(duplicate, k % 2, k % 3, &part), UZIP_OK) << uzip_last_error();
    ASSERT_EQ(uzip_comm_free(&duplicate), UZIP_OK) << uzip_last_error();
    float value = 1;
    if (k % 16 == 0) {
      ASSERT_EQ(uzip_allreduce(UZIP_IN_PLACE, &value, 1, UZIP_FP32, UZIP_SUM, part), UZIP_OK);
    }
    ASSERT_EQ(uzip_comm_free(&part), UZIP_OK) << uzip_last_error();
  }
}

// Through the public API. UZIP_TEST_LIFETIMES=1000000 for a million of them.
TEST(Memory, CommunicatorsComeAndGo) {
  const char* wanted = std::getenv("UZIP_TEST_LIFETIMES");
  const int lifetimes = wanted ? std::atoi(wanted) : 20000;
  for (int ranks : {1, 3}) {
    ApiJob job(ranks);
    const auto turn = [&](int times) {
      job.run([times](int, uzip_comm_t world) { make_and_free(world, times); });
    };
    turn(200);
    const int64_t before = live;
    turn(ranks == 1 ? lifetimes : std::min(lifetimes, std::max(500, lifetimes / 20)));
    EXPECT_LE(live, before + 20) << ranks << " ranks";
  }
}

TEST(Memory, FailedCallsLeaveNothing) {
  const QuietLog quiet;
  LoopbackJob job(kRanks, mixed_wire());
  std::vector<float> in(3000, 1), out(3000 * kRanks);
  const auto turn = [&] {
    const auto statuses = job.run([&](int rank) {
      return make_call(UZIP_ALLREDUCE, in.data(), out.data() + 3000 * rank,
                       rank == 1 ? 2999 : 3000);
    });
    ASSERT_EQ(expect_all(statuses, UZIP_ERR_MISMATCH), "");
  };
  for (int k = 0; k < 50; ++k) turn();
  job.settle();
  const int64_t before = live;
  for (int k = 0; k < 500; ++k) turn();
  job.settle();
  EXPECT_LE(live, before + 20);
}

}  // namespace
}  // namespace uzip
