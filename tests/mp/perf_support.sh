# For the tests of the measuring programs and the examples; to be sourced.
# Uses top_srcdir, top_builddir and MPIRUN (empty without MPI) from the test's environment.

work=$(mktemp -d "${TMPDIR:-/tmp}/uzipcoll-perf.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
status=0

# The user's own settings must not change what the tests see.
for name in $(env | sed -n 's/^\(UZIP_[A-Z0-9_]*\)=.*/\1/p'); do unset "$name"; done

# report NAME: one case, good if the last command succeeded. Shows what the programs wrote if not.
report() {
  if [ $? -eq 0 ]; then
    echo "ok - $1"
  else
    cat "$work/out" "$work/err" 2>/dev/null
    echo "not ok - $1"
    status=1
  fi
}

# with_mpi RANKS PROGRAM [ARGUMENT...]: output of all ranks in $work/out and $work/err.
with_mpi() {
  "$top_srcdir/tools/run-ranks" "$@" >"$work/out" 2>"$work/err" </dev/null
}

# by_hand RANKS PROGRAM [ARGUMENT...]: the same without MPI. Fails if any rank fails.
by_hand() {
  ranks=$1
  shift
  rm -rf "$work/rendezvous" "$work"/out.* "$work"/err.*
  pids=
  rank=0
  while [ "$rank" -lt "$ranks" ]; do
    UZIP_RANK=$rank UZIP_SIZE=$ranks UZIP_RENDEZVOUS=$work/rendezvous "$@" \
      >"$work/out.$rank" 2>"$work/err.$rank" </dev/null &
    pids="$pids $!"
    rank=$((rank + 1))
  done
  worst=0
  for pid in $pids; do
    wait "$pid" || worst=$?
  done
  cat "$work"/out.* > "$work/out"
  cat "$work"/err.* > "$work/err"
  return $worst
}

# all_right: the program found nothing wrong, and measured something.
all_right() {
  grep -q '^# Out of bounds values : 0 OK$' "$work/out" && grep -q '^ *[0-9]' "$work/out"
}
