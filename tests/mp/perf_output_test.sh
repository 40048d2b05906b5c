#!/bin/sh
# What the measuring programs write: table, comma-separated values, JSON; comparison with MPI.
. "$top_srcdir/tests/mp/perf_support.sh"

small="-b 1K -e 64K -f 64 -n 3 -w 1"

by_hand 2 "$top_builddir/perf/allreduce" $small --codec lev --algo ring --median -J "$work/results.json" &&
  all_right && grep -q 'data: gauss' "$work/out" && grep -q ' lev .* ring$' "$work/out"
report "the table shows data, codec and algorithm"

python3 -m json.tool "$work/results.json" >"$work/tool" 2>&1
report "JSON is well-formed"
python3 - "$work/results.json" >"$work/tool" 2>&1 <<'END'
import json, sys
report = json.load(open(sys.argv[1]))
assert report["config"]["ranks"] == 2 and len(report["config"]["devices"]) == 2
assert report["config"]["time_is"] == "median"
assert report["machine"]["cores"] > 0 and report["machine"]["memory_bytes"] > 0
assert isinstance(report["commit"], str)
assert report["out_of_bounds"] == {"count": 0, "okay": True}
assert [r["size"] for r in report["results"]] == [1024, 65536]
for result in report["results"]:
    assert result["count"] * 4 == result["size"]
    assert (result["type"], result["redop"], result["codec"], result["algo"]) == (
        "float", "sum", "lev", "ring")
    for form in "out_of_place", "in_place":
        measured = result[form]
        assert measured["nwrong"] == 0 and measured["time"] > 0
        bandwidth = result["size"] / measured["time"] / 1e3
        assert abs(measured["alg_bw"] - bandwidth) < 1e-6 * bandwidth + 1e-9
        # With two ranks the factor 2 (n - 1) / n is 1.
        assert abs(measured["bus_bw"] - measured["alg_bw"]) < 1e-6 * bandwidth + 1e-9
    assert result["versus"] == []
    for form in "out_of_place", "in_place":
        measured = result[form]
        assert measured["p50"] == measured["median"] == measured["time"]
        assert measured["p50"] <= measured["p90"] <= measured["p99"]
        assert measured["calls"] == len(measured["batches"]) == 3
    assert abs(result["ratio"] - result["wire_bytes"] / result["payload_bytes"]) < 1e-3
assert report["results"][1]["ratio"] < 0.9
END
report "JSON has nccl-tests' keys and ours"

by_hand 2 "$top_builddir/perf/sendrecv" $small --csv --data zeros &&
  python3 - "$work/out" >"$work/tool" 2>&1 <<'END'
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))
assert [int(r["size"]) for r in rows] == [1024, 65536]
for row in rows:
    assert None not in row and None not in row.values()
    assert (row["program"], row["ranks"], row["data"], row["redop"]) == ("sendrecv", "2", "zeros", "none")
    assert row["root"] == "-1"
    assert row["out_of_place_wrong"] == "0" and row["in_place_us"] == ""
    assert float(row["out_of_place_us"]) > 0 and int(row["wire_bytes"]) > 0
END
report "comma-separated values"

by_hand 2 "$top_builddir/perf/bcast" $small -J "$work/bcast.json" && all_right && grep -q ' none  *0 ' "$work/out" &&
  grep -q '"root": "0"' "$work/bcast.json" && ! grep -q '"root": "-1"' "$work/bcast.json"
report "the root of rooted operations"

by_hand 2 "$top_builddir/perf/allgather" -b 1M -e 1M -n 2 -w 0 --codec lev --data mixed --csv &&
  python3 - "$work/out" >"$work/tool" 2>&1 <<'END'
import csv, sys
row = next(csv.DictReader(open(sys.argv[1])))
assert row["data"] == "mixed" and 0.85 < float(row["ratio"]) < 0.995
END
report "mixed data compress in part"

