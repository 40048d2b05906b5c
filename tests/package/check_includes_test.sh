#!/bin/sh
# tools/check-includes finds planted violations, and only those.
set -u
command -v python3 >/dev/null 2>&1 || { echo "skip check-includes: no python3 here"; exit 77; }
tree=$(mktemp -d "${TMPDIR:-/tmp}/uzipcoll-includes.XXXXXX") || exit 1
trap 'rm -rf "$tree"' EXIT
status=0

# put FILE TEXT...: writes one line for each TEXT.
put() {
  mkdir -p "$tree/$(dirname "$1")"
  file=$tree/$1
  shift
  printf '%s\n' "$@" > "$file"
}
# clean_tree: a small tree that keeps all rules.
clean_tree() {
  rm -rf "$tree"/*
  put include/uzipcoll/uzipcoll.h '#include <stddef.h>'
  put include/uzipcoll/uzipcoll_mpi.h '#include <mpi.h>' '#include <uzipcoll/uzipcoll.h>'
  put src/base/status.hpp '#include <uzipcoll/uzipcoll.h>' '#include <vector>'
  put src/base/config.cpp '#include "config.h"' '#include <cstdlib>' 'const char* p = std::getenv("A");'
  put src/algos/ring.hpp '#include "base/status.hpp"'
  put src/codec/raw.hpp '#include "../base/status.hpp"'
  put src/ucx/worker.hpp '#include <ucp/api/ucp.h>' '#include "base/status.hpp"'
  put src/comm/engine.cpp '#include "algos/ring.hpp"' '#include "codec/raw.hpp"' \
    '#include "ucx/worker.hpp"' '// never abort() here' 'int n = 1'"'"'000;' \
    'const char* text = "call exit(1) or getenv(x)";' 'int snprintf(int);' 'void f() { x.abort(); }'
  put src/mpi/glue.cpp '#include <mpi.h>' '#include <uzipcoll/uzipcoll_mpi.h>' '#include "comm/engine.cpp"'
  put src/base/sources.am '# never -ffast-math' 'base_sources ='
  put perf/allreduce.cpp '#include <uzipcoll/uzipcoll.h>' '#include <mpi.h>' '#include "perf_data.hpp"'
  put perf/codec.cpp '#include "codec/raw.hpp"' '#include "base/status.hpp"' '#include <benchmark/benchmark.h>'
  put perf/peer_codecs.cpp '#include <zstd.h>' '#include "base/status.hpp"'
  put perf/perf_data.hpp '#include <vector>'
  put tests/base/status_test.cpp '#include "base/status.hpp"' '#include <gtest/gtest.h>'
}
# finds WHERE WHAT FILE LINE...: with that file in the tree there is one violation, at WHERE.
finds() {
  where=$1
  what=$2
  shift 2
  clean_tree
  put "$@"
  found=$("$top_srcdir/tools/check-includes" "$tree")
  code=$?
  if [ $code -eq 1 ] && [ "$(printf '%s\n' "$found" | wc -l)" -eq 1 ] &&
     case $found in "$where: "*) true ;; *) false ;; esac; then
    echo "ok - finds $what"
  else
    printf 'exit status %s, expected one line at %s:\n%s\n' $code "$where" "$found"
    echo "not ok - finds $what"
    status=1
  fi
}

clean_tree
if "$top_srcdir/tools/check-includes" "$tree"; then
  echo "ok - accepts a clean tree"
else
  echo "not ok - accepts a clean tree"
  status=1
fi

finds src/algos/x.cpp:2 "a sibling" src/algos/x.cpp '#include "base/status.hpp"' '#include "codec/raw.hpp"'
finds src/codec/x.cpp:1 "a sibling by a relative path" src/codec/x.cpp '#include "../algos/ring.hpp"'
finds src/codec/x.cpp:1 "another compressor in the library" src/codec/x.cpp '#include <zstd.h>'
finds src/ucx/x.cpp:1 "ucx that includes comm" src/ucx/x.cpp '#include "comm/engine.cpp"'
finds src/base/x.cpp:1 "base that includes algos" src/base/x.cpp '#include "algos/ring.hpp"'
finds src/base/x.cpp:1 "base that includes another library" src/base/x.cpp '#include <hwloc.h>'
finds src/base/x.cpp:1 "base that includes an unknown library" src/base/x.cpp '#include <boost/any.hpp>'
finds src/comm/x.cpp:1 "comm that includes mpi" src/comm/x.cpp '#include "mpi/glue.cpp"'
finds src/comm/x.cpp:3 "UCX outside src/ucx" src/comm/x.cpp '/* one' 'two */' '#include <ucp/api/ucp.h>'
finds src/comm/x.cpp:1 "MPI outside src/mpi" src/comm/x.cpp '#include <mpi.h>'
finds src/gpu/x.cpp:1 "gpu that includes ucx" src/gpu/x.cpp '#include "ucx/worker.hpp"'
finds perf/x.cpp:1 "perf that includes src" perf/x.cpp '#include "base/status.hpp"'
finds perf/codec.cpp:1 "the codec's benchmark that includes more" perf/codec.cpp '#include "comm/engine.cpp"'
finds perf/x/codec.cpp:1 "another codec.cpp that includes src" perf/x/codec.cpp '#include "codec/raw.hpp"'
finds examples/x.c:1 "an example that includes src" examples/x.c '#include "../src/base/status.hpp"'
finds include/uzipcoll/x.h:1 "a public header that includes MPI" include/uzipcoll/x.h '#include <mpi.h>'
finds src/comm/x.cpp:1 "an include of nothing" src/comm/x.cpp '#include "nowhere.hpp"'
finds src/comm/x.cpp:1 "getenv" src/comm/x.cpp 'const char* p = getenv("HOME");'
finds src/ucx/x.cpp:1 "secure_getenv" src/ucx/x.cpp 'const char* p = secure_getenv("HOME");'
finds src/comm/x.cpp:2 "abort" src/comm/x.cpp 'const char* t = "// not a comment";' 'void f() { std::abort(); }'
finds src/comm/x.cpp:1 "exit" src/comm/x.cpp 'void f() { exit(1); }'
finds src/comm/x.cpp:1 "std::cout" src/comm/x.cpp 'void f() { std::cout << 1; }'
finds src/codec/sources.am:1 "fast math in a makefile" src/codec/sources.am 'x_CXXFLAGS = -ffast-math'
finds src/codec/x.cpp:1 "fast math in a pragma" src/codec/x.cpp '#pragma GCC optimize("fast-math")'
exit $status
