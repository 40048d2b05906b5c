dnl The libraries that libuzipcoll uses, each with a --with option.

dnl _UZIP_PKG_DIR(dir): lets pkg-config find dir's packages first.
AC_DEFUN([_UZIP_PKG_DIR], [
  PKG_CONFIG_PATH="$1/lib/pkgconfig:$1/lib64/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}"
  export PKG_CONFIG_PATH
])

AC_DEFUN([UZIP_WITH_UCX], [
  AC_ARG_WITH([ucx],
    [AS_HELP_STRING([--with-ucx@<:@=DIR@:>@],
      [UCX 1.13 or newer, installed under DIR or where pkg-config finds it (required)])],
    [], [with_ucx=yes])
  AS_IF([test "x$with_ucx" = xno], [AC_MSG_ERROR([libuzipcoll cannot be built without UCX])])

  uzip_saved_pkg_config_path="$PKG_CONFIG_PATH"
  AS_IF([test "x$with_ucx" != xyes], [
    AS_IF([test -f "$with_ucx/include/ucp/api/ucp.h"], [],
      [AC_MSG_ERROR([--with-ucx=$with_ucx: there is no include/ucp/api/ucp.h in that directory])])
    _UZIP_PKG_DIR([$with_ucx])
  ])
  PKG_CHECK_MODULES([UCX], [ucx >= 1.13], [uzip_have_ucx=yes], [uzip_have_ucx=no])
  AS_IF([test "x$uzip_have_ucx" = xno && test "x$with_ucx" != xyes], [
    UCX_CFLAGS="-I$with_ucx/include"
    UCX_LIBS="-L$with_ucx/lib -lucp -lucs"
    uzip_have_ucx=yes
  ])
  AS_IF([test "x$uzip_have_ucx" = xno], [AC_MSG_ERROR([UCX 1.13 or newer was not found.
  Install it (Debian, Ubuntu: apt-get install libucx-dev; Fedora: ucx-devel)
  or say where it is: --with-ucx=DIR, where DIR/include/ucp/api/ucp.h exists.])])

  uzip_saved_cppflags="$CPPFLAGS"
  uzip_saved_libs="$LIBS"
  CPPFLAGS="$CPPFLAGS $UCX_CFLAGS"
  LIBS="$UCX_LIBS $LIBS"
  AC_MSG_CHECKING([whether a program that uses UCX 1.13 links])
  AC_LANG_PUSH([C])
  AC_LINK_IFELSE([AC_LANG_PROGRAM([[
#include <ucp/api/ucp.h>
#if UCP_API_VERSION < UCP_VERSION(1, 13)
#error "UCX is older than 1.13"
#endif
    ]], [[return ucp_get_version_string() == 0;]])],
    [AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no])
     AC_MSG_ERROR([a program that uses UCX 1.13 or newer does not link; config.log says why.
  Install libucx-dev (Debian, Ubuntu) or give --with-ucx=DIR.])])
  AC_LANG_POP([C])
  CPPFLAGS="$uzip_saved_cppflags"
  LIBS="$uzip_saved_libs"

  uzip_ucx_summary=`$PKG_CONFIG --modversion ucx 2>/dev/null`
  AS_IF([test "x$with_ucx" != xyes], [uzip_ucx_summary="$uzip_ucx_summary in $with_ucx"])
  PKG_CONFIG_PATH="$uzip_saved_pkg_config_path"
])

