#!/bin/sh
# The public headers compile alone, as strict C99 and as C++, with no MPI, UCX or CUDA header (but
# for uzipcoll_mpi.h).
set -u
status=0

# try NAME COMMAND...: the command must accept the source on its standard input.
try() {
  name=$1
  shift
  if "$@" -fsyntax-only -; then echo "ok - $name"; else echo "not ok - $name"; status=1; fi
}

warnings="-Wall -Wextra -Werror -I$top_srcdir/include"
for header in "$top_srcdir"/include/uzipcoll/*.h; do
  header=$(basename "$header")
  mpi=
  if [ "$header" = uzipcoll_mpi.h ]; then
    if [ -z "$MPIRUN" ]; then
      echo "skip $header: configured without MPI"
      continue
    fi
    # MPI's own header need not be as strict as ours.
    mpi=$(printf '%s' "$MPI_CFLAGS" | sed 's/-I/-isystem /g')
  fi
  for standard in c99 c11; do
    echo "#include <uzipcoll/$header>" |
      try "$header as $standard" $CC -x c -std=$standard -pedantic $warnings -Wstrict-prototypes $mpi
  done
  for standard in c++11 c++20; do
    echo "#include <uzipcoll/$header>" |
      try "$header as $standard" $CXX -x c++ -std=$standard -pedantic $warnings $mpi
  done
done
exit $status
