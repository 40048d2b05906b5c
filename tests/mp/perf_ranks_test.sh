#!/bin/sh
# The measuring programs find nothing wrong with 1, 2 and 3 ranks, with and without a codec, started by
# MPI, by hand and alone.
. "$top_srcdir/tests/mp/perf_support.sh"

sizes="-b 16 -e 64K -f 64 -n 2 -w 1"

for program in alltoall bcast reduce; do
  by_hand 3 "$top_builddir/perf/$program" $sizes --codec lev && all_right
  report "$program, 3 ranks by hand"
done
for program in allreduce reduce_scatter allgather sendrecv halo; do
  for ranks in 1 2 3; do
    for codec in raw lev; do
      if [ -n "$MPIRUN" ]; then
        with_mpi $ranks "$top_builddir/perf/$program" $sizes -d bf16 --codec $codec && all_right
        report "$program, $ranks ranks under MPI, codec $codec"
      else
        echo "skip $program, $ranks ranks under MPI, codec $codec: configured without MPI"
      fi
    done
  done
  by_hand 2 "$top_builddir/perf/$program" $sizes --codec lev && all_right
  report "$program, 2 ranks by hand"
  "$top_builddir/perf/$program" $sizes --codec lev >"$work/out" 2>"$work/err" && all_right
  report "$program, alone"
done

# Sizes that leave a rank without elements, and sizes that no number of ranks divides.
by_hand 3 "$top_builddir/perf/allreduce" -b 0 -e 24 -i 4 -n 1 -w 0 --codec lev && all_right
report "fewer elements than ranks"
by_hand 3 "$top_builddir/perf/allreduce" -b 99991 -e 99991 -n 1 -w 0 -d int8 && all_right
report "a prime number of elements"

# Ranks that a launcher bound to one core each don't share it.
if taskset -c 0,1 true 2>/dev/null; then
  by_hand 2 sh -c 'exec taskset -c "$UZIP_RANK" "$@"' - "$top_builddir/perf/allreduce" $sizes && all_right &&
    ! grep -q 'share' "$work/out"
  report "bound ranks have their cores together"
  by_hand 2 taskset -c 1 "$top_builddir/perf/allreduce" $sizes && grep -q '2 ranks share 1 core of' "$work/out"
  report "ranks bound to the same core share it"
else
  echo "skip bound ranks: not two cores here"
fi
exit $status
