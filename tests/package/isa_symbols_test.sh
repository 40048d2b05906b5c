#!/bin/sh
# Objects built for one instruction set define no weak symbols: of an inline function that several
# objects define the linker keeps any one, and the one built with -mavx512f would then run on
# machines without it.
set -u
if [ -n "$DEBUG_BUILD" ]; then
  echo "skip weak symbols: without optimisation nothing is inlined"
  exit 77
fi
status=0
found=
for archive in "$top_builddir"/.libs/libuzip_*avx*.a; do
  [ -e "$archive" ] || continue
  found=yes
  name=$(basename "$archive" .a)
  weak=$(nm -C --defined-only "$archive" | awk '$2 ~ /^[WVu]$/')
  if [ -z "$weak" ]; then
    echo "ok - $name defines no weak symbols"
  else
    printf '%s\n' "$weak"
    echo "not ok - $name defines no weak symbols"
    status=1
  fi
done
if [ -z "$found" ]; then
  echo "skip weak symbols: no kernels for one instruction set in this build"
  exit 77
fi
exit $status
