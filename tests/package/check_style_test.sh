#!/bin/sh
# tools/check-style finds planted violations.
set -u
command -v python3 >/dev/null 2>&1 || { echo "skip check-style: no python3 here"; exit 77; }
tree=$(mktemp -d "${TMPDIR:-/tmp}/uzipcoll-style.XXXXXX") || exit 1
trap 'rm -rf "$tree"' EXIT
status=0

# expect WANTED_EXIT TEXT NAME: the output has TEXT.
expect() {
  found=$("$top_srcdir/tools/check-style" "$tree")
  code=$?
  if [ $code -eq "$1" ] && printf '%s\n' "$found" | grep -qF "$2"; then
    echo "ok - $3"
  else
    printf 'exit status %s, output:\n%s\n' $code "$found"
    echo "not ok - $3"
    status=1
  fi
  rm -rf "$tree"/*
  mkdir -p "$tree/src/base" "$tree/tools"
}

mkdir -p "$tree/src/base" "$tree/src/algos"
echo 'int x;' > "$tree/src/base/good_name.cpp"
expect 0 '' "accepts a clean tree"
printf '\tint x;\n' > "$tree/src/base/a.cpp"
expect 1 'src/base/a.cpp:1: tab' "finds a tab"
printf 'int x;\nint y; \n' > "$tree/src/base/a.cpp"
expect 1 'src/base/a.cpp:2: trailing blank' "finds a trailing blank"
printf 'int x;' > "$tree/src/base/a.cpp"
expect 1 'no newline at the end' "finds a missing last newline"
echo > "$tree/src/base/BadName.cpp"
expect 1 'BadName.cpp:1: file name is not snake_case' "finds a name that is not snake_case"
echo > "$tree/src/base/a.cpp"
echo > "$tree/tools/a.cpp"
expect 1 'there is already a src/base/a.cpp' "finds a name used twice"
yes 'int x;' | head -n 501 > "$tree/src/base/a.cpp"
expect 0 'src/base/a.cpp: warning: 501 lines' "warns about a long file"
exit $status
