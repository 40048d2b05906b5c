#!/bin/bash
# A rank is killed, leaves, or stops: all others get a status naming it in time, over shared memory and over tcp.
set -u
program=$top_builddir/tests/mp/failures
ranks=3
failed=0
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
number=0

run_case() {  # HOW TRANSPORT
  number=$((number + 1))
  local pids=() bad=0
  for ((r = 0; r < ranks; r++)); do
    UZIP_RANK=$r UZIP_SIZE=$ranks UZIP_RENDEZVOUS=$directory/$number UZIP_TIMEOUT_LIMIT=3 UZIP_UCX_TLS=$2 \
      timeout -s KILL 40 "$program" "$1" &
    pids+=($!)
  done
  for ((r = 0; r < ranks - 1; r++)); do wait "${pids[r]}" || bad=1; done
  pkill -KILL -P "${pids[ranks - 1]}" 2>/dev/null
  kill -KILL "${pids[ranks - 1]}" 2>/dev/null
  wait "${pids[ranks - 1]}" 2>/dev/null
  if ((bad)); then
    echo "not ok - a rank is $1 ($2)"
    failed=1
  else
    echo "ok - a rank is $1 ($2)"
  fi
}

for transport in all tcp,self; do
  for how in killed exited stopped; do
    run_case $how $transport
  done
done
exit $failed
