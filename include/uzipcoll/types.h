/* libuzipcoll: status codes, element types and operations, which all of the C API uses. Include <uzipcoll/uzipcoll.h>,
 * whose conventions apply here, too; this header is for what needs no more than these.
 */
#ifndef UZIPCOLL_TYPES_H
#define UZIPCOLL_TYPES_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define UZIP_VERSION_MAJOR 0
#define UZIP_VERSION_MINOR 1
#define UZIP_VERSION_PATCH 0

#if defined(__GNUC__)
#define UZIP_API __attribute__((visibility("default")))
#else
#define UZIP_API
#endif

/* ---- Status ------------------------------------------------------------------------------------ */

typedef enum uzip_status {
  UZIP_OK = 0,
  UZIP_ERR_INVALID = 1,     /* an argument is not allowed: null, unknown, overflowing, overlapping, freed */
  UZIP_ERR_UNSUPPORTED = 2, /* legal, but not available here (algorithm for this number of ranks, ...) */
  UZIP_ERR_NO_MEMORY = 3,   /* an allocation failed */
  UZIP_ERR_TIMEOUT = 4,     /* a deadline passed; the message names the ranks that are missing */
  UZIP_ERR_PEER = 5,        /* a peer died or cannot be reached; the message names it */
  UZIP_ERR_MISMATCH = 6,    /* ranks called with different counts, types, operations or settings */
  UZIP_ERR_CORRUPT = 7,     /* a frame from the wire or a file is damaged or truncated */
  UZIP_ERR_TRANSPORT = 8,   /* the network layer reported an error */
  UZIP_ERR_CONFIG = 9,      /* a UZIP_* setting has a value that is not allowed */
  UZIP_ERR_INTERNAL = 10    /* a fault in the library; please report it */
} uzip_status_t;

/* Name and meaning of a status, "UZIP_ERR_PEER: a peer died or cannot be reached". Never NULL; static. */
UZIP_API const char *uzip_status_string(uzip_status_t status);

/* What the last failing call of this thread had to say: what failed, the value, what is allowed, what to
 * do next. "" if nothing failed yet. Owned by the library, valid until the thread's next failing call. */
UZIP_API const char *uzip_last_error(void);

/* For libraries that are built on this one: makes `message` what uzip_last_error() tells in this thread, and returns
 * `status`. The message is copied; NULL is "". */
UZIP_API uzip_status_t uzip_report_error(uzip_status_t status, const char *message);

/* Version of the library that is running (not of this header): "0.1.0". Static. */
UZIP_API const char *uzip_version_string(void);
/* The same as numbers; each pointer may be NULL. */
UZIP_API void uzip_version(int *major, int *minor, int *patch);

/* ---- Types and operations ---------------------------------------------------------------------- */

typedef enum uzip_dtype {
  UZIP_INT8 = 0,
  UZIP_UINT8 = 1,
  UZIP_INT32 = 2,
  UZIP_UINT32 = 3,
  UZIP_INT64 = 4,
  UZIP_UINT64 = 5,
  UZIP_FP16 = 6,        /* IEEE 754 binary16 */
  UZIP_BF16 = 7,        /* bfloat16: the upper half of a binary32 */
  UZIP_FP32 = 8,        /* IEEE 754 binary32 */
  UZIP_FP64 = 9,        /* IEEE 754 binary64 */
  UZIP_FP8_E4M3FN = 10, /* OCP 8-bit float, 4 exponent bits, no infinity */
  UZIP_FP8_E5M2 = 11    /* OCP 8-bit float, 5 exponent bits */
} uzip_dtype_t;

/* Size of one element in bytes, 0 for an unknown type. */
UZIP_API size_t uzip_dtype_size(uzip_dtype_t dtype);
/* Name, "bf16"; "unknown" for an unknown type. Static. */
UZIP_API const char *uzip_dtype_name(uzip_dtype_t dtype);

/* 8- and 16-bit floats accumulate in binary32 and are rounded to nearest even (overflow: infinity, or NaN
 * for fp8_e4m3fn). Integer sums and products wrap. MIN and MAX return NaN if any operand is NaN and order
 * -0 below +0. AVG is the sum divided by the number of ranks (integers: truncated towards zero). */
typedef enum uzip_op {
  UZIP_SUM = 0,
  UZIP_PROD = 1,
  UZIP_MIN = 2,
  UZIP_MAX = 3,
  UZIP_AVG = 4,
  UZIP_OP_USER = 0x40000000 /* from here on: user-defined, made by uzip_op_create() */
} uzip_op_t;

/* Name, "sum"; "user-defined"; "unknown" for an unknown operation. Static. */
UZIP_API const char *uzip_op_name(uzip_op_t op);

#ifdef __cplusplus
}
#endif
#endif /* UZIPCOLL_TYPES_H */
