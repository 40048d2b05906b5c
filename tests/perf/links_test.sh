#!/bin/sh
# perf/links: links that are as slow as they say, and that leave nothing behind, however it ends.
. "$top_srcdir/tests/mp/perf_support.sh"

if ! command -v python3 >/dev/null 2>&1; then
  echo "skip emulated links: no python3 here"
  exit 77
fi
links() {
  "$top_srcdir/perf/links" --programs "$top_builddir/perf" "$@" >"$work/out" 2>"$work/err" </dev/null
}

# refused WORD ARGUMENT...: exit status 2, the last line has the word, nothing is built or written.
refused() {
  word=$1
  shift
  links --output "$work/refused" "$@"
  [ $? -eq 2 ] && [ ! -s "$work/out" ] && [ ! -e "$work/refused" ] && tail -n 1 "$work/err" | grep -q -e "$word"
  report "refused: $*"
}
refused '--rates' --rates fast
refused '--ranks' --ranks 0
refused 'no multiple of --per-link' --ranks 3 --per-link 2
refused '--cases' --cases bf16
refused 'neither gauss' --cases bf16:nonexistent
refused 'say where with --programs' --ops nonexistent
refused '--iters' --iters 0

if ! command -v ip >/dev/null 2>&1 || ! command -v tc >/dev/null 2>&1; then
  echo "skip emulated links: no ip and tc here"
  exit $status
fi
links --sizes 4K --iters 1 --warmup 0 --cases bf16:gauss --output "$work/try"
case $?:$(cat "$work/err") in
  2:*"can't make network namespaces"*)
    echo "skip emulated links: no network namespaces here"
    exit $status ;;
  1:*"Operation not permitted"* | 1:*"Unknown device type"* | 1:*"Permission denied"*)
    echo "skip emulated links: $(tail -n 1 "$work/err")"
    exit $status ;;
esac

# 512 KiB take 42 ms at 100 Mb/s, of which the bucket lets a quarter through at once.
links --rates 100mbit --sizes 512K --iters 5 --warmup 1 --cases bf16:gauss --output "$work/slow" &&
  grep -q '^# 1 cells in .*, 0 wrong elements$' "$work/out" && python3 - "$work/slow" >"$work/tool" 2>&1 <<'END'
import json, os, sys
[name] = os.listdir(sys.argv[1])
report = json.load(open(os.path.join(sys.argv[1], name)))
assert report["link"] == {"rate": "100mbit", "ranks": 1}
[result] = report["results"]
[raw] = result["versus"]
assert 25e3 < raw["median"] < 250e3, raw
assert result["codec"] != "raw" and result["ratio"] < 0.75
assert raw["speedup"] > 1.15, raw
END
report "a slow link is slow, and compression makes it faster"

links --rates none --ranks 4 --per-link 2 --sizes 64K --iters 1 --warmup 0 --cases fp32:gauss --rounds 2 \
  --output "$work/shared" && [ "$(ls "$work/shared" | wc -l)" -eq 2 ] && grep -q '^| allreduce | none *| 4 ' "$work/out"
report "several ranks behind a link"

links --rates 100mbit --sizes 64K --iters 2 --warmup 0 --cases bf16:gauss --tune 2 --output "$work/tuned" &&
  grep -q '^choice network allreduce bf16 2 ' "$work/tuned/tuning-100mbit-2" &&
  grep -q 'UZIP_TUNING_FILE=.*/tuning-100mbit-2"' "$work/tuned/"*.json
report "the library is tuned for a link first"

# Links and namespaces as links names them, and processes that name our folder.
left_behind() {
  { ip -o link; ip netns list; } 2>/dev/null | grep -oE '(bridge|port|host)[0-9]+'
  grep -lza "$work/[l]ong" /proc/[0-9]*/cmdline 2>/dev/null
}
left_behind > "$work/before"
for signal in INT TERM KILL; do
  "$top_srcdir/perf/links" --programs "$top_builddir/perf" --sizes 64K --iters 100000 --cases bf16:gauss \
    --output "$work/long" >"$work/out" 2>"$work/err" </dev/null &
  pid=$!
  tries=0
  until left_behind | grep -q /proc && [ -s "$work/err" ] || [ $tries -gt 200 ]; do
    tries=$((tries + 1))
    sleep 0.05
  done
  sleep 0.3
  left_behind > "$work/during"
  kill -$signal $pid
  wait $pid 2>/dev/null
  ended=$?
  tries=0
  until left_behind | cmp -s "$work/before" - || [ $tries -gt 100 ]; do
    tries=$((tries + 1))
    sleep 0.05
  done
  [ $ended -gt 128 ] && [ "$(wc -l < "$work/during")" -gt "$(($(wc -l < "$work/before") + 2))" ] &&
    left_behind | cmp -s "$work/before" -
  report "nothing is left behind after SIG$signal"
done
exit $status
