#include "support/fake_gpu.hpp"

#include "support/fake_gpu_peers.hpp"

#include "base/crc32c.hpp"
#include "base/reduce.hpp"
#include "codec/codec.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

namespace uzip::gpu {

struct CodecContext {
  uint64_t most_count;
};

}  // namespace uzip::gpu

namespace uzip::fake_gpu {
namespace {

using gpu::MemoryKind;

constexpr unsigned char kRubbish = 0xa5;
/// A device's frames may be padded: a plugin asks for more room than the CPU's codec.
constexpr uint64_t kMorePlain = 3000, kMoreCoded = 9000;
/// Of all that is ready, one piece of work is done at so many queries, about.
constexpr unsigned kQueriesPerWork = 2;

struct Region {
  std::byte* shadow;
  size_t bytes;
  MemoryKind kind;
  int device;
  bool of_library;
};

struct Work {
  std::function<void()> run;
  std::function<bool()> ready;
};

struct Event {
  uint64_t recorded = 0, done = 0;
};

struct State {
  std::recursive_mutex mutex;
  std::mt19937_64 random;
  std::map<const std::byte*, Region> regions;
  std::map<void*, std::deque<Work>> streams;
  std::map<void*, bool> capturing;
  std::map<void*, bool> blocked;
  Counters counters;
  int operations_left = -1;
  bool failed = false;
  uintptr_t next_stream = 0x1000;
  CodecScratch scratch;
};

State& state() {
  static auto* const state = new State;
  return *state;
}
using Lock = std::lock_guard<std::recursive_mutex>;

thread_local int current = 0;
thread_local std::string message;

int fail(const std::string& text) {
  message = "fake GPU: " + text;
  return 1;
}
const char* last_error() { return message.c_str(); }

const std::pair<const std::byte* const, Region>* find(const void* pointer) {
  const auto* const address = static_cast<const std::byte*>(pointer);
  auto& regions = state().regions;
  auto after = regions.upper_bound(address);
  if (after == regions.begin()) return nullptr;
  --after;
  return address < after->first + after->second.bytes ? &*after : nullptr;
}

/// What a kernel gets at; a test that lets it read ordinary memory ends.
std::byte* reach(const void* pointer) {
  if (find(pointer)) return behind(pointer);
  std::fprintf(stderr, "fake GPU: a kernel was given %p, which no GPU can reach\n", pointer);
  std::abort();
}

void put(void* stream, std::function<void()> run, std::function<bool()> ready = nullptr) {
  state().streams[stream].push_back({std::move(run), std::move(ready)});
}

/// Does one piece of work of a stream that has some which is ready; false if there is none.
bool run_one() {
  State& all = state();
  std::vector<std::deque<Work>*> ready;
  for (auto& [stream, queue] : all.streams)
    if (!queue.empty() && (!queue.front().ready || queue.front().ready())) ready.push_back(&queue);
  if (ready.empty()) return false;
  std::deque<Work>& queue = *ready[all.random() % ready.size()];
  const Work work = std::move(queue.front());
  queue.pop_front();
  if (all.operations_left == 0) all.failed = true;
  if (all.operations_left > 0) --all.operations_left;
  work.run();
  return true;
}

int device_count(int* count) {
  *count = kDevices;
  return 0;
}
int describe_device(int device, gpu::DeviceInfo* info) {
  *info = {};
  std::snprintf(info->name, sizeof info->name, "Fake %d", device);
  info->compute_major = 9;
  info->processors = 4;
  info->memory_bytes = uint64_t{1} << 30;
  return 0;
}
int describe_pair(int, int, gpu::PairInfo* info) {
  *info = {};
  return 0;
}
int describe_pointer(const void* pointer, gpu::PointerInfo* info) {
  const Lock lock(state().mutex);
  const auto* const region = find(pointer);
  *info = region ? gpu::PointerInfo{region->second.kind, region->second.device}
                 : gpu::PointerInfo{MemoryKind::kHost, -1};
  return 0;
}
int current_device(int* device) {
  *device = current;
  return 0;
}
int set_device(int device) {
  if (device < 0 || device >= kDevices) return fail("there is no such device");
  current = device;
  return 0;
}

std::byte* add_region(MemoryKind kind, int device, size_t bytes, bool of_library) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE)), size = (bytes + page - 1) / page * page;
  const int file = memfd_create("fake_gpu", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(size)) != 0) std::abort();
  const auto map = [&](int protection) {
    void* const memory = mmap(nullptr, size, protection, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) std::abort();
    return static_cast<std::byte*>(memory);
  };
  std::byte* const shadow = map(PROT_READ | PROT_WRITE);
  std::byte* const memory = kind == MemoryKind::kDevice ? map(PROT_NONE) : shadow;
  close(file);
  std::memset(shadow, kRubbish, size);
  State& all = state();
  all.regions[memory] = {shadow, size, kind, kind == MemoryKind::kPinned ? -1 : device, of_library};
  if (of_library) {
    ++all.counters.allocations;
    all.counters.bytes += size;
    all.counters.most_bytes = std::max(all.counters.most_bytes, all.counters.bytes);
  }
  return memory;
}