dnl MPI comes from its compiler wrapper mpicc, which every MPI has.  Only C is used: the two SKIP
dnl macros keep the removed C++ bindings of Open MPI and MPICH out.
AC_DEFUN([UZIP_WITH_MPI], [
  AC_ARG_WITH([mpi],
    [AS_HELP_STRING([--with-mpi@<:@=DIR@:>@],
      [build libuzipcoll-mpi with DIR/bin/mpicc or the mpicc in PATH @<:@auto@:>@])],
    [], [with_mpi=auto])
  uzip_have_mpi=no
  uzip_mpi_summary=no
  AS_IF([test "x$with_mpi" != xno], [
    AS_CASE([$with_mpi],
      [yes|auto], [uzip_mpi_path="$PATH"],
      [uzip_mpi_path="$with_mpi/bin"])
    AC_PATH_PROG([MPICC], [mpicc], [], [$uzip_mpi_path])
    AC_PATH_PROGS([MPIRUN], [mpirun mpiexec], [], [$uzip_mpi_path])
    AS_IF([test -n "$MPICC"], [
      uzip_mpi_words=`$MPICC -show 2>/dev/null`
      MPI_CFLAGS="-DOMPI_SKIP_MPICXX -DMPICH_SKIP_MPICXX"
      MPI_LIBS=
      for uzip_word in $uzip_mpi_words; do
        AS_CASE([$uzip_word],
          [-I*|-D*], [AS_VAR_APPEND([MPI_CFLAGS], [" $uzip_word"])],
          [-L*|-l*|-Wl,*|-pthread], [AS_VAR_APPEND([MPI_LIBS], [" $uzip_word"])])
      done
      uzip_saved_cppflags="$CPPFLAGS"
      uzip_saved_libs="$LIBS"
      CPPFLAGS="$CPPFLAGS $MPI_CFLAGS"
      LIBS="$MPI_LIBS $LIBS"
      AC_MSG_CHECKING([whether an MPI program links])
      AC_LANG_PUSH([C])
      AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <mpi.h>]], [[return MPI_Init(0, 0);]])],
        [uzip_have_mpi=yes])
      AC_LANG_POP([C])
      AC_MSG_RESULT([$uzip_have_mpi])
      CPPFLAGS="$uzip_saved_cppflags"
      LIBS="$uzip_saved_libs"
    ])
    AS_IF([test "x$uzip_have_mpi" = xyes],
      [uzip_mpi_summary="$MPICC"],
      [AS_IF([test "x$with_mpi" = xauto],
        [uzip_mpi_summary="no (no working mpicc; --with-mpi=DIR)"],
        [AC_MSG_ERROR([--with-mpi=$with_mpi: no working mpicc.
  Install an MPI (Debian, Ubuntu: apt-get install libopenmpi-dev openmpi-bin)
  or give --with-mpi=DIR, where DIR/bin/mpicc exists.])])])
  ])
  AS_IF([test "x$uzip_have_mpi" = xno], [MPI_CFLAGS= MPI_LIBS= MPIRUN=])
  AC_SUBST([MPI_CFLAGS])
  AC_SUBST([MPI_LIBS])
  AM_CONDITIONAL([HAVE_MPI], [test "x$uzip_have_mpi" = xyes])
])

AC_DEFUN([UZIP_WITH_HWLOC], [
  AC_ARG_WITH([hwloc],
    [AS_HELP_STRING([--with-hwloc], [hwloc 2, to count cores @<:@auto@:>@])],
    [], [with_hwloc=auto])
  uzip_have_hwloc=no
  uzip_hwloc_summary=no
  AS_IF([test "x$with_hwloc" != xno], [
    PKG_CHECK_MODULES([HWLOC], [hwloc >= 2.0], [uzip_have_hwloc=yes],
      [AS_IF([test "x$with_hwloc" = xauto], [],
        [AC_MSG_ERROR([--with-hwloc: hwloc 2 was not found (Debian, Ubuntu: libhwloc-dev)])])])
  ])
  AS_IF([test "x$uzip_have_hwloc" = xyes],
    [uzip_hwloc_summary=`$PKG_CONFIG --modversion hwloc`
     AC_DEFINE([UZIP_HAVE_HWLOC], [1], [hwloc counts the cores.])])
  AM_CONDITIONAL([HAVE_HWLOC], [test "x$uzip_have_hwloc" = xyes])
])

dnl _UZIP_WITH_GPU(option, NAME, compiler, default directories, word)
AC_DEFUN([_UZIP_WITH_GPU], [
  AC_ARG_WITH([$1],
    [AS_HELP_STRING([--with-$1@<:@=DIR@:>@], [DIR/bin/$3 or the $3 that is found @<:@auto@:>@])],
    [], [with_$1=auto])
  uzip_have_$1=no
  uzip_$1_summary=no
  AS_IF([test "x$with_$1" != xno], [
    AS_CASE([$with_$1],
      [yes|auto], [uzip_gpu_path="$PATH"
                   for uzip_dir in $4; do uzip_gpu_path="$uzip_gpu_path:$uzip_dir/bin"; done],
      [uzip_gpu_path="$with_$1/bin"])
    AC_PATH_PROG([$2], [$3], [], [$uzip_gpu_path])
    AS_IF([test -n "$[]$2"],
      [uzip_have_$1=yes
       uzip_$1_summary="$[]$2"
       $5_DIR=`dirname "$[]$2"`
       $5_DIR=`dirname "$[]$5_DIR"`],
      [AS_IF([test "x$with_$1" = xauto], [],
        [AC_MSG_ERROR([--with-$1=$with_$1: $3 was not found; give --with-$1=DIR, where DIR/bin/$3 exists])])])
  ])
  AC_SUBST([$5_DIR])
])

dnl _UZIP_GPU_COMPILES(option, word, compiler command, header that kernels need): drops a compiler that does not work.
AC_DEFUN([_UZIP_GPU_COMPILES], [
  AS_IF([test "x$uzip_have_$1" = xyes], [
    AC_MSG_CHECKING([whether $3 works])
    AS_ECHO(["m4_ifval([$4], [@%:@include <$4>])"]) > conftest.cu
    AS_ECHO(["__global__ void kernel(int* x) { *x = 1; }"]) >> conftest.cu
    AS_IF([$3 -c conftest.cu -o conftest.o >&AS_MESSAGE_LOG_FD 2>&1],
      [AC_MSG_RESULT([yes])],
      [AC_MSG_RESULT([no])
       AS_IF([test "x$with_$1" = xauto], [],
         [AC_MSG_ERROR([--with-$1=$with_$1: a small kernel does not compile; config.log says why])])
       uzip_have_$1=no
       uzip_$1_summary="no (its compiler does not work)"])
    rm -f conftest.cu conftest.o
  ])
  AM_CONDITIONAL([HAVE_$2], [test "x$uzip_have_$1" = xyes])
])

