// Point to point between real ranks: order, tags, sizes, codecs, many in flight, and disagreement.
#include "mp/mp_world.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

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
  w.test("sender and receiver disagree", [&] { return disagreement(w); });
  w.test("messages to oneself", [&] { return self(w); });
  return w.failures() ? 1 : 0;
}
