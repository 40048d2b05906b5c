#!/bin/sh
# What uzip_info prints and how it ends.
set -u
info=$top_builddir/tools/uzip_info
work=$(mktemp -d "${TMPDIR:-/tmp}/uzipcoll-info.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
status=0

# Settings of the person who runs the tests must not decide.
for name in $(env | sed -n 's/^\(UZIP_[A-Za-z0-9_]*\)=.*/\1/p'); do unset "$name"; done

# expect NAME EXIT STDOUT_HAS STDERR_HAS COMMAND...: "" means that nothing is written there.
expect() {
  name=$1 wanted=$2 out=$3 err=$4
  shift 4
  "$@" >"$work/out" 2>"$work/err"
  code=$?
  if [ "$code" -eq "$wanted" ] && has "$work/out" "$out" && has "$work/err" "$err"; then
    echo "ok - $name"
  else
    echo "exit status $code; standard output and error:"
    cat "$work/out" "$work/err"
    echo "not ok - $name"
    status=1
  fi
}
# has FILE TEXT: some line has the text; the file is empty if the text is "".
has() {
  if [ -z "$2" ]; then [ ! -s "$1" ]; else grep -qF -e "$2" "$1"; fi
}

version=$(sed -n 's/^#define UZIP_VERSION_\(MAJOR\|MINOR\|PATCH\) //p' \
  "$top_srcdir/include/uzipcoll/uzipcoll.h" | paste -s -d . -)
expect "-v tells the version of the header" 0 "libuzipcoll $version" "" "$info" -v
expect "-b tells the compiler" 0 "compiler " "" "$info" -b
expect "-b tells the CPU targets" 0 "CPU targets  scalar" "" "$info" --build
expect "-a lists algorithms" 0 "two_shot" "" "$info" -a
expect "-a predicts times" 0 "predicted for 8 hosts with one rank each, 100 Gb/s: " "" "$info" -a
expect "-C lists codecs" 0 "raw" "" "$info" -C
expect "-C measures each type" 0 "      fp8_e5m2 " "" "$info" -C
if awk '$1 ~ /^(bf16|fp(16|32|64|8_.*))$/ { lines++; if (!($2 > 0 && $2 <= 1) || NF < 4) bad++
    for (i = 3; i <= NF; i++) if (!($i > 0)) bad++ } END { exit lines != 6 || bad }' "$work/out"; then
  echo "ok - -C has a ratio and speeds for each float"
else
  cat "$work/out"
  echo "not ok - -C has a ratio and speeds for each float"
  status=1
fi
expect "-c shows defaults" 0 "  UZIP_TIMEOUT          60" "" "$info" -c
expect "-c marks what was changed" 0 "* UZIP_TIMEOUT          90" "" \
  env UZIP_TIMEOUT=90 "$info" -c
expect "-c --names shows bare names" 0 "UZIP_CHUNK" "" "$info" -c --names
expect "names do not need a sound environment" 0 "UZIP_CHUNK" "" \
  env UZIP_CHUNK=nonsense "$info" -c --names
expect "no option shows everything" 0 "UZIP_CODEC" "" "$info"
expect "options add up" 0 "two_shot" "" "$info" -va
expect "-t tells where this process is" 0 "this process on socket" "" "$info" -t
expect "-t tells who leads" 0 "leader       of a host: the lowest rank of the NUMA node" "" "$info" -t
expect "-t tells of a pretended topology" 0 "pretended: so many ranks in a row: 2,3n" "" env UZIP_TOPOLOGY=2,3n "$info" -t
expect "-t refuses one that is none" 1 "" "UZIP_TOPOLOGY='2,n3' is not allowed; allowed is auto, none, or how many" \
  env UZIP_TOPOLOGY=2,n3 "$info" -t
expect "-t tells of cores and GPUs" 0 "GPU" "" "$info" -t
expect "-t does not look where it must not" 0 "UZIP_GPU_PLUGIN is off" "" env UZIP_GPU_PLUGIN=off "$info" --topology
expect "-t names a plugin that is none" 1 "cores " "no_plugin.so" env UZIP_GPU_PLUGIN=./no_plugin.so "$info" -t
expect "-h helps" 0 "usage: uzip_info" "" "$info" -h
expect "a bad value is an error" 1 "" "UZIP_CHUNK='nonsense' is not allowed" \
  env UZIP_CHUNK=nonsense "$info" -c
expect "an unknown name is a warning" 0 "UZIP_CHUNK" "the nearest is UZIP_CHUNK" \
  env UZIP_CHUNKS=1M "$info" -c
expect "an unknown option is an error with usage" 2 "" "usage: uzip_info" "$info" -x
expect "an unknown long option is an error with usage" 2 "" "usage: uzip_info" "$info" --frobnicate
expect "an argument is an error with usage" 2 "" "unexpected argument 'more'" "$info" -v more
expect "--names without -c is an error" 2 "" "--names goes with -c" "$info" --names

