#!/bin/sh
# uzip_compare: its statistics against brute force and simulation, its verdicts on made-up results, and
# what it says of files that it can't use.
. "$top_srcdir/tests/mp/perf_support.sh"
compare="$top_srcdir/tools/uzip_compare"
export compare work

if ! command -v python3 >/dev/null 2>&1; then
  echo "skip uzip_compare: no python3 here"
  exit 77
fi

# statistics NAME: runs the Python code on standard input, with the script's functions.
statistics() {
  { cat <<'END'
import importlib.machinery, importlib.util, itertools, os, random, sys
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("uzip_compare", os.environ["compare"])
spec = importlib.util.spec_from_loader("uzip_compare", loader)
it = importlib.util.module_from_spec(spec)
loader.exec_module(it)
END
    cat; } | python3 - >"$work/out" 2>"$work/err"
  report "$1"
}

statistics "p-values are those of all arrangements, counted one by one" <<'END'
rng = random.Random(1)
for n, m in (2, 3), (4, 4), (5, 3), (1, 6):
    values = rng.sample(range(1000), n + m)
    base, new = values[:n], values[n:]
    far = abs(it.u_statistic(base, new) - n * m / 2)
    beyond = total = 0
    for chosen in itertools.combinations(range(n + m), n):
        one = [values[i] for i in chosen]
        other = [values[i] for i in range(n + m) if i not in chosen]
        beyond += abs(it.u_statistic(one, other) - n * m / 2) >= far
        total += 1
    assert abs(it.p_value(base, new) - beyond / total) < 1e-12, (n, m)
assert abs(it.p_value([1, 2, 3, 4, 5], [6, 7, 8, 9, 10]) - 2 / 252) < 1e-12
assert it.least_p(5, 5) == 2 / 252
END

statistics "no difference is found in no more than the level's part of the cases" <<'END'
rng = random.Random(2)
draw = lambda: [rng.lognormvariate(0, 1) for _ in range(20)]
alarms = sum(it.p_value(draw(), draw()) <= 0.05 for _ in range(600))
assert alarms <= 600 * 0.075, alarms
END

statistics "a difference larger than the scatter is found, and its size" <<'END'
rng = random.Random(3)
base = [rng.gauss(100, 4) for _ in range(20)]
new = [rng.gauss(110, 4) for _ in range(20)]
change, low, high = it.change(base, new)
assert it.p_value(base, new) < 1e-3
assert low <= 0.10 <= high and low <= change <= high
END

statistics "large and tied samples" <<'END'
assert it.p_value([1.0] * 30, [1.0] * 30) == 1
assert it.p_value([1.0] * 30, [2.0] * 30) < 1e-9
assert it.p_value(list(range(100)), [v + 0.5 for v in range(100)]) > 0.5
END

statistics "Holm's correction" <<'END'
corrected = it.holm([0.01, 0.04, 0.03, 0.005])
assert all(abs(a - b) < 1e-12 for a, b in zip(corrected, [0.03, 0.06, 0.06, 0.02])), corrected
END

# result FILE CODEC FACTOR WRONG CALLS SIZE...: a report whose times are 100 us times FACTOR, with scatter.
result() {
  python3 - "$@" <<'END'
import json, random, sys
file, codec, factor, wrong, calls, *sizes = sys.argv[1:]
rng = random.Random(file)
measured = lambda size: {"nwrong": int(wrong), "batches": [
    float(factor) * 100 * (1 + 0.02 * rng.random()) for _ in range(int(calls))]}
json.dump({"machine": {"processor": "p", "cores": 2},
           "config": {"program": "allreduce", "ranks": 2, "data": "gauss", "codec": codec, "algo": "auto",
                      "time_is": "mean"},
           "results": [{"size": int(size), "type": "float", "redop": "sum", "out_of_place": measured(size),
                        "in_place": None} for size in sizes]}, open(file, "w"))
END
}

# compared STATUS ARGUMENT...
compared() {
  wanted=$1
  shift
  "$compare" "$@" >"$work/out" 2>"$work/err"
  [ $? -eq "$wanted" ]
}

