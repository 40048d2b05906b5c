#!/bin/sh
# The simulator against SimGrid: the same schedules over MPI in SMPI, on the same machine as each of the
# two understands it. Runs where SimGrid is installed (Debian: libsimgrid-dev).
set -u
sched=$top_builddir/tools/uzip_sched
if ! command -v smpicxx >/dev/null 2>&1 || ! command -v smpirun >/dev/null 2>&1; then
  echo "skip simgrid: SimGrid's smpicxx and smpirun are not installed (Debian: libsimgrid-dev)"
  exit 77
fi
work=$(mktemp -d "${TMPDIR:-/tmp}/uzipcoll-simgrid.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
status=0
ranks=16
# Rabenseifner's differs by four latencies in any size, the others by less than one.
tolerance=0.04

smpicxx -std=c++20 -O1 -I"$top_srcdir/src" -I"$top_srcdir/include" \
  "$top_srcdir/tests/algos/schedule_over_mpi.cpp" \
  "$top_builddir/.libs/libuzip_algos.a" "$top_builddir/.libs/libuzip_base.a" \
  -o "$work/schedule_over_mpi" >"$work/log" 2>&1 || {
  cat "$work/log"
  echo "skip simgrid: smpicxx cannot compile the program here"
  exit 77
}

# A switch that is never full, 10 Gb/s, 10 us; cores that reduce 20 GB/s.
cat >"$work/platform.xml" <<END
<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="c" prefix="n" suffix="" radical="0-$((ranks - 1))" speed="1Gf" bw="1.25GBps" lat="5us"
    sharing_policy="SPLITDUPLEX"/>
</platform>
END
i=0
while [ $i -lt $ranks ]; do echo "n$i"; i=$((i + 1)); done >"$work/hosts"
cat >"$work/simgrid.model" <<END
uzip-cost-model 1
name simgrid
ranks_per_host 1
copy 1e18
reduce 20e9
link local
  latency 10e-6
  bandwidth 1.25e9
link remote
  latency 10e-6
  bandwidth 1.25e9
END

compare() {
  algorithm=$1 count=$2
  smpirun -np $ranks -hostfile "$work/hosts" -platform "$work/platform.xml" \
    --cfg=smpi/simulate-computation:no --cfg=network/model:CM02 --cfg=network/crosstraffic:no \
    --cfg=network/loopback-lat:0 --log=root.thres:error \
    "$work/schedule_over_mpi" "$algorithm" "$count" 20e9 >"$work/out" 2>"$work/err"
  theirs=$(awk '$1 == "time_us" && $3 == "right" { print $2 }' "$work/out")
  ours=$("$sched" simulate "$algorithm" -m "$work/simgrid.model" --one-round -p $ranks -n "$count" |
    awk '!/^#/ { print $5 }')
  name="$algorithm of $count elements: SimGrid $theirs us, ours $ours us"
  if awk "BEGIN { d = ${ours:-0} / ${theirs:-1} - 1; exit !(d < $tolerance && d > -$tolerance) }"; then
    echo "ok - $name"
  else
    cat "$work/out" "$work/err"
    echo "not ok - $name"
    status=1
  fi
}

"$sched" simulate allreduce -p $ranks -n 1M -m "$work/simgrid.model" | awk '!/^#/ { print $4 }' >"$work/algorithms"
while read -r algorithm; do
  case $algorithm in *:hierarchical) continue ;; esac  # its shape depends on hosts, which MPI's program knows nothing of
  compare "$algorithm" 1048576
  compare "$algorithm" 160000
done <"$work/algorithms"
exit $status