int release_region(void* memory) {
  const Lock lock(state().mutex);
  auto& regions = state().regions;
  const auto region = regions.find(static_cast<std::byte*>(memory));
  if (region == regions.end()) return fail("what is released was not allocated");
  munmap(region->second.shadow, region->second.bytes);
  if (region->second.shadow != region->first) {
    munmap(memory, region->second.bytes);
    // Never the address of anything else, so that tests may use what was freed.
    (void)mmap(memory, region->second.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
  }
  if (region->second.of_library) state().counters.bytes -= region->second.bytes;
  regions.erase(region);
  return 0;
}
int allocate_device(void** memory, size_t bytes) {
  const Lock lock(state().mutex);
  *memory = add_region(MemoryKind::kDevice, current, bytes, true);
  return 0;
}
int allocate_pinned(void** memory, size_t bytes) {
  const Lock lock(state().mutex);
  *memory = add_region(MemoryKind::kPinned, current, bytes, true);
  return 0;
}

int create_stream(void** stream) {
  const Lock lock(state().mutex);
  ++state().counters.allocations;
  *stream = reinterpret_cast<void*>(state().next_stream += 16);
  state().streams[*stream];
  return 0;
}
int wait_stream(void* stream) {
  const Lock lock(state().mutex);
  ++state().counters.synchronizations;
  while (!state().streams[stream].empty())
    if (!run_one()) return fail("a stream waits for ever");
  return state().failed ? fail("an illegal memory access was encountered") : 0;
}
int destroy_stream(void* stream) {
  const Lock lock(state().mutex);
  state().streams.erase(stream);
  return 0;
}
/// Some work goes on whenever somebody looks.
int look() {
  State& all = state();
  if (all.random() % kQueriesPerWork == 0) run_one();
  return all.failed ? fail("an illegal memory access was encountered") : 0;
}
int query_stream(void* stream, bool* done) {
  const Lock lock(state().mutex);
  const int failed = look();
  *done = failed != 0 || state().streams[stream].empty();
  return failed;
}
int create_event(void** event) {
  const Lock lock(state().mutex);
  ++state().counters.allocations;
  *event = new Event;
  return 0;
}
int destroy_event(void* event) {
  const Lock lock(state().mutex);
  delete static_cast<Event*>(event);
  return 0;
}
int record_event(void* event, void* stream) {
  const Lock lock(state().mutex);
  auto* const mark = static_cast<Event*>(event);
  const uint64_t number = ++mark->recorded;
  put(stream, [mark, number] { mark->done = std::max(mark->done, number); });
  return 0;
}
int query_event(void* event, bool* done) {
  const Lock lock(state().mutex);
  const int failed = look();
  const auto* const mark = static_cast<Event*>(event);
  *done = failed != 0 || mark->done >= mark->recorded;
  return failed;
}
int stream_waits_for_event(void* stream, void* event) {
  const Lock lock(state().mutex);
  auto* const mark = static_cast<Event*>(event);
  const uint64_t number = mark->recorded;
  put(stream, [] {}, [mark, number] { return mark->done >= number; });
  return 0;
}
int stream_waits_for(void* stream, void* other) {
  const Lock lock(state().mutex);
  auto mark = std::make_shared<bool>(false);
  put(other, [mark] { *mark = true; });
  put(stream, [] {}, [mark] { return *mark; });
  return 0;
}
int is_capturing(void* stream, bool* capturing) {
  const Lock lock(state().mutex);
  *capturing = state().capturing[stream];
  return 0;
}

int copy(void* dst, const void* src, size_t bytes, void* stream) {
  const Lock lock(state().mutex);
  ++state().counters.copies;
  put(stream, [=] { std::memcpy(behind(dst), behind(src), bytes); });
  return 0;
}
int clear(void* dst, size_t bytes, void* stream) {
  const Lock lock(state().mutex);
  put(stream, [=] { std::memset(behind(dst), 0, bytes); });
  return 0;
}

const Codec& lev() { return *find_codec("lev"); }

int encode_bound(uint8_t type, uint64_t count, uint64_t* plain, uint64_t* coded) {
  const EncodedSizes bound = lev().bound(static_cast<DataType>(type), count);
  *plain = bound.plain + kMorePlain;
  *coded = bound.coded + kMoreCoded;
  return 0;
}
int create_codec(uint64_t most_count, gpu::CodecContext** context) {
  const Lock lock(state().mutex);
  ++state().counters.allocations;
  *context = new gpu::CodecContext{most_count};
  return 0;
}
void destroy_codec(gpu::CodecContext* context) { delete context; }

bool is_aligned(const void* address) { return reinterpret_cast<uintptr_t>(address) % 16 == 0; }

void run_encode(const gpu::EncodeRequest& request) {
  const auto type = static_cast<DataType>(request.type);
  const EncodedSizes bound = lev().bound(type, request.count);
  const CodecLevel level = request.levels == 1 ? CodecLevel::kFastest : CodecLevel::kBalanced;
  const std::byte* const src = reach(request.src);
  FrameHeader header;
  header.call = request.call;
  Status status = lev().encode_plain(type, level, src, request.count, {reach(request.plain), bound.plain},
                                     state().scratch, header);
  if (status.ok() && header.codec != kCodecRaw)
    status = lev().encode_coded(type, level, src, request.count, {reach(request.coded), bound.coded}, state().scratch,
                                header);
  if (!status.ok()) std::abort();
  if (header.codec == kCodecRaw) header = raw_frame_header(type, request.count);
  std::memcpy(reach(request.header), &header, sizeof header);
}

int encode(gpu::CodecContext* context, const gpu::EncodeRequest* request, void* stream) {
  const Lock lock(state().mutex);
  if (request->count > context->most_count) return fail("a frame is too long for the codec");
  if (!is_aligned(request->plain) || !is_aligned(request->coded)) return fail("the parts of a frame are not aligned");
  if (request->levels < 1 || request->levels > 2) return fail("one or two levels");
  ++state().counters.encodings;
  state().counters.last_blocks = request->blocks;
  put(stream, [copy = *request] { run_encode(copy); });
  return 0;
}

void run_decode(const gpu::DecodeRequest& request, const FrameHeader& header) {
  const auto type = static_cast<DataType>(request.type);
  const size_t bytes = request.count * datatype_size(type);
  std::vector<std::byte> decoded(bytes);
  Status status = error(UZIP_ERR_CORRUPT, "sizes");
  if (header.count == request.count && header.plain_bytes <= request.plain_room && header.coded_bytes <= request.coded_room)
    status = find_codec(header.codec)->decode(header, {reach(request.plain), header.plain_bytes},
                                              {reach(request.coded), header.coded_bytes}, decoded, state().scratch);
  if (!status.ok()) {
    const uint64_t fault = uint64_t{3} << 32;
    std::memcpy(reach(request.fault), &fault, sizeof fault);
    return;
  }
  if (!request.operand) {
    std::memcpy(reach(request.dst), decoded.data(), bytes);
    return;
  }
  const void* const operands[] = {reach(request.operand), decoded.data()};
  uzip::reduce(static_cast<ReduceOp>(request.op), type, reach(request.dst), operands, request.count, request.average_over);
}

int decode(gpu::CodecContext*, const gpu::DecodeRequest* request, void* stream) {
  const Lock lock(state().mutex);
  if (!is_aligned(request->plain) || !is_aligned(request->coded)) return fail("the parts of a frame are not aligned");
  if (request->header_on_device) return fail("not used by the library, so not done here");
  ++state().counters.decodings;
  put(stream, [copy = *request, header = *request->header] { run_decode(copy, header); });
  return 0;
}

int reduce(gpu::CodecContext*, uint8_t op, uint8_t type, void* dst, const void* const* sources, size_t source_count,
           uint64_t count, uint64_t average_over, void* stream) {
  const Lock lock(state().mutex);
  if (source_count < 1 || source_count > 64) return fail("1 to 64 arrays can be reduced");
  ++state().counters.reductions;
  std::vector<const void*> all(sources, sources + source_count);
  put(stream, [=]() mutable {
    for (const void*& source : all) source = reach(source);
    uzip::reduce(static_cast<ReduceOp>(op), static_cast<DataType>(type), reach(dst), all, count, average_over);
  });
  return 0;
}

int checksum(gpu::CodecContext*, const void* data, uint64_t bytes, uint32_t* crc, void* stream) {
  const Lock lock(state().mutex);
  put(stream, [=] {
    const uint32_t value = crc32c({reach(data), bytes});
    std::memcpy(reach(crc), &value, sizeof value);
  });
  return 0;
}

constexpr gpu::PluginApi kApi = {
    gpu::kPluginAbi,        "fake",         last_error,      device_count,   describe_device,  describe_pair,
    describe_pointer,
    current_device,         set_device,     allocate_device, release_region, allocate_pinned,  release_region,
    create_stream,          destroy_stream, wait_stream,     query_stream,   stream_waits_for, is_capturing,
    create_event,           destroy_event,  record_event,    query_event,    stream_waits_for_event,
    copy,                   clear,          encode_bound,    create_codec,   destroy_codec,    encode,
    decode,                 reduce,         checksum,        peers,
};

}  // namespace

