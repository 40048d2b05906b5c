// Wrong calls between real ranks: each is a status with a message, the state is unharmed and the next call right.
#include "mp/mp_world.hpp"

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace {

using mp::expect;

/// The communicator still works: a sum over all ranks.
std::string works(const mp::World& w) {
  std::vector<float> in(1000, static_cast<float>(w.rank + 1)), out(1000);
  std::string wrong = expect(uzip_allreduce(in.data(), out.data(), in.size(), UZIP_FP32, UZIP_SUM, w.comm), UZIP_OK);
  const float sum = static_cast<float>(w.size * (w.size + 1) / 2);
  for (float x : out)
    if (wrong.empty() && x != sum) wrong = "the next call is wrong";
  return wrong;
}

std::string says(const std::string& wrong, const char* word) {
  if (!wrong.empty() || std::strstr(uzip_last_error(), word)) return wrong;
  return std::string("the message lacks '") + word + "': " + uzip_last_error();
}

std::string bad_arguments(const mp::World& w) {
  float a[4] = {}, b[4] = {};
  const uzip_comm_t comm = w.comm;
  uzip_request_t request = UZIP_REQUEST_NULL;
  struct {
    uzip_status_t status;
    const char* word;
  } calls[] = {
      {uzip_allreduce(nullptr, b, 4, UZIP_FP32, UZIP_SUM, comm), "NULL"},
      {uzip_allreduce(a, nullptr, 4, UZIP_FP32, UZIP_SUM, comm), "NULL"},
      {uzip_allreduce(a, UZIP_IN_PLACE, 4, UZIP_FP32, UZIP_SUM, comm), "UZIP_IN_PLACE"},
      {uzip_allreduce(a, b, SIZE_MAX, UZIP_FP32, UZIP_SUM, comm), "negative"},
      {uzip_allreduce(a, b, static_cast<size_t>(-4), UZIP_FP32, UZIP_SUM, comm), "negative"},
      {uzip_allreduce(a, b, 4, static_cast<uzip_dtype_t>(99), UZIP_SUM, comm), "99"},
      {uzip_allreduce(a, b, 4, static_cast<uzip_dtype_t>(-1), UZIP_SUM, comm), "-1"},
      {uzip_allreduce(a, b, 4, UZIP_FP32, static_cast<uzip_op_t>(7), comm), "7"},
      {uzip_allreduce(a, a + 1, 3, UZIP_FP32, UZIP_SUM, comm), "overlap"},
      {uzip_allgather(a, a + 1, 1, UZIP_FP32, nullptr), "communicator"},
      {uzip_allreduce(a, b, 4, UZIP_FP32, UZIP_SUM, reinterpret_cast<uzip_comm_t>(uintptr_t{0x1234567})), "freed"},
      {uzip_reduce_scatterv(a, b, nullptr, UZIP_FP32, UZIP_SUM, comm), "counts"},
      {uzip_send(a, 4, UZIP_FP32, w.size, 0, comm), "rank"},
      {uzip_send(a, 4, UZIP_FP32, -1, 0, comm), "rank"},
      {uzip_recv(a, 4, UZIP_FP32, 0, -5, comm), "tag"},
      {uzip_iallreduce(a, b, 4, UZIP_FP32, UZIP_SUM, comm, nullptr), "request"},
      {uzip_irecv(nullptr, 4, UZIP_FP32, 0, 0, comm, &request), "NULL"},
      {uzip_comm_split(comm, -7, 0, nullptr), "NULL"},
      {uzip_comm_rank(comm, nullptr), "NULL"},
  };
  // Judged after all were made, so that each one's text is still what the last of them said.
  int index = 0;
  for (const auto& call : calls) {
    std::string wrong = expect(call.status, UZIP_ERR_INVALID);
    if (!wrong.empty()) return "call " + std::to_string(index) + ": " + wrong;
    ++index;
  }
  if (std::string wrong = says(expect(uzip_allreduce(a, a + 1, 3, UZIP_FP32, UZIP_SUM, comm), UZIP_ERR_INVALID), "overlap"); !wrong.empty())
    return wrong;
  if (std::string wrong = says(expect(uzip_allreduce(a, b, 4, static_cast<uzip_dtype_t>(99), UZIP_SUM, comm), UZIP_ERR_INVALID), "99"); !wrong.empty())
    return wrong;
  return works(w);
}

std::string bad_options(const mp::World& w) {
  float a[4] = {}, b[4] = {};
  uzip_options_t options = UZIP_OPTIONS_INIT;
  uzip_coll_args_t args = {};
  args.struct_size = sizeof args;
  args.src = a;
  args.dst = b;
  args.count = 4;
  args.dtype = UZIP_FP32;
  args.options = &options;
  const auto call = [&](const char* word) {
    return says(expect(uzip_coll_run(&args, w.comm), UZIP_ERR_INVALID), word);
  };
  std::string wrong;
  options.algorithm = "rign";
  if ((wrong = call("rign")).size()) return wrong;
  options.algorithm = nullptr;
  options.codec = "zip";
  if ((wrong = call("zip")).size()) return wrong;
  options.codec = "lev:hardest";
  if ((wrong = call("hardest")).size()) return wrong;
  options.codec = nullptr;
  options.split_send = 5;
  if ((wrong = call("split_send")).size()) return wrong;
  options.split_send = -1;
  options.struct_size = 3;
  if ((wrong = call("struct_size")).size()) return wrong;
  options.struct_size = sizeof options;
  args.struct_size = 0;
  if ((wrong = call("struct_size")).size()) return wrong;
  return works(w);
}

/// Rank `odd` calls something else than the others. Everybody who can notice must, nobody may hang.
std::string mismatch(const mp::World& w, const char* word, uzip_coll_args_t args, void (*change)(uzip_coll_args_t*)) {
  if (w.size < 2) return "";
  std::vector<float> a(20000, 1), b(20000);
  args.struct_size = sizeof args;
  args.src = a.data();
  args.dst = b.data();
  if (w.rank == w.size - 1) change(&args);
  std::string wrong = expect(uzip_coll_run(&args, w.comm), UZIP_ERR_MISMATCH);
  if (wrong.empty() && !std::strstr(uzip_last_error(), "rank")) wrong = "names no rank";
  wrong = says(wrong, word);
  if (wrong.empty()) wrong = works(w);
  return wrong;
}

uzip_coll_args_t allreduce_of(size_t count) {
  uzip_coll_args_t args = {};
  args.coll = UZIP_ALLREDUCE;
  args.count = count;
  args.dtype = UZIP_FP32;
  args.op = UZIP_SUM;
  return args;
}

std::string freed_communicator(const mp::World& w) {
  uzip_comm_t copy = nullptr, stale = nullptr;
  std::string wrong = expect(uzip_comm_dup(w.comm, &copy), UZIP_OK);
  stale = copy;
  if (wrong.empty()) wrong = expect(uzip_comm_free(&copy), UZIP_OK);
  if (wrong.empty() && copy) wrong = "the handle is not NULL";
  if (wrong.empty()) wrong = says(expect(uzip_barrier(stale), UZIP_ERR_INVALID), "freed");
  if (wrong.empty()) wrong = expect(uzip_comm_free(&stale), UZIP_ERR_INVALID);
  uzip_comm_t none = nullptr;
  if (wrong.empty()) wrong = expect(uzip_comm_free(&none), UZIP_OK);
  return wrong.empty() ? works(w) : wrong;
}

std::string stale_request(const mp::World& w) {
  uzip_request_t request, copy;
  std::string wrong = expect(uzip_ibarrier(w.comm, &request), UZIP_OK);
  copy = request;
  if (wrong.empty()) wrong = expect(uzip_wait(&request), UZIP_OK);
  if (wrong.empty() && request != UZIP_REQUEST_NULL) wrong = "the request is not null";
  if (wrong.empty()) wrong = expect(uzip_wait(&request), UZIP_OK);
  if (wrong.empty()) wrong = expect(uzip_wait(&copy), UZIP_ERR_INVALID);
  int done = 7;
  if (wrong.empty()) wrong = expect(uzip_test(&request, &done), UZIP_OK);
  if (wrong.empty() && done != 1) wrong = "a null request is not done";
  return wrong;
}

std::string freed_with_request(const mp::World& w) {
  if (w.size < 2) return "";
  uzip_comm_t copy;
  std::string wrong = expect(uzip_comm_dup(w.comm, &copy), UZIP_OK);
  float value = 0;
  uzip_request_t request;
  if (wrong.empty()) wrong = expect(uzip_irecv(&value, 1, UZIP_FP32, (w.rank + 1) % w.size, 0, copy, &request), UZIP_OK);
  if (wrong.empty()) wrong = expect(uzip_comm_free(&copy), UZIP_OK);
  if (wrong.empty()) wrong = says(expect(uzip_wait(&request), UZIP_ERR_INVALID), "freed");
  return wrong.empty() ? works(w) : wrong;
}

}  // namespace

