#!/bin/sh
# What uzip_sched prints and proves, and how it ends.
set -u
sched=$top_builddir/tools/uzip_sched
wrong=$top_builddir/tests/uzip_sched_wrong
work=$(mktemp -d "${TMPDIR:-/tmp}/uzipcoll-sched.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
status=0

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
# true_that NAME TEST...
true_that() {
  name=$1
  shift
  if "$@"; then echo "ok - $name"; else cat "$work/out"; echo "not ok - $name"; status=1; fi
}
# column N: that column of the only line that is not a comment
column() { awk -v n="$1" '!/^#/ { print $n }' "$work/out"; }
# usage_error NAME STDERR_HAS ARGUMENT...: exit status 2, the text and the usage on standard error.
usage_error() {
  name=$1 err=$2
  shift 2
  expect "$name" 2 "" "$err" "$sched" "$@"
  has "$work/err" "usage: uzip_sched" || { cat "$work/err"; echo "not ok - $name, with usage"; status=1; }
}

expect "-h helps" 0 "usage: uzip_sched" "" "$sched" -h
expect "print shows steps" 0 "send input[12,16) -> rank 1 #0" "" \
  "$sched" print allreduce:ring -p 4 -n 16
true_that "of all ranks" test "$(grep -c '^rank ' "$work/out")" -eq 4
expect "print shows one rank" 0 "rank 2: scratch" "" "$sched" print allreduce:ring -p 4 -r 2
true_that "and no other" test "$(grep -c '^rank ' "$work/out")" -eq 1
expect "print shows frames" 0 "encode input" "" "$sched" print allreduce:ring -c lev
expect "print shows frames in two parts" 0 "encode plain input" "" "$sched" print allreduce:ring -c lev --split
expect "print takes blocks of any sizes" 0 "counts 3 0 2, in place" "" \
  "$sched" print allgather:ring -p 3 --counts 3,0,2 -i
expect "a collective with one algorithm needs no name" 0 "send nothing" "" "$sched" print barrier -p 2
expect "dot draws a graph" 0 "digraph schedule {" "" "$sched" dot allreduce:two_shot -p 3
true_that "with an edge for each message" test "$(grep -c 'style=dashed' "$work/out")" -eq 12
if command -v dot >/dev/null 2>&1; then
  true_that "that Graphviz reads" dot -Tplain -o /dev/null "$work/out"
fi

expect "hosts are taken into account" 0 "hosts 0 0 1 1" "" \
  "$sched" print allreduce:hierarchical -p 4 --per-host 2 -c lev
expect "sockets are taken into account" 0 "hosts 0 0 0 0 1 1 1 1, sockets 0 0 1 1 0 0 1 1" "" \
       "$sched" print allreduce:hierarchical -p 8 --per-host 4 --per-socket 2
expect "and proved" 0 "proved" "" "$sched" verify reduce:hierarchical -p 11 -n 100 --per-host 6 --per-socket 2
expect "a wrong number of them is refused" 2 "" "--per-socket '-1' is not a whole number" \
       "$sched" print allreduce:hierarchical --per-socket -1
expect "a hierarchy of sockets is simulated" 0 "allreduce:hierarchical" "" \
       "$sched" simulate allreduce:hierarchical -p 32 -n 1M -m numa100
cp "$work/out" "$work/nested"
expect "or one without" 0 "allreduce:hierarchical" "" \
       "$sched" simulate allreduce:hierarchical -p 32 -n 1M -m numa100 --per-socket 0
true_that "which takes another time" sh -c '! cmp -s "$1" "$2"' sh "$work/out" "$work/nested"
expect "a hierarchy is simulated on its hosts" 0 "allreduce:hierarchical" "" \
  "$sched" simulate allreduce:hierarchical -p 512 -n 1M -m nvlink
hierarchical=$(column 5)
expect "as is a ring" 0 "allreduce:ring" "" "$sched" simulate allreduce:ring -p 512 -n 1M -m nvlink
true_that "which takes longer" awk "BEGIN { exit !($(column 5) > $hierarchical) }"
expect "every algorithm can be simulated" 0 "allreduce:ring" "" "$sched" simulate --all -p 6 -n 1K
expect "verify --all proves every algorithm" 0 "proved" "" "$sched" verify --all -p 5
"$sched" verify --all -p 2 | awk '{ sub(/,/, "", $2); print $2 }' | sort >"$work/proved"
"$top_builddir/tools/uzip_info" -a | awk '/^[a-z]/ { print $1 ":" $2 }' | sort >"$work/known"
true_that "of uzip_info -a" cmp "$work/proved" "$work/known"
expect "verify takes a collective" 0 "proved    allgather:bruck, 1 to 3 ranks" "" \
  "$sched" verify allgather -p 3
expect "verify takes a list of numbers of ranks" 0 "allreduce:ring, 2 to 32 ranks" "" \
  "$sched" verify allreduce:ring -p 2-3,32 -n 100
expect "verify takes one case" 0 ": 1 cases" "" "$sched" verify allgather:ring -p 3 --counts 3,0,2

expect "a wrong algorithm is found" 1 "WRONG     allreduce:hasty" "1 of 2 algorithms could not be proved" \
  "$wrong" verify --all -p 9
true_that "the others are proved nevertheless" has "$work/out" "proved    allreduce:ring"
true_that "the counterexample is small" has "$work/out" "allreduce hasty, 3 ranks, counts 1 0 0"
true_that "and says what is wrong" has "$work/out" "and does not wait for it"
true_that "and shows the schedules" has "$work/out" "rank 1: scratch"

expect "model lists models" 0 "nvlink" "" "$sched" model
expect "model prints one" 0 "uzip-cost-model 1" "" "$sched" model -m rdma100
cp "$work/out" "$work/mine.model"
expect "which can be read back" 0 "uzip-cost-model 1" "" "$sched" model -m "$work/mine.model"
true_that "unchanged" cmp "$work/out" "$work/mine.model"
expect "simulate predicts a time" 0 "allreduce:ring" "" "$sched" simulate allreduce:ring -p 8 -n 1M -m rdma100
time_at_100=$(column 5)
expect "simulate takes a file" 0 "allreduce:ring" "" "$sched" simulate allreduce:ring -p 8 -n 1M -m "$work/mine.model"
true_that "that says the same" test "$(column 5)" = "$time_at_100"
sed 's/bandwidth .*/bandwidth 1e9/' "$work/mine.model" >"$work/slow.model"
expect "simulate follows the file" 0 "allreduce:ring" "" "$sched" simulate allreduce:ring -p 8 -n 1M -m "$work/slow.model"
true_that "a slower link takes longer" awk "BEGIN { exit !($(column 5) > 5 * $time_at_100) }"
time_raw=$(column 5)
expect "simulate codes" 0 "codec lev" "" "$sched" simulate allreduce:ring -p 8 -n 1M -d bf16 -c lev -m "$work/slow.model"
true_that "which pays on a slow link" awk "BEGIN { exit !($(column 5) < 0.4 * $time_raw) }"
expect "simulate takes lists" 0 "allreduce:two_shot" "" "$sched" simulate allreduce -p 2,4 -n 1K,1M
true_that "and prints a line for each" test "$(grep -vc '^#' "$work/out")" -eq $((4 * $(grep -c '^allreduce:' "$work/known")))
expect "thousands of ranks are simulated" 0 "   4096 " "" "$sched" simulate allreduce:ring -p 4096 -n 1M -m nvlink
expect "simulate cuts the call as the library does, or not" 0 "allreduce:ring" "" \
  "$sched" simulate allreduce:ring -p 8 -n 16M -m rdma100 --one-round
"$sched" json allreduce:ring -p 3 -n 1K >"$work/out" 2>"$work/err"
true_that "json is a trace" has "$work/out" '"traceEvents":['
if command -v python3 >/dev/null 2>&1; then
  true_that "that JSON readers take" python3 - "$work/out" <<'END'
import json, sys
trace = json.load(open(sys.argv[1]))
events = [e for e in trace["traceEvents"] if e["ph"] == "X"]
assert len({e["pid"] for e in events}) == 3, "not three ranks"
assert max(e["ts"] + e["dur"] for e in events) <= 1e6 * trace["otherData"]["seconds"] + 1e-3
END
fi
expect "a model that is not there" 1 "" "there is no model 'rdma10'; the nearest is rdma100" \
  "$sched" simulate allreduce:ring -m rdma10
expect "a file that is not there" 1 "" "nowhere.model: No such file" \
  "$sched" simulate allreduce:ring -m "$work/nowhere.model"
sed 's/latency/latenzy/' "$work/mine.model" >"$work/bad.model"
expect "a model with a misspelt key" 1 "" "bad.model:$(sed -n '/latenzy/=' "$work/bad.model" | head -n 1): 'latenzy' is no key of a link; the nearest is latency" \
  "$sched" model -m "$work/bad.model"
expect "a type that the model's codec does not know" 1 "# ring on 4 ranks" "has no codec lev for fp64" \
  "$sched" simulate allreduce:ring -m nvlink -d fp64 -c lev

usage_error "a model without -m" "a model is named with -m" model shm
usage_error "no command" "a command is missing"
usage_error "a misspelt command" "there is no command 'prnt'; the nearest is print" prnt allreduce:ring
usage_error "a misspelt collective" "the nearest is allreduce" print allredcue:ring
usage_error "a misspelt algorithm" "the nearest is two_shot" print allreduce:twoshot
usage_error "a misspelt option" "the nearest is ranks" print allreduce:ring --rnaks 3
usage_error "a misspelt type" "the nearest is bf16" print allreduce:ring -d bf17
usage_error "a misspelt codec" "the nearest is lev" print allreduce:ring -c lef
usage_error "an unknown short option" "there is no option '-x'" print allreduce:ring -x
usage_error "an option without its value" "needs a value" print allreduce:ring -p
usage_error "no algorithm" "an algorithm is missing" print
usage_error "several algorithms to print" "name one, as in allreduce:" print allreduce
usage_error "too many arguments" "unexpected argument 'more'" print allreduce:ring more
usage_error "ranks that are no number" "--ranks 'x' is not a whole number from 1 to" print allreduce:ring -p x
usage_error "no ranks" "is not a whole number from 1" print allreduce:ring -p 0
usage_error "an immense count" "is not a whole number" print allreduce:ring -n 99999999999999999999G
usage_error "a rank that is not there" "--rank 4 is not below" print allreduce:ring -p 4 -r 4
usage_error "blocks for another number of ranks" "2 blocks for 4 ranks" print allgather:ring --counts 1,2
usage_error "parts of what is no frame" "--split needs a codec" print allreduce:ring --split
usage_error "--all with print" "--all goes with verify and simulate" print --all
usage_error "--all with an algorithm" "exclude each other" verify --all allreduce
expect "a full disk is an error" 1 "" "cannot write to standard output" \
  sh -c "'$sched' print allreduce:ring >/dev/full"
exit $status
