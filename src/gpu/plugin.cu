// The plugin's table: memory, streams, and the codec and reduction kernels. The same source makes
// libuzipcoll_cuda.so and libuzipcoll_hip.so.
#include "gpu/plugin.hpp"

#include "codec/lev_layout.hpp"
#include "gpu/checksums.hpp"
#include "gpu/cooperative.hpp"
#include "gpu/peer_group.hpp"
#include "gpu/plugin_error.hpp"
#include "gpu/runtime.hpp"
#include "gpu/type_kernels.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <new>

namespace uzip::gpu {

struct CodecContext {
  ChecksumMemory* checksums = nullptr;
  EncodeState* state = nullptr;
  uint64_t* words = nullptr;
  uint64_t most_tiles = 0;
  int processors = 0;
  // Thread blocks that fill the device, by type; 0: not asked yet.
  int encode_blocks[16] = {};
  int decode_blocks[16] = {};
};

namespace {
thread_local char error_message[256] = "";
}

int fail(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(error_message, sizeof error_message, format, arguments);
  va_end(arguments);
  return 1;
}

int check(Error error, const char* what) {
  if (error == kSuccess) return 0;
  static_cast<void>(take_error());
  return fail("GPU: %s: %s", what, error_text(error));
}

namespace {

const char* last_error() { return error_message; }

/// While it lives, this thread may do what could disturb the capture of a graph in another thread: it is about streams,
/// events and memory of the library's own only, which no capture has anything to do with.
class BesideCaptures {
 public:
  BesideCaptures() { exchange(); }
  ~BesideCaptures() { exchange(); }
  BesideCaptures(const BesideCaptures&) = delete;
  BesideCaptures& operator=(const BesideCaptures&) = delete;

