#!/bin/sh
# tests/mp/gpu_calls.cpp where there is a GPU, with the GPUs open to one another and without; each of its cases is
# reported by rank 0.
[ -e /dev/nvidiactl ] && [ -e "$top_builddir"/libuzipcoll_cuda.so ] || { echo "no GPU, or no plugin"; exit 77; }
export UZIP_GPU_PLUGIN="$top_builddir"/libuzipcoll_cuda.so
UZIP_GPU_PEERS=yes "$top_srcdir"/tools/run-ranks 2 "$top_builddir"/tests/mp/gpu_calls gpu_peers || exit $?
"$top_srcdir"/tools/run-ranks 3 "$top_builddir"/tests/mp/gpu_calls
