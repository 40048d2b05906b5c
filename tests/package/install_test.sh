#!/bin/sh
# What `make install` leaves can be used: C programs build with pkg-config and with CMake from an
# installed tree that was moved, and run.
set -u
tree=$(mktemp -d "${TMPDIR:-/tmp}/uzipcoll-install.XXXXXX") || exit 1
trap 'rm -rf "$tree"' EXIT
status=0

# try NAME COMMAND...
try() {
  name=$1
  shift
  if "$@" </dev/null; then echo "ok - $name"; else echo "not ok - $name"; status=1; fi
}

unset MAKEFLAGS MFLAGS MAKELEVEL VERBOSE
"$MAKE" -C "$top_builddir" install DESTDIR="$tree/root" >"$tree/install.log" 2>&1 || {
  cat "$tree/install.log"
  echo "not ok - make install"
  exit 1
}
echo "ok - make install"
libdir=$tree/root$libdir
pkgconfig=$tree/root$pkgconfigdir
LD_LIBRARY_PATH="$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export LD_LIBRARY_PATH

mkdir "$tree/program"
cd "$tree/program" || exit 1
cat > hello.c <<'END'
#include <uzipcoll/uzipcoll.h>
int main(void) { return uzip_version_string()[0] == '\0'; }
END
cat > hello_mpi.c <<'END'
#include <uzipcoll/uzipcoll_mpi.h>
int main(void) { return uzip_comm_create_from_mpi(MPI_COMM_NULL, NULL) == UZIP_OK; }
END
cat > CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.21)
project(hello C)
if(WITH_MPI)
  find_package(uzipcoll 0.1 REQUIRED COMPONENTS mpi)
  add_executable(hello_mpi_cmake hello_mpi.c)
  target_link_libraries(hello_mpi_cmake PRIVATE uzipcoll::mpi)
else()
  find_package(uzipcoll 0.1 REQUIRED)
endif()
add_executable(hello_cmake hello.c)
target_link_libraries(hello_cmake PRIVATE uzipcoll::uzipcoll)
END

with_pkg_config() {
  flags=$(PKG_CONFIG_PATH="$pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}" PKG_CONFIG_SYSROOT_DIR="$tree/root" \
    "$PKG_CONFIG" --cflags --libs uzipcoll) || return 1
  $CC $SANITIZER_FLAGS -std=c99 hello.c -o hello $flags && ./hello
}
try "a C program with pkg-config" with_pkg_config

with_cmake() {
  cmake -S . -B "$1" -DWITH_MPI="$2" -DCMAKE_PREFIX_PATH="$tree/root$prefix" \
    -DCMAKE_C_FLAGS="$SANITIZER_FLAGS" >cmake.log 2>&1 &&
    cmake --build "$1" >>cmake.log 2>&1 || { cat cmake.log; return 1; }
  "$1/hello_cmake"
}
if command -v cmake >/dev/null 2>&1; then
  try "a C program with CMake" with_cmake plain OFF
  if [ -n "$MPIRUN" ]; then
    try "a C program with CMake and MPI builds" with_cmake mpi ON
  else
    echo "skip a C program with CMake and MPI: configured without MPI"
  fi
else
  echo "skip a C program with CMake: no cmake here"
fi
exit $status