int main(int argc, char** argv) {
  mp::World w(&argc, &argv);
  w.test("bad arguments", [&] { return bad_arguments(w); });
  w.test("bad options", [&] { return bad_options(w); });
  w.test("freed communicator", [&] { return freed_communicator(w); });
  w.test("stale request", [&] { return stale_request(w); });
  w.test("communicator freed with a request in flight", [&] { return freed_with_request(w); });
  for (size_t count : {size_t{5}, size_t{1000}, size_t{20000}}) {
    const std::string size = " (" + std::to_string(count) + " elements)";
    w.test("other count" + size, [&] { return mismatch(w, "elements", allreduce_of(count), [](uzip_coll_args_t* a) { a->count -= 1; }); });
    w.test("other type" + size, [&] { return mismatch(w, "int32", allreduce_of(count), [](uzip_coll_args_t* a) { a->dtype = UZIP_INT32; }) ; });
    w.test("other operation" + size, [&] { return mismatch(w, "max", allreduce_of(count), [](uzip_coll_args_t* a) { a->op = UZIP_MAX; }); });
    w.test("other collective" + size, [&] { return mismatch(w, "allgather", allreduce_of(count), [](uzip_coll_args_t* a) {
      a->coll = UZIP_ALLGATHER;
      a->count = 1; }); });
    w.test("other algorithm" + size, [&] { return mismatch(w, "algorithm", allreduce_of(count), [](uzip_coll_args_t* a) {
      static uzip_options_t options = UZIP_OPTIONS_INIT;
      options.algorithm = "ring";
      options.chunk_bytes = 512;
      a->options = &options; }); });
    w.test("barrier instead" + size, [&] { return mismatch(w, "barrier", allreduce_of(count), [](uzip_coll_args_t* a) { a->coll = UZIP_BARRIER; }); });
    w.test("no elements" + size, [&] { return mismatch(w, "elements", allreduce_of(count), [](uzip_coll_args_t* a) { a->count = 1; }); });
  }
  return w.failures() ? 1 : 0;
}