by_hand 2 "$top_builddir/perf/allreduce" -b 64K -e 64K -n 3 -w 1 --overlap -J "$work/overlap.json" && all_right &&
  grep -q ' hidden$' "$work/out" && python3 - "$work/overlap.json" >"$work/tool" 2>&1 <<'END'
import json, sys
overlap = json.load(open(sys.argv[1]))["results"][0]["overlap"]
assert min(overlap["call"], overlap["compute"]) > 0 and 0 <= overlap["hidden"] <= 1
assert overlap["compute"] >= 0.2 * overlap["call"] and overlap["both"] >= 0.5 * overlap["compute"]
END
report "overlap of a call with computing"

by_hand 2 "$top_builddir/perf/allreduce" $small -c 0 && grep -q 'N/A' "$work/out" && all_right
report "no check"

by_hand 2 "$top_builddir/perf/allreduce" $small --versus raw --codec lev --percentiles -J "$work/raw.json" && all_right &&
  grep -q 'over raw' "$work/out" && grep -q ' p50 .* p90 .* p99 ' "$work/out" &&
  python3 - "$work/raw.json" <<'END'
import json, sys
for result in json.load(open(sys.argv[1]))["results"]:
    assert result["codec"] == "lev"
    [raw] = result["versus"]
    assert raw["peer"] == "raw" and raw["calls"] == result["out_of_place"]["calls"]
    assert abs(raw["speedup"] - raw["median"] / result["out_of_place"]["median"]) < 1e-6 * raw["speedup"]
END
report "the library against itself without a codec"

by_hand 2 "$top_builddir/perf/allreduce" -b 4K -e 4K -n 20 --ci 40% --versus raw -J "$work/ci.json" && all_right &&
  python3 - "$work/ci.json" <<'END'
import json, sys
report = json.load(open(sys.argv[1]))
[result] = report["results"]
assert report["config"]["precision"] == 0.4
# Either it is as precise as wanted, or it gave up after a hundred times 20 calls.
for measured in result["out_of_place"], result["versus"][0]:
    assert measured["calls"] % 20 == 0 and len(measured["batches"]) == 20
    assert measured["precision"] <= 0.4 or measured["calls"] == 2000
END
report "calls are repeated until the time is known precisely enough"

by_hand 2 "$top_builddir/perf/allreduce" $small --progress on && all_right &&
  grep -q '^allreduce: 1 of 2, 1K float' "$work/err"
report "progress is told, by rank 0 alone"
by_hand 2 "$top_builddir/perf/allreduce" $small && all_right && [ ! -s "$work/err" ]
report "no progress where standard error is no terminal"

if command -v gnuplot >/dev/null 2>&1; then
  by_hand 2 "$top_builddir/perf/allreduce" $small --versus raw --plot "$work/picture.svg" && all_right &&
    grep -q '<svg' "$work/picture.svg" && grep -q 'float sum, raw' "$work/picture.svg"
  report "a picture of the bandwidths"
  by_hand 2 "$top_builddir/perf/allreduce" $small --plot tty && all_right &&
    grep -q 'float sum, codec auto' "$work/out"
  report "a picture on the terminal"
else
  echo "skip pictures: no gnuplot here"
fi

for program in allreduce reduce_scatter allgather sendrecv halo; do
  if [ -z "$MPIRUN" ]; then
    echo "skip $program versus MPI: configured without MPI"
    continue
  fi
  with_mpi 2 "$top_builddir/perf/$program" $small -d bf16 --versus mpi -J "$work/versus.json" && all_right &&
    grep -q 'versus MPI_.* of MPI_INT16_T for bfloat16' "$work/out" &&
    python3 - "$work/versus.json" <<'END'
import json, sys
for result in json.load(open(sys.argv[1]))["results"]:
    [versus] = result["versus"]
    assert versus["peer"] == "mpi"
    assert versus["name"].startswith("MPI_") and versus["time"] > 0
    speedup = versus["time"] / result["out_of_place"]["median"]
    assert abs(versus["speedup"] - speedup) < 1e-6 * speedup
END
  report "$program versus MPI"
done
exit $status
