#!/bin/sh
# --versus nccl, with a GPU and an NCCL that only write down what they are asked for (fake_nccl.cpp).
. "$top_srcdir/tests/mp/perf_support.sh"

fake=$top_builddir/tests/mp/fake_nccl.so
[ -e "$fake" ] || { echo "no $fake"; exit 1; }
mkdir "$work/driver" && cp "$fake" "$work/driver/libcuda.so.1"
export LD_LIBRARY_PATH="$work/driver${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" UZIP_GPU_PLUGIN=off
export NCCL="$work/driver/libcuda.so.1" FAKE_NCCL_LOG="$work/calls"

# versus RANKS PROGRAM ARGUMENT...: two calls that are measured.
versus() {
  ranks=$1 program=$2
  shift 2
  by_hand "$ranks" "$top_builddir/perf/$program" --mem cuda --versus nccl,raw -b 6K -e 6K -n 2 -w 0 "$@" && all_right
}

# asks RANK CALL...: all that this rank asked NCCL for, twice, in this order.
asks() {
  rank=$1
  shift
  for turn in 1 2; do
    for call; do echo "$call"; done
  done > "$work/expected"
  echo ncclCommDestroy >> "$work/expected"
  diff "$work/expected" "$work/calls.$rank" >> "$work/err"
}

# Types and reductions as nccl.h numbers them: bfloat16 9, float 7, f8e4m3 10, int8 0; sum 0, avg 4.
versus 3 allreduce -d bfloat16 && asks 0 'ncclAllReduce 3072 9 0' && asks 2 'ncclAllReduce 3072 9 0' &&
  grep -q '^# *versus ncclAllReduce of NCCL 2.28.3$' "$work/out"
report "allreduce"
versus 3 allreduce -d float -o avg && asks 1 'ncclAllReduce 1536 7 4'
report "allreduce, average"
versus 2 reduce_scatter -d bfloat16 && asks 1 'ncclReduceScatter 1536 9 0'
report "reduce_scatter"
versus 2 allgather -d bfloat16 && asks 1 'ncclAllGather 1536 9 -1'
report "allgather"
versus 2 bcast -d bfloat16 && asks 0 'ncclBroadcast 3072 9 0' && asks 1 'ncclBroadcast 3072 9 0'
report "bcast"
versus 2 reduce -d bfloat16 && asks 0 'ncclReduce 3072 9 0' && asks 1 'ncclReduce 3072 9 0'
report "reduce"
versus 3 alltoall -d bfloat16 &&
  asks 1 'ncclSend 1024 9 0 grouped' 'ncclRecv 1024 9 0 grouped' 'ncclSend 1024 9 1 grouped' \
    'ncclRecv 1024 9 1 grouped' 'ncclSend 1024 9 2 grouped' 'ncclRecv 1024 9 2 grouped'
report "alltoall"
versus 3 sendrecv -d bfloat16 && asks 0 'ncclSend 3072 9 1 grouped' 'ncclRecv 3072 9 2 grouped'
report "sendrecv"
versus 3 halo -d bfloat16 &&
  asks 0 'ncclSend 1536 9 2 grouped' 'ncclSend 1536 9 1 grouped' 'ncclRecv 1536 9 1 grouped' \
    'ncclRecv 1536 9 2 grouped'
report "halo"

versus 2 allreduce -d f8e4m3 && asks 0 'ncclAllReduce 6144 10 0'
report "8-bit floats"
export FAKE_NCCL_VERSION=21805
versus 2 allreduce -d f8e4m3 && asks 0 'ncclAllReduce 6144 0 0' &&
  grep -q 'of NCCL 2.18.5, ncclInt8 for f8e4m3$' "$work/out"
report "8-bit floats of an older NCCL"
unset FAKE_NCCL_VERSION

by_hand 2 env FAKE_NCCL_LOG=/nonexistent/calls "$top_builddir/perf/allreduce" --mem cuda --versus nccl -b 4K -e 4K
[ $? -eq 1 ] && grep -q 'versus nccl: ncclCommInitRank: invalid usage' "$work/err"
report "errors of NCCL are told"

by_hand 2 env FAKE_NCCL_HANGS=1 UZIP_TIMEOUT_LIMIT=5 "$top_builddir/perf/allreduce" --mem cuda --versus nccl -b 4K -e 4K
[ $? -eq 1 ] && grep -q 'versus nccl: ncclAllReduce has not ended after 5 seconds' "$work/err"
report "a call that never ends is given up"

NCCL=$(ldconfig -p 2>/dev/null | sed -n 's|.* \(/.*/libm\.so\.6\)$|\1|p' | head -1)
if [ -n "$NCCL" ]; then
  by_hand 2 "$top_builddir/perf/allreduce" --mem cuda --versus nccl -b 4K -e 4K
  [ $? -eq 2 ] && grep -q 'libm.so.6 has no function ncclGetErrorString' "$work/err"
  report "a library that is not NCCL"
fi
exit $status
