#!/bin/sh
# The decoder that was written from docs/FORMAT.md alone, tools/uzip_decode.py, reads every golden
# frame, alone and one behind the other, and refuses every one that breaks a rule.
set -u
: "${top_srcdir:=.}"
decoder=$top_srcdir/tools/uzip_decode.py
vectors=$top_srcdir/tests/golden/vectors
python=
for candidate in python3 /usr/bin/python3; do
  $candidate -c 'import numpy' 2>/dev/null && python=$candidate && break
done
[ -n "$python" ] || { echo "skip python_decoder: no python3 with numpy"; exit 77; }
work=$(mktemp -d "${TMPDIR:-/tmp}/uzipcoll-decode.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
failed=0

# verdict NAME STATUS
verdict() {
  if [ "$2" -eq 0 ]; then echo "ok - $1"; else echo "not ok - $1"; failed=1; fi
}

# All in one process, because numpy takes its time to load.
PYTHONDONTWRITEBYTECODE=1 "$python" - "$top_srcdir/tools" "$vectors" <<'END' || failed=1
import pathlib
import sys

import numpy

sys.path.insert(0, sys.argv[1])
from uzip_decode import Corrupt, decode_frame

failed = False
for path in sorted(pathlib.Path(sys.argv[2]).glob("**/*.frame")):
    data = numpy.fromfile(path, numpy.uint8)
    try:
        elements, length = decode_frame(data)
        good = length == len(data) and elements.tobytes() == path.with_suffix(".bin").read_bytes()
        what = "decodes"
    except Corrupt as rule:
        good, what = path.parent.name == "reject", f"refuses ({rule})"
    except FileNotFoundError:
        good, what = False, "decodes what must be refused,"
    failed |= not good
    print("ok" if good else "not ok", "-", what, path.name)
sys.exit(failed)
END
cat "$vectors"/*.frame >"$work/frames"
cat "$vectors"/*.bin >"$work/elements"
"$python" "$decoder" "$work/frames" | cmp - "$work/elements"
verdict "decodes frames one behind the other" $?
"$python" "$decoder" "$vectors/reject/record_symbol.frame" "$work/out" 2>"$work/error"
[ $? -eq 1 ] && grep -q 'corrupt: symbols' "$work/error"
verdict "ends with the broken rule" $?
for name in one_level_bf16 groups_fp16 groups_fp32 groups_fp8_e4m3fn; do
  "$python" "$decoder" --by-group "$vectors/$name.frame" | cmp - "$vectors/$name.bin"
  verdict "reads the groups of $name in any order" $?
done
exit $failed