# error_line NAME STDERR_HAS COMMAND...: exit status 1, nothing on standard output, and one line that has the text.
error_line() {
  name=$1 err=$2
  shift 2
  expect "$name" 1 "" "$err" "$@"
  if [ "$(wc -l <"$work/err")" -ne 1 ]; then
    cat "$work/err"
    echo "not ok - $name, in one line"
    status=1
  fi
}
# true_that NAME TEST...
true_that() {
  name=$1
  shift
  if "$@"; then echo "ok - $name"; else cat "$work/out"; echo "not ok - $name"; status=1; fi
}
is_ratio() {
  case $1 in 0.[0-9][0-9][0-9]) ;; *) return 1 ;; esac
}
last_word() { tail -n 1 "$work/out" | awk '{ print $NF }'; }

tensor=$top_srcdir/tests/data/tensors/weight_bf16.bin
: >"$work/empty"
head -c 1001 "$tensor" >"$work/odd"
expect "--ratio tells of each setting" 0 "lev:smallest" "" "$info" --ratio "$tensor" bf16
true_that "--ratio ends with a decimal number" is_ratio "$(last_word)"
true_that "--ratio has a line for the file, a title and one for each setting" \
  test "$(wc -l <"$work/out")" -eq 6
true_that "raw is as large as the elements and its header" \
  test "$(awk '$1 == "raw" { print $4, $5 }' "$work/out")" = "65600 1.001"
cat "$tensor" "$tensor" "$tensor" "$work/odd" "$work/odd" >"$work/pieces"
expect "--ratio takes a file in pieces" 0 "99305 bf16, 198610 bytes" "" "$info" --ratio "$work/pieces" bfloat16
true_that "each piece is a frame" test "$(awk '$1 == "raw" { print $4 }' "$work/out")" -eq $((198610 + 2 * 64))
expect "--ratio takes types that are not compressed" 0 "lev:smallest" "" "$info" --ratio "$tensor" int32
true_that "these are as large as before" test "$(last_word)" = 1.001
expect "--ratio follows UZIP_CPU" 0 "lev:smallest" "" env UZIP_CPU=scalar "$info" --ratio "$tensor" bf16
error_line "--ratio refuses a bad setting" "UZIP_CPU='nonsense' is not allowed" \
  env UZIP_CPU=nonsense "$info" --ratio "$tensor" bf16
error_line "--ratio refuses an unknown type" "there is no type 'bf17'; allowed are int8, uint8, " \
  "$info" --ratio "$tensor" bf17
error_line "--ratio wants a file that is there" "$work/nowhere: No such file" "$info" --ratio "$work/nowhere" bf16
error_line "--ratio wants a file, not a folder" "$work: not a regular file" "$info" --ratio "$work" bf16
error_line "--ratio wants a file with something in it" "$work/empty: the file is empty" \
  "$info" --ratio "$work/empty" bf16
error_line "--ratio wants whole elements" "$work/odd: 1001 bytes are not a whole number of bf16 elements" \
  "$info" --ratio "$work/odd" bf16
expect "--ratio without a type is an error with usage" 2 "" "--ratio FILE needs the type" "$info" --ratio "$tensor"
expect "--ratio without a file is an error with usage" 2 "" "requires an argument" "$info" --ratio
expect "something behind the type is an error with usage" 2 "" "unexpected argument 'more'" \
  "$info" --ratio "$tensor" bf16 more

frames=$top_srcdir/tests/golden/vectors
cat "$frames"/*.frame >"$work/frames"
cat "$work/frames" "$work/frames" "$work/frames" >"$work/many"
expect "--frame tells of a frame" 0 "lev      bf16                700          704          336         1104   0.789" "" \
  "$info" --frame "$frames/one_level_bf16.frame"
true_that "one frame has a title, a line and a sum" test "$(wc -l <"$work/out")" -eq 3
expect "--frame tells of all frames" 0 "lev      fp8_e5m2" "" "$info" --frame "$work/frames"
true_that "the sum has the size of the file" \
  test "$(tail -n 1 "$work/out" | awk '{ print $6 }')" -eq "$(wc -c <"$work/frames")"
expect "--frame is brief about many" 0 \
  "...  and $((3 * $(ls "$frames"/*.frame | wc -l) - 20)) more" "" "$info" --frame "$work/many"
true_that "many frames have twenty lines" test "$(grep -c '^ *[0-9][0-9]*  ' "$work/out")" -eq 20
error_line "--frame refuses what is no frame" "$tensor: frame 0 at byte 0: frame header: magic" \
  "$info" --frame "$tensor"
error_line "--frame wants a file with something in it" "$work/empty: the file is empty" "$info" --frame "$work/empty"
error_line "--frame wants a file that is there" "$work/nowhere: No such file" "$info" --frame "$work/nowhere"
{ cat "$frames/one_level_bf16.frame"; head -c 100 "$frames/one_level_bf16.frame"; } >"$work/cut"
expect "--frame finds a frame that is cut off" 1 "0.789" "frame 1 at byte 1104: the frame is cut off" \
  "$info" --frame "$work/cut"
expect "--frame without a file is an error with usage" 2 "" "requires an argument" "$info" --frame

if [ -w /dev/full ]; then
  expect "output that cannot be written is an error" 1 "" "cannot write" \
    sh -c 'exec "$0" -c >/dev/full' "$info"
fi
exit $status