result "$work/a.json" auto 1 0 20 1024 2048
result "$work/b.json" auto 1 0 20 1024 2048
result "$work/slow.json" auto 1.1 0 20 1024 2048 4096
result "$work/raw.json" raw 0.5 0 20 1024 2048
result "$work/wrong.json" auto 1 3 20 1024 2048
result "$work/few.json" auto 1 0 3 1024 2048
result "$work/few2.json" auto 2 0 3 1024 2048

compared 0 "$work/a.json" "$work/b.json" --fail-above 0% && grep -q 'show no difference' "$work/out" &&
  grep -q '^# program allreduce, ranks 2, data gauss, codec auto' "$work/out"
report "two runs of the same are the same"
compared 1 "$work/a.json" "$work/slow.json" --fail-above 5% && grep -q '2 slower by more than 5 %: FAILED' "$work/out" &&
  grep -q '^# 1 line only in .*slow.json' "$work/out"
report "ten percent are more than five"
compared 0 "$work/a.json" "$work/slow.json" --fail-above 15% && grep -q '2 slower, 0 faster' "$work/out"
report "ten percent are less than fifteen"
compared 0 "$work/a.json" "$work/slow.json"
report "without a threshold nothing fails"
compared 0 "$work/a.json" "$work/raw.json" --fail-above 1% && grep -q '0 slower, 2 faster' "$work/out" &&
  grep -q 'compared are codec auto, algorithm auto and codec raw' "$work/out"
report "codecs are compared with each other"
compared 1 "$work/a.json" "$work/wrong.json" && grep -q '6 wrong elements in .*: FAILED' "$work/out"
report "wrong elements fail"
compared 0 "$work/few.json" "$work/few2.json" --fail-above 1% && grep -q 'too few calls' "$work/out"
report "too few calls show nothing, and that is said"
compared 0 "$work/a.json" "$work/b.json" --changes && ! grep -q '1K' "$work/out"
report "only changes"

mkdir "$work/one" "$work/two"
cp "$work/a.json" "$work/b.json" "$work/one" && cp "$work/slow.json" "$work/two"
compared 1 "$work/one" "$work/two" --fail-above 5%
report "folders of results"

# refused WORD ARGUMENT...: exit status 2, one line with the word, nothing else.
refused() {
  word=$1
  shift
  compared 2 "$@" && [ ! -s "$work/out" ] && tail -n 1 "$work/err" | grep -q "$word"
  report "refused: $word"
}
echo '{' > "$work/broken.json"
echo '[]' > "$work/list.json"
printf '\377' > "$work/binary.json"
sed 's/"batches": \[[^]]*\]/"batches": []/' "$work/a.json" > "$work/empty.json"
sed 's/"batches": \[[^]]*\]/"batches": [-1, 0, NaN]/' "$work/a.json" > "$work/negative.json"
sed 's/"ranks": 2/"ranks": 3/' "$work/a.json" > "$work/ranks.json"
mkdir "$work/nothing"
refused 'No such file' "$work/a.json" "$work/nonexistent.json"
refused 'no JSON' "$work/broken.json" "$work/a.json"
refused 'no JSON' "$work/binary.json" "$work/a.json"
refused 'not a result' "$work/list.json" "$work/a.json"
refused 'has no batches' "$work/empty.json" "$work/a.json"
refused 'are no times' "$work/negative.json" "$work/a.json"
refused 'no line in common' "$work/ranks.json" "$work/a.json"
refused 'no .json file' "$work/nothing" "$work/a.json"
refused 'percentage' --fail-above five "$work/a.json" "$work/b.json"

# What the programs really write.
by_hand 2 "$top_builddir/perf/allreduce" -b 4K -e 8K -f 2 -n 20 -w 1 -J "$work/real.json" &&
  compared 0 "$work/real.json" "$work/real.json" --fail-above 0% && grep -q '4 lines: 0 slower' "$work/out"
report "results of perf/allreduce"
exit $status
