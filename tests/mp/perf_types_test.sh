#!/bin/sh
# Every type with every operation: the measuring programs find nothing wrong.
. "$top_srcdir/tests/mp/perf_support.sh"

once="-n 1 -w 0 -d all --codec lev"
for program in allreduce reduce_scatter; do
  by_hand 3 "$top_builddir/perf/$program" -b 30000 -e 30000 $once -o all && all_right
  report "$program of all types with all operations"
done
for program in allgather sendrecv halo; do
  by_hand 3 "$top_builddir/perf/$program" -b 30000 -e 30000 $once && all_right
  report "$program of all types"
done

head -c 1001 /dev/urandom > "$work/data"
for data in gauss uniform zeros random "file:$work/data"; do
  by_hand 2 "$top_builddir/perf/allreduce" -b 100K -e 100K -n 1 -w 0 -d half --codec lev \
    --data "$data" && all_right
  report "data ${data%%:*}"
done
exit $status
