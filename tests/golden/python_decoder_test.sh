#!/bin/sh
# The decoder that was written from docs/FORMAT.md alone reads every golden frame.
set -u
: "${top_srcdir:=.}"
command -v python3 >/dev/null || { echo "skip python_decoder: no python3"; exit 77; }
failed=0
for frame in "$top_srcdir"/tests/golden/frames/*.frame; do
  name=$(basename "$frame" .frame)
  if python3 "$top_srcdir/tests/golden/decode_frame.py" "$frame" "${frame%.frame}.bin"; then
    echo "ok - $name"
  else
    echo "not ok - $name"
    failed=1
  fi
done
exit $failed
