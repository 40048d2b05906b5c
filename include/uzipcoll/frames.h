/* libuzipcoll: frames in memory. Part of <uzipcoll/uzipcoll.h>, whose conventions apply here, too. */
#ifndef UZIPCOLL_FRAMES_H
#define UZIPCOLL_FRAMES_H

#include <stddef.h>
#include <stdint.h>

#include <uzipcoll/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The codec without communication, for checkpoints and files. A frame describes itself and can be decoded by any
 * process; docs/FORMAT.md specifies its bytes. It carries a CRC32C of the original elements, which is compared when
 * it is decoded. These functions may be called from several threads at the same time.
 *
 * Elements may be in memory of a GPU, which then codes them, after what is on its default stream; the frame in that of
 * the host or, if the elements are, of a GPU. The call returns when it is done, or at UZIP_TIMEOUT_LIMIT. */

/* Most bytes that a frame of `count` elements can take; 0 if there is no such type or the count is too large. */
UZIP_API size_t uzip_encode_bound(size_t count, uzip_dtype_t dtype);

/* Encodes `count` elements of `src` into one frame at `dst`, whose `capacity` must be at least
 * uzip_encode_bound() bytes. `codec` is as in uzip_options_t, for instance "lev:smallest"; NULL or "auto" is "lev".
 * Elements that do not shrink are stored as they are. *frame_bytes receives the size of the frame. */
UZIP_API uzip_status_t uzip_encode(const void *src, size_t count, uzip_dtype_t dtype, const char *codec,
                                   void *dst, size_t capacity, size_t *frame_bytes);

/* Decodes a frame, of which `frame_bytes` bytes (or more, of what follows it) are readable, into exactly `count`
 * elements. UZIP_ERR_MISMATCH: it holds another count or type. UZIP_ERR_CORRUPT: it is damaged or cut off; no byte
 * outside the arguments is read or written whatever the frame holds. */
UZIP_API uzip_status_t uzip_decode(const void *frame, size_t frame_bytes, void *dst, size_t count,
                                   uzip_dtype_t dtype);

/* dst[i] = dst[i] op decoded[i], i < count, with the same bits as decoding and reducing; `op` is not UZIP_AVG.
 * Errors as uzip_decode(); after UZIP_ERR_CORRUPT the elements of `dst` are unspecified. */
UZIP_API uzip_status_t uzip_decode_reduce(const void *frame, size_t frame_bytes, void *dst, size_t count,
                                          uzip_dtype_t dtype, uzip_op_t op);

/* Bytes of a frame's header, with which it begins. */
#define UZIP_FRAME_HEADER_BYTES 64

/* What a frame's header says. Set struct_size before. */
typedef struct uzip_frame_info {
  size_t struct_size;   /* sizeof(uzip_frame_info_t) */
  uzip_dtype_t dtype;
  uint64_t count;       /* elements */
  uint64_t frame_bytes; /* of the whole frame, header included */
  uint64_t plain_bytes; /* of the part that is stored as it is */
  uint64_t coded_bytes; /* of the coded part */
  const char *codec;    /* name, "raw" or "lev"; "unknown" if this library does not have it; static */
  int has_checksum;
  uint32_t checksum;    /* CRC32C of the original elements, if has_checksum */
} uzip_frame_info_t;

/* Reads and checks the header of a frame, of which `frame_bytes` bytes are readable: its first
 * UZIP_FRAME_HEADER_BYTES are enough. So a reader of files learns how much to read: if info->frame_bytes is more
 * than `frame_bytes`, the rest is not there yet. UZIP_ERR_CORRUPT: it is no header of a frame, or less than one. */
UZIP_API uzip_status_t uzip_frame_info(const void *frame, size_t frame_bytes, uzip_frame_info_t *info);

#ifdef __cplusplus
}
#endif
#endif /* UZIPCOLL_FRAMES_H */
