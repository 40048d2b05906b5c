#!/bin/sh
# The shared libraries export what the golden lists say: uzip_* only, and each function that the
# public headers declare.
#
# After a wanted change of the API:  make check TESTS=tests/package/exported_symbols_test.sh UPDATE=1
set -u
export LC_ALL=C
status=0

# verdict NAME STATUS
verdict() {
  if [ "$2" -eq 0 ]; then echo "ok - $1"; else echo "not ok - $1"; status=1; fi
}

# compare LIBRARY GOLDEN HEADERS
compare() {
  library=$top_builddir/.libs/$1.so
  golden=$top_srcdir/tests/golden/$2
  if [ ! -e "$library" ]; then
    echo "skip $1: not built as a shared library"
    return
  fi
  # Type A is the name of the version itself.
  exported=$(nm -D --defined-only "$library" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort)
  foreign=$(printf '%s\n' "$exported" | grep -v '^uzip_')
  [ -z "$foreign" ] || echo "$1 exports names without uzip_:" $foreign
  verdict "$1 exports uzip_* only" $([ -z "$foreign" ]; echo $?)

  if [ -n "${UPDATE:-}" ]; then
    printf '%s\n' "$exported" > "$golden"
    echo "wrote $golden"
  fi
  printf '%s\n' "$exported" | diff -u "$golden" - ||
    echo "if this is what you want: make check TESTS=tests/package/exported_symbols_test.sh UPDATE=1"
  printf '%s\n' "$exported" | cmp -s "$golden" -
  verdict "$1 exports what $2 lists" $?

  (cd "$top_srcdir/include/uzipcoll" && sed -n 's/^UZIP_API [^(]*\b\(uzip_[a-z0-9_]*\)(.*/\1/p' $3) | sort |
    diff -u - "$golden"
  verdict "$2 lists what $3 declares" $?
}

compare libuzipcoll exported_symbols.txt 'types.h frames.h uzipcoll.h'
compare libuzipcoll-mpi exported_symbols_mpi.txt uzipcoll_mpi.h
exit $status
