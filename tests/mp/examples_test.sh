#!/bin/sh
# The examples run and find their results right.
. "$top_srcdir/tests/mp/perf_support.sh"

"$top_builddir/examples/allreduce_oob" >"$work/out" 2>"$work/err"
report "allreduce_oob"
for ranks in 1 3; do
  for example in group halo nonblocking persistent; do
    by_hand $ranks "$top_builddir/examples/$example"
    report "$example, $ranks ranks"
  done
done
by_hand 2 "$top_builddir/examples/halo"
report "halo, 2 ranks"
for ranks in 3 4; do
  by_hand $ranks "$top_builddir/examples/split"
  report "split, $ranks ranks"
done

compress_file() {
  "$top_builddir/examples/compress_file" "$@" >"$work/out" 2>"$work/err" </dev/null
}
# refuses TEXT ARGUMENT...: exit status 1 and one line with the text.
refuses() {
  text=$1
  shift
  compress_file "$@"
  [ $? -eq 1 ] && [ "$(wc -l <"$work/err")" -eq 1 ] && grep -qF "$text" "$work/err"
}
bytes_of() { wc -c <"$1" | tr -d ' '; }

tensor=$top_srcdir/tests/data/tensors/weight_bf16.bin
cat "$tensor" "$tensor" "$tensor" "$tensor" "$tensor" >"$work/values"
compress_file encode bf16 "$work/values" "$work/frames" &&
  [ "$(bytes_of "$work/frames")" -lt "$(($(bytes_of "$work/values") * 3 / 4))" ]
report "compress_file makes a file smaller"
compress_file decode "$work/frames" "$work/copy" && cmp "$work/values" "$work/copy" >>"$work/out" 2>&1
report "compress_file gives the same file back"
: >"$work/empty"
compress_file encode fp64 "$work/empty" "$work/none" && compress_file decode "$work/none" "$work/copy" &&
  [ ! -s "$work/copy" ]
report "compress_file, an empty file"
whole=$(bytes_of "$work/frames")
for missing in 1 64 65 $((whole / 2)) $((whole - 10)) "$whole"; do
  head -c $((whole - missing)) "$work/frames" >"$work/cut"
  refuses "$work/cut: " decode "$work/cut" "$work/copy"
  report "compress_file finds that $missing bytes are missing"
done
{ head -c 5000 "$work/frames"; printf 'damage'; tail -c +5007 "$work/frames"; } >"$work/damaged"
refuses "$work/damaged: " decode "$work/damaged" "$work/copy"
report "compress_file finds damage"
cat "$work/frames" "$work/frames" >"$work/twice"
refuses "something follows" decode "$work/twice" "$work/copy"
report "compress_file finds what does not belong to the file"
head -c 1001 "$tensor" >"$work/odd"
refuses "incomplete" encode bf16 "$work/odd" "$work/copy"
report "compress_file wants whole elements"
refuses "No such file" encode bf16 "$work/nowhere" "$work/copy"
report "compress_file says that a file is not there"
compress_file encode bf17 "$tensor" "$work/copy"
[ $? -eq 2 ] && grep -q '^usage: ' "$work/err"
report "compress_file, an unknown type"

if [ -n "$MPIRUN" ]; then
  with_mpi 3 "$top_builddir/examples/allreduce_mpi" && grep -q 'all sums are right' "$work/out"
  report "allreduce_mpi"
else
  echo "skip allreduce_mpi: configured without MPI"
fi
exit $status
