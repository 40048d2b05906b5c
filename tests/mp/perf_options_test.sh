#!/bin/sh
# Options that are not allowed: exit status 2 and one line that names the option, nothing else.
. "$top_srcdir/tests/mp/perf_support.sh"

# refused PROGRAM WORD ARGUMENT...: WORD must be in the line.
refused() {
  program=$1 word=$2
  shift 2
  "$top_builddir/perf/$program" "$@" >"$work/out" 2>"$work/err" </dev/null
  [ $? -eq 2 ] && [ ! -s "$work/out" ] && [ "$(wc -l < "$work/err")" -eq 1 ] &&
    grep -q "^$program: .*$word" "$work/err"
  report "$program $*"
}

refused allreduce '--minbytes' -b x
refused allreduce '--minbytes' -b ''
refused allreduce '--minbytes' -b -5
refused allreduce '--minbytes' -b 1Q
refused allreduce '--maxbytes' -e 99999999999T
refused allreduce '--minbytes' -b 64M
refused allreduce '--stepbytes' -i 0
refused allreduce '--stepfactor' -f 1
refused allreduce '--stepfactor' -b 0 -e 8 -f 2
refused allreduce '--iters' -n 0
refused allreduce '--iters' -n 1e3
refused allreduce '--warmup_iters' -w -1
refused allreduce '--op' -o xor
refused allgather '--op' -o sum
refused allreduce '--datatype' -d float128
refused allreduce '--average' -a 4
refused allreduce '--split' --split 2
refused allreduce '--data' --data normal
refused allreduce '--data' --data file:
refused allreduce '--versus' --versus nvshmem
refused allreduce '--versus nccl: .*--mem cuda' --versus raw,nccl
refused allreduce '--versus nccl: .*--mem cuda' --versus nccl --mem pinned
refused allreduce '--mem: only raw and nccl' --versus nccl,ucc --mem cuda
refused allreduce '--versus' --versus raw,
refused allreduce '--ci' --ci 0%
refused allreduce '--ci' --ci 51%
refused allreduce '--ci' --ci two
refused allreduce '--plot' --plot picture.png
refused allreduce '--plot' --plot tty --csv
refused allreduce '--progress' --progress yes
refused allreduce '--launch' --launch slurm
refused allreduce '--selftest-corrupt' --selftest-corrupt all
refused allreduce '--nonsense' --nonsense
refused allreduce '-q' -q
refused allreduce 'needs a value' -b
refused allreduce 'unexpected' 32M
refused sendrecv '--algo' --algo ring

# These are found only after the start.
refused_when_running() {
  by_hand 2 "$top_builddir/perf/allreduce" -b 4K -e 4K "$@"
  [ $? -eq 2 ] && [ "$(wc -l < "$work/err")" -eq 1 ] && grep -q '^allreduce: ' "$work/err"
  report "2 ranks: allreduce $*"
}
refused_when_running --codec nonsense && [ ! -s "$work/out" ]
report "nothing is printed before options are tried"
refused_when_running --algo nonsense
refused_when_running --data file:/nonexistent
refused_when_running -J /nonexistent/results.json
refused_when_running --versus mpi
export NCCL=/nonexistent/libnccl.so.2
refused_when_running --versus nccl --mem cuda
grep -q -e '--versus nccl: /nonexistent/libnccl.so.2: .* set LD_LIBRARY_PATH' "$work/err"
report "--versus nccl says which library is missing"
unset NCCL
refused_when_running --plot /nonexistent/picture.svg
if ! command -v gnuplot >/dev/null 2>&1; then
  grep -q 'gnuplot-nox' "$work/err"
  report "--plot says where gnuplot comes from"
fi

"$top_builddir/perf/allreduce" -h >"$work/out" 2>"$work/err" && [ ! -s "$work/err" ] &&
  grep -q 'stepfactor' "$work/out"
report "allreduce -h"
exit $status
