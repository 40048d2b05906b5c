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
expect "-C lists codecs" 0 "raw" "" "$info" -C
expect "-c shows defaults" 0 "  UZIP_TIMEOUT          60" "" "$info" -c
expect "-c marks what was changed" 0 "* UZIP_TIMEOUT          90" "" \
  env UZIP_TIMEOUT=90 "$info" -c
expect "-c --names shows bare names" 0 "UZIP_CHUNK" "" "$info" -c --names
expect "names do not need a sound environment" 0 "UZIP_CHUNK" "" \
  env UZIP_CHUNK=nonsense "$info" -c --names
expect "no option shows everything" 0 "UZIP_CODEC" "" "$info"
expect "options add up" 0 "two_shot" "" "$info" -va
expect "-h helps" 0 "usage: uzip_info" "" "$info" -h
expect "a bad value is an error" 1 "" "UZIP_CHUNK='nonsense' is not allowed" \
  env UZIP_CHUNK=nonsense "$info" -c
expect "an unknown name is a warning" 0 "UZIP_CHUNK" "the nearest is UZIP_CHUNK" \
  env UZIP_CHUNKS=1M "$info" -c
expect "an unknown option is an error with usage" 2 "" "usage: uzip_info" "$info" -x
expect "an unknown long option is an error with usage" 2 "" "usage: uzip_info" "$info" --frobnicate
expect "an argument is an error with usage" 2 "" "unexpected argument 'more'" "$info" -v more
expect "--names without -c is an error" 2 "" "--names goes with -c" "$info" --names
if [ -w /dev/full ]; then
  expect "output that cannot be written is an error" 1 "" "cannot write" \
    sh -c 'exec "$0" -c >/dev/full' "$info"
fi
exit $status