dnl Machine code for the processor that is measured, and PTX that all others from sm_80 on compile
dnl when they load it: machine code for each would double the time of a build.
AC_DEFUN([UZIP_WITH_CUDA], [
  _UZIP_WITH_GPU([cuda], [NVCC], [nvcc], [/usr/local/cuda], [CUDA])
  AC_ARG_VAR([CUDA_ARCH_FLAGS], [what nvcc compiles for])
  AS_IF([test -z "$CUDA_ARCH_FLAGS"], [CUDA_ARCH_FLAGS="-gencode=arch=compute_90,code=sm_90 \
-gencode=arch=compute_80,code=compute_80"])
  _UZIP_GPU_COMPILES([cuda], [CUDA], [$NVCC -std=c++20 $CUDA_ARCH_FLAGS])
  AS_CASE(["$CXX"], [ccache\ *], [NVCC="ccache $NVCC"])
])
dnl Nothing of it was ever run, so it must be asked for.
AC_DEFUN([UZIP_WITH_ROCM], [
  AS_IF([test "x${with_rocm+set}" = xset], [], [with_rocm=no])
  _UZIP_WITH_GPU([rocm], [HIPCC], [hipcc], [/opt/rocm], [ROCM])
  AC_ARG_VAR([HIP_ARCH_FLAGS], [what hipcc compiles for])
  AS_IF([test -z "$HIP_ARCH_FLAGS"], [HIP_ARCH_FLAGS="--offload-arch=gfx90a"])
  _UZIP_GPU_COMPILES([rocm], [ROCM], [$HIPCC -x hip -std=c++20 $HIP_ARCH_FLAGS], [hip/hip_runtime.h])
])

AC_DEFUN([UZIP_CHECK_GTEST], [
  PKG_CHECK_MODULES([GTEST], [gtest_main], [uzip_have_gtest=yes], [uzip_have_gtest=no])
  AS_IF([test "x$uzip_have_gtest" = xyes],
    [uzip_gtest_summary="GoogleTest `$PKG_CONFIG --modversion gtest_main`"],
    [uzip_gtest_summary="no (Debian, Ubuntu: libgtest-dev)"])
  AM_CONDITIONAL([HAVE_GTEST], [test "x$uzip_have_gtest" = xyes])
])

dnl Google Benchmark, for perf/codec.
AC_DEFUN([UZIP_CHECK_BENCHMARK], [
  PKG_CHECK_MODULES([BENCHMARK], [benchmark], [uzip_have_benchmark=yes], [uzip_have_benchmark=no])
  AM_CONDITIONAL([HAVE_BENCHMARK], [test "x$uzip_have_benchmark" = xyes])
])

dnl _UZIP_PEER(name, header, library, function): adds a compressor to PEERS_CFLAGS and PEERS_LIBS.
AC_DEFUN([_UZIP_PEER], [
  AC_CHECK_HEADER([$2], [AC_CHECK_LIB([$3], [$4], [
    AS_VAR_APPEND([PEERS_CFLAGS], [" -DPERF_WITH_$1"])
    AS_VAR_APPEND([PEERS_LIBS], [" -l$3"])
    AS_VAR_APPEND([uzip_peers_summary], [" $3"])
  ])])
])

dnl Other lossless compressors, as neighbours in the table of perf/codec; never for the library.
AC_DEFUN([UZIP_CHECK_PEERS], [
  AC_ARG_WITH([peers],
    [AS_HELP_STRING([--without-peers],
      [leave lz4, zstd, blosc, fpzip and zfp out of perf/codec, the only place that uses them])],
    [], [with_peers=auto])
  PEERS_CFLAGS= PEERS_LIBS= uzip_peers_summary=
  AS_IF([test "x$with_peers" != xno], [
    AC_LANG_PUSH([C])
    _UZIP_PEER([LZ4], [lz4.h], [lz4], [LZ4_compress_default])
    _UZIP_PEER([ZSTD], [zstd.h], [zstd], [ZSTD_compressCCtx])
    _UZIP_PEER([BLOSC], [blosc.h], [blosc], [blosc_compress_ctx])
    _UZIP_PEER([FPZIP], [fpzip.h], [fpzip], [fpzip_write])
    _UZIP_PEER([ZFP], [zfp.h], [zfp], [zfp_stream_set_reversible])
    AC_LANG_POP([C])
  ])
  AS_IF([test -z "$uzip_peers_summary"], [uzip_peers_summary=" none"])
  AC_SUBST([PEERS_CFLAGS])
  AC_SUBST([PEERS_LIBS])
])
