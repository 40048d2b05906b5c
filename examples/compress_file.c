/* Files of numbers, compressed without loss and back: frames of a fixed number of elements, one after
 * another, and an empty one at the end, so that a file that was cut off is found.
 *
 * Build: cc compress_file.c -o compress_file $(pkg-config --cflags --libs uzipcoll)
 * Run:   ./compress_file encode fp32 weights.bin weights.uzip
 *        ./compress_file decode weights.uzip copy.bin
 *
 * Exit status: 0 done, 1 an error (OUT is not to be used), 2 wrong arguments.
 */
#include <uzipcoll/uzipcoll.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FRAME_ELEMENTS = 65536, LARGEST_ELEMENT = 8 };

static const char *in_name, *out_name;
static FILE *in, *out;
static char elements[FRAME_ELEMENTS * LARGEST_ELEMENT];
static char *frames; /* has room for one of any type */
static size_t capacity;

static void fail(const char *name, const char *what)
{
  fprintf(stderr, "compress_file: %s: %s\n", name, what);
  exit(1);
}

static void check(uzip_status_t status)
{
  if (status != UZIP_OK)
    fail(in_name, uzip_last_error());
}

static size_t read_some(void *data, size_t bytes)
{
  size_t found = fread(data, 1, bytes, in);
  if (ferror(in))
    fail(in_name, strerror(errno));
  return found;
}

static void write_all(const void *data, size_t bytes)
{
  if (fwrite(data, 1, bytes, out) != bytes)
    fail(out_name, strerror(errno));
}

static void encode_file(uzip_dtype_t type)
{
  size_t bytes, frame_bytes, size = uzip_dtype_size(type);
  do {
    bytes = read_some(elements, FRAME_ELEMENTS * size);
    if (bytes % size != 0)
      fail(in_name, "the last element is incomplete; is this the right type?");
    check(uzip_encode(elements, bytes / size, type, "lev:smallest", frames, capacity, &frame_bytes));
    write_all(frames, frame_bytes);
  } while (bytes > 0); /* so the last frame is empty */
}

/* The header of a frame tells how much belongs to it. */
static void decode_file(void)
{
  size_t filled;
  uzip_frame_info_t info;
  info.struct_size = sizeof(info);
  do {
    filled = read_some(frames, UZIP_FRAME_HEADER_BYTES);
    check(uzip_frame_info(frames, filled, &info));
    if (info.count > FRAME_ELEMENTS || info.frame_bytes > capacity)
      fail(in_name, "a frame is too large; this program did not write it");
    filled += read_some(frames + filled, (size_t)info.frame_bytes - filled);
    check(uzip_decode(frames, filled, elements, (size_t)info.count, info.dtype));
    write_all(elements, (size_t)info.count * uzip_dtype_size(info.dtype));
  } while (info.count > 0);
  if (read_some(frames, 1) > 0)
    fail(in_name, "something follows the last frame");
}

/* The type of this name; what is behind the last type if there is none. */
static uzip_dtype_t find_type(const char *name)
{
  int type = 0;
  while (uzip_dtype_size((uzip_dtype_t)type) > 0 && strcmp(uzip_dtype_name((uzip_dtype_t)type), name) != 0)
    type++;
  return (uzip_dtype_t)type;
}

int main(int argc, char **argv)
{
  int encoding = argc == 5 && strcmp(argv[1], "encode") == 0;
  int decoding = argc == 4 && strcmp(argv[1], "decode") == 0;
  uzip_dtype_t type = encoding ? find_type(argv[2]) : UZIP_UINT8;
  if (!(encoding || decoding) || uzip_dtype_size(type) == 0) {
    fprintf(stderr, "usage: compress_file encode TYPE IN OUT\n"
                    "       compress_file decode IN OUT\n"
                    "TYPE is bf16, fp16, fp32, fp64, fp8_e4m3fn, fp8_e5m2, int8, uint8, ...\n");
    return 2;
  }
  in_name = argv[argc - 2];
  out_name = argv[argc - 1];
  capacity = uzip_encode_bound(FRAME_ELEMENTS, UZIP_FP64);
  frames = malloc(capacity);
  if (frames == NULL || (in = fopen(in_name, "rb")) == NULL)
    fail(in_name, strerror(errno));
  if ((out = fopen(out_name, "wb")) == NULL)
    fail(out_name, strerror(errno));
  if (encoding)
    encode_file(type);
  else
    decode_file();
  if (fclose(out) != 0)
    fail(out_name, strerror(errno));
  return 0;
}
