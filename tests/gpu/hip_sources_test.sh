#!/bin/sh
# The GPU sources are HIP as well: hipcc accepts each of them, for the host and for an AMD GPU. No code is made, which would
# take many minutes.
set -u
hipcc=${HIPCC:-$(command -v hipcc || echo /opt/rocm/bin/hipcc)}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# accepts FILE: what hipcc says goes to the work folder.
accepts() {
  "$hipcc" -x hip -std=c++20 ${HIP_ARCH_FLAGS:---offload-arch=gfx90a} -ffp-contract=off -fsyntax-only \
    -Wno-unused-command-line-argument -I"$top_srcdir/include" -I"$top_srcdir/src" "$1" > "$work/$(basename "$1").log" 2>&1
}

printf '#include <hip/hip_runtime.h>\n__global__ void nothing() {}\n' > "$work/nothing.cu"
if ! accepts "$work/nothing.cu"; then
  echo "skip hip sources: no hipcc here that compiles"
  exit 77
fi

# As many at a time as there are cores.
at_once=$(nproc 2>/dev/null || echo 2)
set --
for file in "$top_srcdir"/src/gpu/*.cu; do
  accepts "$file" && : > "$work/$(basename "$file").ok" &
  set -- "$@" "$file"
  [ $(($# % at_once)) -eq 0 ] && wait
done
wait

status=0
for file in "$@"; do
  name=$(basename "$file")
  if [ -e "$work/$name.ok" ]; then
    echo "ok - hipcc accepts $name"
  else
    cat "$work/$name.log"
    echo "not ok - hipcc accepts $name"
    status=1
  fi
done
exit $status
