// Messages between real ranks: order, tags, sizes, codecs, many in flight, groups, persistent operations, neighbours,
// and disagreement.
#include "mp/mp_world.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace {
size_t allocations = 0;  // of the whole program, the library included
}

void* operator new(size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
void* operator new[](size_t bytes) { return operator new(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }

namespace {

using mp::expect;

std::vector<float> pattern(size_t count, int from, int salt) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 977) * 0.37f + static_cast<float>(from * 1000 + salt);
  return values;
}

bool same(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

/// Everybody sends `send` elements to the right and receives `recv` from the left.
std::string shift(const mp::World& w, size_t send, size_t recv, int tag) {
  const int right = (w.rank + 1) % w.size, left = (w.rank + w.size - 1) % w.size;
  const std::vector<float> out = pattern(send, w.rank, tag);
  std::vector<float> in(recv);
  std::string wrong = expect(uzip_sendrecv(send ? out.data() : nullptr, send, right, tag, recv ? in.data() : nullptr, recv,
                                           left, tag, UZIP_FP32, w.comm),
                             UZIP_OK);
  if (wrong.empty() && !same(in, pattern(recv, left, tag))) wrong = "wrong elements";
  return wrong;
}

std::string sizes(const mp::World& w) {
  for (size_t count : {size_t{0}, size_t{1}, size_t{17}, size_t{4096}, size_t{65536}, size_t{300001}, size_t{2000003}})
    if (std::string wrong = shift(w, count, count, 5); !wrong.empty()) return std::to_string(count) + ": " + wrong;
  return "";
}

/// Some ranks have nothing to send: both ends must agree on which messages exist.
std::string empty_and_full(const mp::World& w) {
  for (int repeat = 0; repeat < 20; ++repeat)
    for (int hole = 0; hole <= w.size; ++hole) {
      const auto count_of = [&](int rank) { return rank == hole ? size_t{0} : size_t{1000}; };
      const int left = (w.rank + w.size - 1) % w.size;
      std::string wrong = shift(w, count_of(w.rank), count_of(left), repeat);
      if (!wrong.empty()) return wrong;
    }
  return "";
}

/// Receives are posted in another order than the sends; equal tags keep their order.
std::string tags_out_of_order(const mp::World& w) {
  const int right = (w.rank + 1) % w.size, left = (w.rank + w.size - 1) % w.size;
  constexpr int kMessages = 24;
  const auto count_of = [](int m) { return static_cast<size_t>(m % 3 == 0 ? 100000 : m); };
  std::vector<std::vector<float>> out(kMessages), in(kMessages);
  std::vector<uzip_request_t> requests;
  for (int m = 0; m < kMessages; ++m) {
    out[static_cast<size_t>(m)] = pattern(count_of(m), w.rank, m);
    requests.emplace_back();
    std::string wrong = expect(uzip_isend(out[static_cast<size_t>(m)].data(), count_of(m), UZIP_FP32, right, m % 4, w.comm,
                                          &requests.back()), UZIP_OK);
    if (!wrong.empty()) return wrong;
  }
  for (int tag = 3; tag >= 0; --tag)
    for (int m = tag; m < kMessages; m += 4) {
      in[static_cast<size_t>(m)].resize(count_of(m));
      requests.emplace_back();
      std::string wrong = expect(uzip_irecv(in[static_cast<size_t>(m)].data(), count_of(m), UZIP_FP32, left, tag, w.comm,
                                            &requests.back()), UZIP_OK);
      if (!wrong.empty()) return wrong;
    }
  std::string wrong = expect(uzip_waitall(requests.size(), requests.data(), nullptr), UZIP_OK);
  for (int m = 0; m < kMessages && wrong.empty(); ++m)
    if (!same(in[static_cast<size_t>(m)], pattern(count_of(m), left, m))) wrong = "message " + std::to_string(m);
  return wrong;
}

std::string with_codec(const mp::World& w, const char* codec, int split) {
  const int right = (w.rank + 1) % w.size, left = (w.rank + w.size - 1) % w.size;
  uzip_options_t options = UZIP_OPTIONS_INIT;
  options.codec = codec;
  options.split_send = split;
  for (size_t count : {size_t{1}, size_t{1000}, size_t{70000}, size_t{1000001}}) {
    const std::vector<float> out = pattern(count, w.rank, 3);
    std::vector<float> in(count);
    uzip_coll_info_t info = {};
    info.struct_size = sizeof info;
    uzip_request_t requests[2];
    std::string wrong = expect(uzip_irecv_options(in.data(), count, UZIP_FP32, left, 1, w.comm, &options, nullptr,
                                                  &requests[0]), UZIP_OK);
    if (wrong.empty())
      wrong = expect(uzip_isend_options(out.data(), count, UZIP_FP32, right, 1, w.comm, &options, &info, &requests[1]),
                     UZIP_OK);
    if (wrong.empty()) wrong = expect(uzip_waitall(2, requests, nullptr), UZIP_OK);
    if (wrong.empty() && !same(in, pattern(count, left, 3))) wrong = "wrong elements";
    if (wrong.empty() && info.payload_bytes != count * sizeof(float)) wrong = "payload_bytes";
    if (wrong.empty() && count > 1000 && codec[0] == 'l' && info.wire_bytes >= info.payload_bytes) wrong = "did not shrink";
    if (!wrong.empty()) return std::to_string(count) + ": " + wrong;
  }
  return "";
}

/// 64 collectives of one size in flight, completed in another order on every rank.
std::string many_in_flight(const mp::World& w) {
  constexpr size_t kCalls = 64, kCount = 3000;
  std::vector<std::vector<float>> in(kCalls, std::vector<float>(kCount)), out = in;
  std::vector<uzip_request_t> requests(kCalls);
  for (size_t k = 0; k < kCalls; ++k) {
    for (size_t i = 0; i < kCount; ++i) in[k][i] = static_cast<float>((i * 7 + k) % 64 + static_cast<size_t>(w.rank));
    std::string wrong = expect(uzip_iallreduce(in[k].data(), out[k].data(), kCount, UZIP_FP32, UZIP_SUM, w.comm, &requests[k]),
                               UZIP_OK);
    if (!wrong.empty()) return wrong;
  }
  std::vector<size_t> order(kCalls);
  std::iota(order.begin(), order.end(), size_t{0});
  std::shuffle(order.begin(), order.end(), std::mt19937(static_cast<unsigned>(w.rank)));
  const float ranks = static_cast<float>(w.size), sum_of_ranks = ranks * (ranks - 1) / 2;
  for (size_t k : order) {
    std::string wrong = expect(uzip_wait(&requests[k]), UZIP_OK);
    if (!wrong.empty()) return wrong;
    for (size_t i = 0; i < kCount; ++i)
      if (out[k][i] != static_cast<float>((i * 7 + k) % 64) * ranks + sum_of_ranks) return "call " + std::to_string(k);
  }
  return "";
}

/// The receiver expects something else: it is told, the sender is not harmed, and the next message is right.
std::string disagreement(const mp::World& w) {
  if (w.size < 2 || w.rank > 1) return "";
  std::vector<float> data(5000, 1.5f), in(6000);
  std::string wrong;
  for (int round = 0; round < 3 && wrong.empty(); ++round) {
    const size_t sent = round == 2 ? 5000 : 300 * static_cast<size_t>(round + 1);
    if (w.rank == 0) {
      wrong = expect(uzip_send(data.data(), sent, UZIP_FP32, 1, 9, w.comm), UZIP_OK);
      continue;
    }
    if (round == 0) wrong = expect(uzip_recv(in.data(), sent + 1, UZIP_FP32, 0, 9, w.comm), UZIP_ERR_MISMATCH);
    if (round == 1) wrong = expect(uzip_recv(in.data(), sent, UZIP_INT32, 0, 9, w.comm), UZIP_ERR_MISMATCH);
    if (round == 2) wrong = expect(uzip_recv(in.data(), sent, UZIP_FP32, 0, 9, w.comm), UZIP_OK);
    if (round < 2 && !std::strstr(uzip_last_error(), "rank 0")) wrong += std::string("names no rank: ") + uzip_last_error();
  }
  return wrong;
}

/// Everybody sends to everybody, itself included, in an order of its own: blocking calls would wait for ever.
std::string group(const mp::World& w, bool nonblocking) {
  for (size_t count : {size_t{3}, size_t{5000}, size_t{300000}}) {
    std::vector<std::vector<float>> out, in;
    std::vector<int> calls;
    for (int peer = 0; peer < w.size; ++peer) {
      out.push_back(pattern(count, w.rank, peer));
      in.emplace_back(count);
      calls.insert(calls.end(), {peer, peer + w.size});
    }
    std::shuffle(calls.begin(), calls.end(), std::mt19937(static_cast<unsigned>(w.rank)));
    std::string wrong = expect(uzip_group_start(), UZIP_OK);
    for (int call : calls) {
      const auto peer = static_cast<size_t>(call % w.size);
      const bool send = call < w.size;
      if (wrong.empty())
        wrong = expect(send ? uzip_send(out[peer].data(), count, UZIP_FP32, static_cast<int>(peer), 2, w.comm)
                            : uzip_recv(in[peer].data(), count, UZIP_FP32, static_cast<int>(peer), 2, w.comm), UZIP_OK);
    }
    uzip_request_t request = UZIP_REQUEST_NULL;
    if (wrong.empty()) wrong = expect(nonblocking ? uzip_igroup_end(&request) : uzip_group_end(), UZIP_OK);
    if (wrong.empty()) wrong = expect(uzip_wait(&request), UZIP_OK);
    for (int peer = 0; peer < w.size && wrong.empty(); ++peer)
      if (!same(in[static_cast<size_t>(peer)], pattern(count, peer, w.rank))) wrong = "from rank " + std::to_string(peer);
    if (!wrong.empty()) return std::to_string(count) + ": " + wrong;
  }
  return "";
}

/// Started again and again without an allocation, but for messages that come earlier than any before.
std::string persistent(const mp::World& w, const char* codec, size_t count) {
  const int right = (w.rank + 1) % w.size, left = (w.rank + w.size - 1) % w.size;
  uzip_options_t options = UZIP_OPTIONS_INIT;
  options.codec = codec;
  std::vector<float> out(count), in(count), sum(count);
  uzip_request_t requests[3];
  uzip_coll_args_t args = {};
  args.struct_size = sizeof args;
  args.coll = UZIP_ALLREDUCE;
  args.src = out.data();
  args.dst = sum.data();
  args.count = count;
  args.dtype = UZIP_FP32;
  args.options = &options;
  std::string wrong = expect(uzip_recv_init_options(in.data(), count, UZIP_FP32, left, 4, w.comm, &options, nullptr,
                                                    &requests[0]), UZIP_OK);
  if (wrong.empty())
    wrong = expect(uzip_send_init_options(out.data(), count, UZIP_FP32, right, 4, w.comm, &options, nullptr,
                                          &requests[1]), UZIP_OK);
  if (wrong.empty()) wrong = expect(uzip_coll_init(&args, w.comm, &requests[2]), UZIP_OK);
  constexpr int kStarts = 40, kWarm = 20;
  size_t allocated = 0;
  for (int start = 0; start < kStarts && wrong.empty(); ++start) {
    for (size_t i = 0; i < count; ++i) out[i] = static_cast<float>(static_cast<int>(i % 512) + start + w.rank);
    const size_t before = allocations;
    const uzip_status_t started = uzip_startall(3, requests);
    const uzip_status_t ended = uzip_waitall(3, requests, nullptr);
    if (start >= kWarm) allocated += allocations - before;
    wrong = expect(started, UZIP_OK) + expect(ended, UZIP_OK);
    for (size_t i = 0; i < count && wrong.empty(); ++i) {
      const float value = static_cast<float>(static_cast<int>(i % 512) + start), ranks = static_cast<float>(w.size);
      if (in[i] != value + static_cast<float>(left)) wrong = "received a wrong element";
      if (sum[i] != value * ranks + ranks * (ranks - 1) / 2) wrong = "a wrong sum";
    }
  }
  // Of messages to oneself UCX's active messages keep a copy, which takes memory. More messages may be early than ever
  // before, the more so with more ranks than cores, but not in every start.
  if (w.size > 1 && wrong.empty() && allocated > kStarts - kWarm) wrong = std::to_string(allocated) + " allocations";
  for (uzip_request_t& request : requests)
    if (wrong.empty()) wrong = expect(uzip_request_free(&request), UZIP_OK);
  return wrong;
}

/// Blocks of all sizes in both directions of a ring, some to oneself, into places with gaps.
std::string neighbours(const mp::World& w, const char* codec) {
  const int right = (w.rank + 1) % w.size, left = (w.rank + w.size - 1) % w.size;
  constexpr size_t kGap = 3;
  for (size_t size : {size_t{0}, size_t{5}, size_t{40000}, size_t{1000003}}) {
    const int dests[4] = {right, left, w.rank, right}, sources[4] = {left, right, w.rank, left};
    const size_t counts[4] = {size, size / 2, 100, 7};
    size_t offsets[4] = {}, end = 0;
    for (int b = 0; b < 4; ++b) {
      offsets[b] = end;
      end += counts[b] + kGap;
    }
    std::vector<float> out(end), in(end, -1), expected(end, -1);
    const auto put = [&](std::vector<float>& values, int block, int from) {
      const std::vector<float> block_values = pattern(counts[block], from, block);
      std::copy(block_values.begin(), block_values.end(), values.begin() + static_cast<ptrdiff_t>(offsets[block]));
    };
    for (int b = 0; b < 4; ++b) {
      put(out, b, w.rank);
      put(expected, b, sources[b]);
    }
    const uzip_neighbors_t all = {sizeof all, 4, 4, dests, counts, offsets, sources, counts, offsets};
    uzip_options_t options = UZIP_OPTIONS_INIT;
    options.codec = codec;
    uzip_coll_args_t args = {};
    args.struct_size = sizeof args;
    args.coll = UZIP_NEIGHBOR_ALLTOALLV;
    args.src = out.data();
    args.dst = in.data();
    args.dtype = UZIP_FP32;
    args.options = &options;
    args.neighbors = &all;
    std::string wrong = expect(uzip_coll_run(&args, w.comm), UZIP_OK);
    if (wrong.empty() && !same(in, expected)) wrong = "wrong elements";
    if (!wrong.empty()) return std::to_string(size) + ": " + wrong;
  }
  return "";
}

std::string self(const mp::World& w) {
  for (size_t count : {size_t{0}, size_t{3}, size_t{100000}}) {
    const std::vector<float> out = pattern(count, w.rank, 0);
    std::vector<float> in(count);
    std::string wrong = expect(uzip_sendrecv(out.data(), count, w.rank, 0, in.data(), count, w.rank, 0, UZIP_FP32, w.comm), UZIP_OK);
    if (wrong.empty() && !same(in, out)) wrong = "wrong elements";
    if (!wrong.empty()) return wrong;
  }
  return "";
}

}  // namespace

int main(int argc, char** argv) {
  mp::World w(&argc, &argv);
  w.test("messages of all sizes", [&] { return sizes(w); });
  w.test("empty and full messages", [&] { return empty_and_full(w); });
  w.test("tags out of order", [&] { return tags_out_of_order(w); });
  w.test("codec raw", [&] { return with_codec(w, "raw", 0); });
  w.test("codec lev", [&] { return with_codec(w, "lev", 0); });
  w.test("codec lev, split-send", [&] { return with_codec(w, "lev", 1); });
  w.test("64 all-reduces in flight", [&] { return many_in_flight(w); });
  w.test("group in any order", [&] { return group(w, false); });
  w.test("group with a request", [&] { return group(w, true); });
  w.test("persistent, 8 elements", [&] { return persistent(w, "raw", 8); });
  w.test("persistent, raw", [&] { return persistent(w, "raw", 100000); });
  w.test("persistent, lev", [&] { return persistent(w, "lev", 100000); });
  w.test("neighbours, raw", [&] { return neighbours(w, "raw"); });
  w.test("neighbours, lev", [&] { return neighbours(w, "lev"); });
  w.test("sender and receiver disagree", [&] { return disagreement(w); });
  w.test("messages to oneself", [&] { return self(w); });
  return w.failures() ? 1 : 0;
}
