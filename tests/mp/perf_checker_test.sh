#!/bin/sh
# The check of the measuring programs can fail: falsified results are found, and the exit status says so.
. "$top_srcdir/tests/mp/perf_support.sh"

# noticed: exit status 1, and the verdict names a number of wrong elements.
noticed() {
  [ $1 -eq 1 ] && grep -q '^# Out of bounds values : [1-9][0-9]* FAILED$' "$work/out"
}

for program in allreduce reduce_scatter allgather alltoall bcast reduce sendrecv halo; do
  for what in exact bits guard; do
    by_hand 2 "$top_builddir/perf/$program" -b 4K -e 4K -n 1 -w 0 --selftest-corrupt $what
    noticed $?
    report "$program notices a falsified result ($what)"
  done
done
for program in allreduce allgather; do
  by_hand 3 "$top_builddir/perf/$program" -b 4K -e 4K -n 1 -w 0 --selftest-corrupt ranks
  noticed $?
  report "$program notices that one rank has other bits"
done

# One element falsified, once out of place and once in place: the number is exact.
by_hand 2 "$top_builddir/perf/allreduce" -b 4K -e 4K -n 1 -w 0 --selftest-corrupt exact
grep -q '^# Out of bounds values : 2 FAILED$' "$work/out"
report "wrong elements are counted one by one"

by_hand 2 "$top_builddir/perf/allreduce" -b 4K -e 4K -n 1 -w 0 --selftest-corrupt exact -J "$work/r.json"
python3 -c 'import json, sys; r = json.load(open(sys.argv[1]))
assert r["out_of_bounds"] == {"count": 2, "okay": False}
assert r["results"][0]["out_of_place"]["nwrong"] == 1' "$work/r.json"
report "JSON says so, too"
exit $status
