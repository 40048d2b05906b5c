#!/bin/sh
# The examples run and find their results right.
. "$top_srcdir/tests/mp/perf_support.sh"

"$top_builddir/examples/allreduce_oob" >"$work/out" 2>"$work/err"
report "allreduce_oob"
for ranks in 1 3; do
  by_hand $ranks "$top_builddir/examples/nonblocking"
  report "nonblocking, $ranks ranks"
done
for ranks in 3 4; do
  by_hand $ranks "$top_builddir/examples/split"
  report "split, $ranks ranks"
done
if [ -n "$MPIRUN" ]; then
  with_mpi 3 "$top_builddir/examples/allreduce_mpi" && grep -q 'all sums are right' "$work/out"
  report "allreduce_mpi"
else
  echo "skip allreduce_mpi: configured without MPI"
fi
exit $status