const gpu::PluginApi* plugin() { return &kApi; }

void reset(uint64_t seed) {
  const Lock lock(state().mutex);
  state().random.seed(seed);
  state().counters = {};
  state().capturing.clear();
  state().operations_left = -1;
  state().failed = false;
  current = 0;
}

std::byte* allocate(MemoryKind kind, int device, size_t bytes) {
  const Lock lock(state().mutex);
  return add_region(kind, device, bytes, false);
}
void release(std::byte* memory) { (void)release_region(memory); }

std::byte* behind(const void* address) {
  const Lock lock(state().mutex);
  const auto* const region = find(address);
  auto* const bytes = static_cast<std::byte*>(const_cast<void*>(address));
  return region ? region->second.shadow + (bytes - region->first) : bytes;
}

void launch(void* stream, std::function<void()> work, bool blocked) {
  const Lock lock(state().mutex);
  if (blocked) state().blocked[stream] = true;
  std::function<bool()> ready;
  if (blocked) ready = [stream] { return !state().blocked[stream]; };
  put(stream, std::move(work), std::move(ready));
}
void allow(void* stream) {
  const Lock lock(state().mutex);
  state().blocked[stream] = false;
}
void set_capturing(void* stream, bool capturing) {
  const Lock lock(state().mutex);
  state().capturing[stream] = capturing;
}
void fail_after(int operations) {
  const Lock lock(state().mutex);
  state().operations_left = operations;
}
void recover() {
  const Lock lock(state().mutex);
  state().operations_left = -1;
  while (run_one()) {
  }
  state().failed = false;
}
Counters counters() {
  const Lock lock(state().mutex);
  return state().counters;
}

}  // namespace uzip::fake_gpu