 private:
  void exchange() { static_cast<void>(UZIP_GPU_RUNTIME(ThreadExchangeStreamCaptureMode)(&mode_)); }

#if defined(__HIP__)
  hipStreamCaptureMode mode_ = hipStreamCaptureModeRelaxed;
#else
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
#endif
};

// ---- Devices and memory ----------------------------------------------------------------------------

int device_count(int* count) {
  *count = 0;
  const Error error = UZIP_GPU_RUNTIME(GetDeviceCount)(count);
  if (error == UZIP_GPU_RUNTIME(ErrorNoDevice)) {
    static_cast<void>(take_error());
    *count = 0;
    return 0;
  }
  return check(error, "no device can be used");
}

int describe_device(int device, DeviceInfo* info) {
#if defined(__HIP__)
  hipDeviceProp_t properties;
#else
  cudaDeviceProp properties;
#endif
  UZIP_CHECK(UZIP_GPU_RUNTIME(GetDeviceProperties)(&properties, device), "properties of a device");
  *info = DeviceInfo{};
  std::strncpy(info->name, properties.name, sizeof info->name - 1);
  UZIP_CHECK(UZIP_GPU_RUNTIME(DeviceGetPCIBusId)(info->bus, sizeof info->bus, device), "place of a device");
  info->compute_major = properties.major;
  info->compute_minor = properties.minor;
  info->processors = properties.multiProcessorCount;
  info->memory_bytes = properties.totalGlobalMem;
  return 0;
}

int describe_pair(int device, int peer, PairInfo* info) {
  int access = 0, atomics = 0;
  UZIP_CHECK(UZIP_GPU_RUNTIME(DeviceCanAccessPeer)(&access, device, peer), "access to another device");
#if defined(__HIP__)
  constexpr auto kAtomics = hipDevP2PAttrNativeAtomicSupported;
#else
  constexpr auto kAtomics = cudaDevP2PAttrNativeAtomicSupported;
#endif
  if (access != 0)
    UZIP_CHECK(UZIP_GPU_RUNTIME(DeviceGetP2PAttribute)(&atomics, kAtomics, device, peer), "link to another device");
  *info = {access != 0, atomics != 0};
  return 0;
}

int describe_pointer(const void* pointer, PointerInfo* info) {
  *info = {MemoryKind::kHost, -1};
#if defined(__HIP__)
  hipPointerAttribute_t attributes;
  if (hipPointerGetAttributes(&attributes, pointer) != kSuccess) {
    static_cast<void>(take_error());
    return 0;
  }
  if (attributes.isManaged)
    *info = {MemoryKind::kManaged, attributes.device};
  else if (attributes.memoryType == hipMemoryTypeDevice)
    *info = {MemoryKind::kDevice, attributes.device};
  else if (attributes.memoryType == hipMemoryTypeHost)
    info->kind = MemoryKind::kPinned;
#else
  cudaPointerAttributes attributes;
  if (cudaPointerGetAttributes(&attributes, pointer) != kSuccess) {
    static_cast<void>(take_error());
    return 0;
  }
  if (attributes.type == cudaMemoryTypeManaged)
    *info = {MemoryKind::kManaged, attributes.device};
  else if (attributes.type == cudaMemoryTypeDevice)
    *info = {MemoryKind::kDevice, attributes.device};
  else if (attributes.type == cudaMemoryTypeHost)
    info->kind = MemoryKind::kPinned;
#endif
  return 0;
}

int current_device(int* device) {
  return check(UZIP_GPU_RUNTIME(GetDevice)(device), "the current device");
}
int set_device(int device) { return check(UZIP_GPU_RUNTIME(SetDevice)(device), "set device"); }

int allocate(void** memory, size_t bytes) {
  const BesideCaptures beside;
  return check(UZIP_GPU_RUNTIME(Malloc)(memory, bytes), "memory of the device");
}
int release(void* memory) {
  const BesideCaptures beside;
  return check(UZIP_GPU_RUNTIME(Free)(memory), "giving back memory of the device");
}
int allocate_pinned(void** memory, size_t bytes) {
  const BesideCaptures beside;
#if defined(__HIP__)
  return check(hipHostMalloc(memory, bytes, hipHostMallocPortable), "pinned memory");
#else
  return check(cudaHostAlloc(memory, bytes, cudaHostAllocPortable), "pinned memory");
#endif
}
int release_pinned(void* memory) {
  const BesideCaptures beside;
#if defined(__HIP__)
  return check(hipHostFree(memory), "giving back pinned memory");
#else
  return check(cudaFreeHost(memory), "giving back pinned memory");
#endif
}

// ---- Streams ---------------------------------------------------------------------------------------

int create_stream(void** stream) {
  const BesideCaptures beside;
  return check(UZIP_GPU_RUNTIME(StreamCreateWithFlags)(reinterpret_cast<Stream*>(stream),
                                                       UZIP_GPU_RUNTIME(StreamNonBlocking)),
               "a stream");
}
int destroy_stream(void* stream) {
  const BesideCaptures beside;
  return check(UZIP_GPU_RUNTIME(StreamDestroy)(static_cast<Stream>(stream)), "end of a stream");
}
int wait_stream(void* stream) {
  const BesideCaptures beside;
  return check(UZIP_GPU_RUNTIME(StreamSynchronize)(static_cast<Stream>(stream)),
               "work on the device");
}
/// What a query says. The runtime remembers "not ready" as the thread's last error, which a launch would then find.
int read_query(Error error, bool* done) {
  *done = error != UZIP_GPU_RUNTIME(ErrorNotReady);
  if (*done) return check(error, "work on the device");
  static_cast<void>(take_error());
  return 0;
}
int query_stream(void* stream, bool* done) {
  const BesideCaptures beside;
  return read_query(UZIP_GPU_RUNTIME(StreamQuery)(static_cast<Stream>(stream)), done);
}
int stream_waits_for(void* stream, void* other) {
  Event event;
  UZIP_CHECK(
      UZIP_GPU_RUNTIME(EventCreateWithFlags)(&event, UZIP_GPU_RUNTIME(EventDisableTiming)),
      "an event");
  Error error = UZIP_GPU_RUNTIME(EventRecord)(event, static_cast<Stream>(other));
  if (error == kSuccess)
    error = UZIP_GPU_RUNTIME(StreamWaitEvent)(static_cast<Stream>(stream), event, 0);
  // The runtime keeps it until it has happened.
  const Error destroyed = UZIP_GPU_RUNTIME(EventDestroy)(event);
  return check(error != kSuccess ? error : destroyed, "order of two streams");
}
int is_capturing(void* stream, bool* capturing) {
#if defined(__HIP__)
  hipStreamCaptureStatus status = hipStreamCaptureStatusNone;
  const Error error = hipStreamIsCapturing(static_cast<Stream>(stream), &status);
  *capturing = status != hipStreamCaptureStatusNone;
#else
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const Error error = cudaStreamIsCapturing(static_cast<Stream>(stream), &status);
  *capturing = status != cudaStreamCaptureStatusNone;
#endif
  // The default stream can't be used while another stream is captured that would have to wait for it.
  if (error == UZIP_GPU_RUNTIME(ErrorStreamCaptureImplicit)) {
    static_cast<void>(take_error());
    *capturing = true;
    return 0;
  }
  return check(error, "state of a stream");
}
int create_event(void** event) {
  const BesideCaptures beside;
  return check(UZIP_GPU_RUNTIME(EventCreateWithFlags)(reinterpret_cast<Event*>(event),
                                                      UZIP_GPU_RUNTIME(EventDisableTiming)),
               "an event");
}
int destroy_event(void* event) {
  const BesideCaptures beside;
  return check(UZIP_GPU_RUNTIME(EventDestroy)(static_cast<Event>(event)), "end of an event");
}
int record_event(void* event, void* stream) {
  return check(UZIP_GPU_RUNTIME(EventRecord)(static_cast<Event>(event), static_cast<Stream>(stream)),
               "recording an event");
}
int query_event(void* event, bool* done) {
  const BesideCaptures beside;
  return read_query(UZIP_GPU_RUNTIME(EventQuery)(static_cast<Event>(event)), done);
}
int stream_waits_for_event(void* stream, void* event) {
  return check(UZIP_GPU_RUNTIME(StreamWaitEvent)(static_cast<Stream>(stream), static_cast<Event>(event), 0),
               "order of two streams");
}
int copy(void* dst, const void* src, size_t bytes, void* stream) {
  return check(UZIP_GPU_RUNTIME(MemcpyAsync)(dst, src, bytes, UZIP_GPU_RUNTIME(MemcpyDefault),
                                             static_cast<Stream>(stream)),
               "a copy");
}
int clear(void* dst, size_t bytes, void* stream) {
  return check(UZIP_GPU_RUNTIME(MemsetAsync)(dst, 0, bytes, static_cast<Stream>(stream)),
               "clearing memory");
}

// ---- Codec -----------------------------------------------------------------------------------------

const TypeKernels* kernels_of(uint8_t type) {
  switch (type) {
    case UZIP_FP16: return &kFp16Kernels;
    case UZIP_BF16: return &kBf16Kernels;
    case UZIP_FP32: return &kFp32Kernels;
    case UZIP_FP64: return &kFp64Kernels;
    case UZIP_FP8_E4M3FN: return &kFp8E4m3fnKernels;
    case UZIP_FP8_E5M2: return &kFp8E5m2Kernels;
    default: return nullptr;
  }
}

uint64_t tiles_of(uint64_t count, uint64_t tile) { return (count + tile - 1) / tile; }

int encode_bound(uint8_t type, uint64_t count, uint64_t* plain, uint64_t* coded) {
  const TypeKernels* const kernels = kernels_of(type);
  if (kernels == nullptr || count == 0) return fail("GPU: type %u can't be encoded", type);
  const uint64_t tiles = tiles_of(count, kernels->tile_values);
  if (tiles > kMostBlocks)
    return fail("GPU: a frame of %llu elements; %llu are allowed, use several frames",
                static_cast<unsigned long long>(count),
                static_cast<unsigned long long>(kMostBlocks * kernels->tile_values));
  *plain = tiles * kernels->plain_stride;
  // Fields of at most 8 bits, and what describes a block.
  *coded = lev_first_block(tiles) + tiles * (kernels->tile_values + 128);
  return 0;
}

int initialize(CodecContext* context, uint64_t most_count) {
  const BesideCaptures beside;
  int device = 0;
  UZIP_CHECK(UZIP_GPU_RUNTIME(GetDevice)(&device), "the current device");
  DeviceInfo info;
  if (describe_device(device, &info) != 0) return 1;
  context->processors = info.processors;
  context->most_tiles = tiles_of(most_count, tile_values(2));  // of 8-bit types there are fewer
  const size_t bytes = sizeof(EncodeState) + context->most_tiles * sizeof(uint64_t);
  UZIP_CHECK(UZIP_GPU_RUNTIME(Malloc)(reinterpret_cast<void**>(&context->state), bytes),
             "memory of the codec");
  context->words = reinterpret_cast<uint64_t*>(context->state + 1);
  UZIP_CHECK(UZIP_GPU_RUNTIME(Memset)(context->state, 0, bytes), "memory of the codec");
  EncodeState state{};
  state.word_count = static_cast<uint32_t>(context->most_tiles);
  UZIP_CHECK(UZIP_GPU_RUNTIME(Memcpy)(context->state, &state, sizeof state,
                                      UZIP_GPU_RUNTIME(MemcpyHostToDevice)),
             "memory of the codec");
  return create_checksums(&context->checksums);
}

void destroy_codec(CodecContext* context) {
  if (context == nullptr) return;
  static_cast<void>(UZIP_GPU_RUNTIME(Free)(context->state));
  destroy_checksums(context->checksums);
  delete context;
}

int create_codec(uint64_t most_count, CodecContext** context) {
  *context = new (std::nothrow) CodecContext;
  if (*context == nullptr) return fail("GPU: no memory");
  if (initialize(*context, most_count) == 0) return 0;
  destroy_codec(*context);
  *context = nullptr;
  return 1;
}

/// Thread blocks for `tiles` tiles: `wanted`, or what fills the device; no more than there is work.
int choose_blocks(const CodecContext& context, Error (*occupancy)(int*), int* filling,
                  unsigned wanted, uint64_t tiles, unsigned* blocks) {
  if (*filling == 0) {
    int per_processor = 0;
    UZIP_CHECK(occupancy(&per_processor), "occupancy of a kernel");
    *filling = (per_processor > 0 ? per_processor : 1) * context.processors;
  }
  const auto fit = static_cast<unsigned>(*filling);
  const uint64_t most = wanted > 0 && wanted < fit ? wanted : fit;
  *blocks = static_cast<unsigned>(tiles < most ? tiles : most);
  return 0;
}

bool is_aligned_to_16(const void* address) { return reinterpret_cast<uintptr_t>(address) % 16 == 0; }

int encode(CodecContext* context, const EncodeRequest* request, void* stream) {
  const TypeKernels* const kernels = kernels_of(request->type);
  if (kernels == nullptr) return fail("GPU: type %u can't be encoded", request->type);
  const uint64_t tiles = tiles_of(request->count, kernels->tile_values);
  if (tiles == 0 || tiles > context->most_tiles || tiles > kMostBlocks)
    return fail("GPU: %llu elements to encode; the codec was made for 1 to %llu",
                static_cast<unsigned long long>(request->count),
                static_cast<unsigned long long>(context->most_tiles * kernels->tile_values));
  if (!is_aligned_to_16(request->plain) || !is_aligned_to_16(request->coded))
    return fail("GPU: the parts of a frame are not aligned to 16 bytes");
  if (request->levels < 1 || request->levels > 2)
    return fail("GPU: %d levels; 1 or 2 are allowed", request->levels);
  EncodeArgs args{};
  args.src = static_cast<const uint8_t*>(request->src);
  args.plain = static_cast<uint8_t*>(request->plain);
  args.coded = static_cast<uint8_t*>(request->coded);
  args.header = request->header;
  args.state = context->state;
  args.words = context->words;
  args.begin.type = request->type;
  args.begin.count = request->count;
  args.begin.call = request->call;
  args.levels = static_cast<uint32_t>(request->levels);
  args.fixed_plain = request->fixed_plain ? 1 : 0;
  args.may_be_raw = request->may_be_raw ? 1 : 0;
  unsigned blocks = 0;
  if (choose_blocks(*context, kernels->encode_occupancy, &context->encode_blocks[request->type],
                    request->blocks, tiles, &blocks) != 0)
    return 1;
  // One more for the sums; see the kernel.
  if (tiles > kDirectTiles && blocks < 2) blocks = 2;
  return check(kernels->encode(args, blocks, static_cast<Stream>(stream)), "start of the encoder");
}

int decode(CodecContext* context, const DecodeRequest* request, void* stream) {
  const TypeKernels* const kernels = kernels_of(request->type);
  if (kernels == nullptr) return fail("GPU: type %u can't be decoded", request->type);
  if (!is_aligned_to_16(request->coded) || !is_aligned_to_16(request->coded_rest))
    return fail("GPU: the coded part of a frame is not aligned to 16 bytes");
  const bool raw = !request->header_on_device && request->header->codec == kCodecRaw;
  if (!raw && !is_aligned_to_16(request->plain))
    return fail("GPU: the plain part of a frame is not aligned to 16 bytes");
  DecodeArgs args{};
  if (request->header_on_device)
    args.device_header = request->header;
  else
    args.header = *request->header;
  args.plain = static_cast<const uint8_t*>(request->plain);
  args.coded = static_cast<const uint8_t*>(request->coded);
  args.plain_room = request->plain_room;
  args.coded_room = request->coded_room;
  args.coded_rest = static_cast<const uint8_t*>(request->coded_rest);
  args.count = request->count;
  args.type = request->type;
  args.op = request->op;
  args.dst = static_cast<uint8_t*>(request->dst);
  args.operand = static_cast<const uint8_t*>(request->operand);
  args.average_over = request->average_over;
  args.fault = request->fault;
  const uint64_t tiles = tiles_of(request->count, kernels->tile_values);
  if (tiles == 0) return 0;
  unsigned blocks = 0;
  if (choose_blocks(*context, kernels->decode_occupancy, &context->decode_blocks[request->type],
                    request->blocks, tiles, &blocks) != 0)
    return 1;
  return check(kernels->decode(args, blocks, static_cast<Stream>(stream)), "start of the decoder");
}

int reduce(CodecContext* context, uint8_t op, uint8_t type, void* dst, const void* const* sources,
           size_t source_count, uint64_t count, uint64_t average_over, void* stream) {
  if (source_count < 1 || source_count > kMostSources)
    return fail("GPU: reduction of %zu arrays; 1 to %u are allowed", source_count, kMostSources);
  if (type > UZIP_FP8_E5M2 || op > UZIP_AVG)
    return fail("GPU: reduction %u of type %u does not exist", op, type);
  if (count == 0) return 0;
  if (source_count == 1 && (op != UZIP_AVG || average_over == 0))
    return dst == sources[0]
               ? 0
               : copy(dst, sources[0], count * datatype_size(static_cast<DataType>(type)), stream);
  ReduceArgs args{};
  for (size_t s = 0; s < source_count; ++s)
    args.sources[s] = static_cast<const uint8_t*>(sources[s]);
  args.source_count = static_cast<uint32_t>(source_count);
  args.type = type;
  args.op = op;
  args.count = count;
  args.average_over = average_over;
  args.dst = static_cast<uint8_t*>(dst);
  const uint64_t work = (count + kThreads * 8 - 1) / (kThreads * 8);
  const uint64_t most = static_cast<uint64_t>(context->processors) * 8;
  return check(launch_reduce(args, static_cast<unsigned>(work < most ? work : most),
                             static_cast<Stream>(stream)),
               "start of a reduction");
}

int checksum(CodecContext* context, const void* data, uint64_t bytes, uint32_t* crc, void* stream) {
  return start_checksum(context->checksums, data, bytes, crc, static_cast<Stream>(stream));
}

constexpr PluginApi kApi = {
    kPluginAbi,
#if defined(__HIP__)
    "hip",
#else
    "cuda",
#endif
    last_error,     device_count,    describe_device, describe_pair, describe_pointer, current_device,
    set_device,     allocate,        release,         allocate_pinned,  release_pinned,
    create_stream,  destroy_stream,  wait_stream,     query_stream,     stream_waits_for,
    is_capturing,   create_event,    destroy_event,   record_event,     query_event,
    stream_waits_for_event,
    copy,           clear,           encode_bound,    create_codec,     destroy_codec,
    encode,         decode,          reduce,          checksum,      peer_api,
};

}  // namespace
}  // namespace uzip::gpu

extern "C" __attribute__((visibility("default"))) const uzip::gpu::PluginApi* uzip_gpu_plugin() {
  return &uzip::gpu::kApi;
}
