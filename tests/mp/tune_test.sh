#!/bin/sh
# uzip_tune: a table is made, used, explained, extended; bad ones are ignored; the bits stay the same.
. "$top_srcdir/tests/mp/perf_support.sh"
XDG_CACHE_HOME=$work/cache
export XDG_CACHE_HOME
tune="$top_builddir/tools/uzip_tune"
quick="--types bf16 --maxbytes 16K --seconds 4"

by_hand 2 "$tune" $quick --calls allreduce,allgather,alltoall,gather,scatter,send --model "$work/model" && grep -q 'link shared: latency' "$work/out" &&
  table=$(ls "$work"/cache/uzipcoll/tuning-*) && grep -q '^choice shared allreduce bf16 2 ' "$table" &&
  grep -q '^choice shared send bf16 2 ' "$table" && grep -q '^codec lev:fastest bf16 ' "$table" &&
  for call in alltoall gather scatter; do grep -q "^choice shared $call bf16 2 " "$table" || break; done &&
  grep -q '^choice shared scatter ' "$table" && head -n 1 "$table" | grep -qx 'uzipcoll-tuning 1'
report "a table in the user's cache"
choices=$(grep -c '^choice' "$table")

"$top_builddir/tools/uzip_sched" simulate -m "$work/model" allreduce -p 2,4 --type bf16 --codec lev >"$work/out" 2>"$work/err" &&
  grep -q 'model shared_memory' "$work/out" && grep -q 'allreduce:two_shot' "$work/out"
report "a cost model that uzip_sched predicts times with"

UZIP_UCX_TLS=tcp,self by_hand 3 "$tune" $quick --calls allreduce && grep -q '^choice network allreduce bf16 3 ' "$table" &&
  [ "$(grep -c '^choice' "$table")" -gt "$choices" ] && grep -q '^link shared' "$table" && grep -q '^link network' "$table"
report "another link and number of ranks are added"

by_hand 2 "$tune" $quick --calls send --data "zeros,file:$top_srcdir/tests/data/tensors/weight_bf16.bin" --file "$work/data" &&
  grep -q '^choice shared send bf16 2 ' "$work/data"
report "the data can be named"

"$tune" --explain allreduce bf16 256 --ranks 3 >"$work/out" 2>"$work/err" &&
  grep -q '^\* ' "$work/out" && grep -q 'link network: latency .*(measured)' "$work/out" && grep -q 'chosen: .*measured' "$work/out"
report "a choice is explained with measured times"
"$tune" --explain reduce_scatter fp64 16M --ranks 5 >"$work/out" 2>"$work/err" &&
  grep -q 'no such call was measured' "$work/out" && grep -q '^\* ' "$work/out"
report "what was not measured is predicted"

# traced ENVIRONMENT...: what two ranks say of a call of 256 bytes, the first that is measured.
traced() {
  by_hand 2 env UZIP_COLL_TRACE=1 "$@" "$top_builddir/perf/allreduce" -d bf16 -b 256 -e 256 -n 1 -w 0 && all_right
}
traced A=B && grep -q 'allreduce 128 bf16, 2 ranks: .*(measured)' "$work/err"
report "the table is used"
traced UZIP_TUNING_FILE=none && grep -q 'allreduce 128 bf16, 2 ranks: ' "$work/err" && ! grep -q 'measured' "$work/err"
report "and can be switched off"

# calibrated ENVIRONMENT...: a large call of three ranks over tcp; what they found.
calibrated() {
  by_hand 3 env UZIP_UCX_TLS=tcp,self UZIP_COLL_TRACE=1 "$@" "$top_builddir/perf/allreduce" -d bf16 -b 1M -e 1M -n 1 -w 0 \
    && all_right && sed -n 's/.* calibrated: \(.*\) measured in .* ms\(.*\)/\1\2/p' "$work/err" | sort | uniq -c
}
calibrated UZIP_TUNING_FILE=none >"$work/found" && grep -q '^ *3 .* GB/s a rank .*; bf16 ' "$work/found" &&
  [ "$(wc -l <"$work/found")" -eq 1 ] && grep -q 'allreduce 524288 bf16, 3 ranks: .*as calibrated' "$work/err"
report "without a table the ranks calibrate, and come to the same"
calibrated UZIP_TUNING_FILE=none UZIP_CALIBRATE=no >"$work/found" && [ ! -s "$work/found" ]
report "calibration can be switched off"
calibrated A=B >"$work/found" && [ ! -s "$work/found" ] &&
  grep -q 'allreduce 524288 bf16, 3 ranks: .*\(measured)\|that uzip_tune measured\)' "$work/err"
report "a table that knows the network makes it unnecessary"

echo 'uzipcoll-tuning 99' > "$work/other"
traced UZIP_TUNING_FILE="$work/other" && [ "$(grep -c 'the tuning table is ignored' "$work/err")" -eq 2 ] &&
  ! grep -q '(measured)' "$work/err"
report "a table of another version is ignored, in one line a rank"
sed 's/^choice shared allreduce .*$/& and more/' "$table" > "$work/other"
traced UZIP_TUNING_FILE="$work/other" && grep -q 'is ignored: .*line [0-9]*: 13 words' "$work/err"
report "a damaged table is ignored, and the line is named"

sed 's/^link shared latency [^ ]*/link shared latency 1e-3/' "$table" > "$work/other"
traced sh -c 'test "$UZIP_RANK" = 0 || UZIP_TUNING_FILE='"$work/other"'; export UZIP_TUNING_FILE; exec "$@"' - &&
  [ "$(grep -c 'rank 1 has another tuning table' "$work/err")" -eq 1 ] && ! grep -q '(measured)' "$work/err"
report "ranks with different tables use none"

# refused WORD ARGUMENT...
refused() {
  word=$1
  shift
  "$tune" "$@" >"$work/out" 2>"$work/err"
  [ $? -eq 2 ] && [ ! -s "$work/out" ] && [ "$(wc -l < "$work/err")" -eq 1 ] && grep -q -e "$word" "$work/err"
  report "refused: $*"
}
refused 'nobody to talk to'
refused '--calls' --calls alltonone
refused '--types' --types bf17
refused '--data' --data gauss,normal
refused '--maxbytes' --maxbytes 0
refused '--seconds' --seconds never
refused '--launch' --launch slurm
refused 'unexpected' allreduce
refused '--per-host' --explain allreduce bf16 1M --ranks 4 --per-host 5
refused 'a call, a type and a size' --explain allreduce bf16
refused '--explain' --explain allreduce bf16 much
refused 'unknown option' --nonsense
echo nonsense > "$work/nonsense"
refused 'remove it' --explain allreduce bf16 1M --file "$work/nonsense"
exit $status
