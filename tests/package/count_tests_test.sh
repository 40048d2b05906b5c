#!/bin/sh
# tools/count-tests counts cases, not programs, and lets no failure through.
set -u
command -v python3 >/dev/null 2>&1 || { echo "skip count-tests: no python3 here"; exit 77; }
tree=$(mktemp -d "${TMPDIR:-/tmp}/uzipcoll-count.XXXXXX") || exit 1
trap 'rm -rf "$tree"' EXIT
status=0

# program NAME RESULT [XML]: the files that automake and GoogleTest leave.
program() {
  echo ":test-result: $2" > "$tree/$1.trs"
  echo "" > "$tree/$1.log"
  [ $# -lt 3 ] || printf '<testsuites><testsuite name="s">%s</testsuite></testsuites>\n' "$3" > "$tree/$1.xml"
}
# expect WANTED_EXIT LAST_LINE NAME
expect() {
  found=$("$top_srcdir/tools/count-tests" "$tree")
  code=$?
  if [ $code -eq "$1" ] && [ "$(printf '%s\n' "$found" | tail -n 1)" = "$2" ]; then
    echo "ok - $3"
  else
    printf 'exit status %s, output:\n%s\n' $code "$found"
    echo "not ok - $3"
    status=1
  fi
  rm -rf "$tree"/*
}
good='<testcase classname="s" name="good" status="run"/>'
bad='<testcase classname="s" name="bad" status="run"><failure message="m"/></testcase>'
skipped='<testcase classname="s" name="skip" status="run"><skipped message="f:1&#x0A;why"/></testcase>'
disabled='<testcase classname="s" name="DISABLED_x" status="notrun"/>'

expect 1 "0 passed, 0 failed" "nothing that ran is a failure"
program a PASS "$good$good"
expect 0 "2 passed, 0 failed" "counts GoogleTest cases"
program a PASS "$good$skipped$disabled"
expect 0 "1 passed, 0 failed, 2 skipped" "counts skipped and disabled cases"
program a FAIL "$good$bad"
expect 1 "1 passed, 1 failed" "counts failed cases"
program a FAIL "$good"
expect 1 "1 passed, 1 failed" "a program that fails after its last case has failed"
program a FAIL
expect 1 "0 passed, 1 failed" "a program that crashed has failed"
program a FAIL "$good<oops"
expect 1 "0 passed, 1 failed" "an unreadable report has failed"
program a PASS
printf 'ok - one\nnot here: ok\nskip - two: no such thing\n' > "$tree/a.log"
expect 0 "1 passed, 0 failed, 1 skipped" "counts the lines of a script"
program a PASS
expect 0 "1 passed, 0 failed" "a script without such lines is one case"
program a SKIP
program b PASS
expect 0 "1 passed, 0 failed, 1 skipped" "a script can be skipped"
exit $status
