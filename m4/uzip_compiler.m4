dnl Compiler, warning, sanitizer and instruction-set flags.

dnl _UZIP_FLAG_IF_WORKS(variable, flag): appends flag when the current language's compiler takes it.
AC_DEFUN([_UZIP_FLAG_IF_WORKS], [
  AC_MSG_CHECKING([whether the _AC_LANG compiler accepts $2])
  AS_VAR_COPY([uzip_saved_flags], [_AC_LANG_PREFIX[FLAGS]])
  AS_VAR_SET([_AC_LANG_PREFIX[FLAGS]], ["$uzip_saved_flags -Werror $2"])
  AC_COMPILE_IFELSE([AC_LANG_PROGRAM()],
    [uzip_flag_works=yes
     AS_VAR_APPEND([$1], [" $2"])],
    [uzip_flag_works=no])
  AS_VAR_COPY([_AC_LANG_PREFIX[FLAGS]], [uzip_saved_flags])
  AC_MSG_RESULT([$uzip_flag_works])
])

AC_DEFUN([UZIP_CXX20], [
  AC_LANG_PUSH([C++])
  uzip_cxx20=no
  AC_MSG_CHECKING([for the flag that selects C++20])
  uzip_saved_cxxflags="$CXXFLAGS"
  for uzip_std in -std=c++20 -std=c++2a; do
    CXXFLAGS="$uzip_saved_cxxflags $uzip_std"
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
#include <bit>
#include <concepts>
#include <cstdint>
#include <span>
template <std::integral T> T twice(T x) { return x + x; }
      ]], [[
std::uint32_t words[2] = {1, 2};
std::span<std::uint32_t> s(words);
return std::popcount(s[0]) + static_cast<int>(twice(s[1])) == 5 ? 0 : 1;
      ]])], [uzip_cxx20="$uzip_std"; break])
  done
  CXXFLAGS="$uzip_saved_cxxflags"
  AC_MSG_RESULT([$uzip_cxx20])
  AS_IF([test "x$uzip_cxx20" = xno],
    [AC_MSG_ERROR([a C++20 compiler is needed: g++ 11 or clang++ 14, or newer])])
  AC_SUBST([CXX20_FLAGS], [$uzip_cxx20])
  AC_LANG_POP([C++])
])

AC_DEFUN([UZIP_C99], [
  AC_SUBST([C99_FLAGS], ["-std=c99"])
])

dnl Flags shared by everything that is compiled here:
dnl UZIP_CPPFLAGS, UZIP_CFLAGS, UZIP_CXXFLAGS, UZIP_LDFLAGS.
AC_DEFUN([UZIP_BUILD_FLAGS], [
  AC_ARG_ENABLE([debug],
    [AS_HELP_STRING([--enable-debug], [-O0 -g and assertions on [no]])], [], [enable_debug=no])
  AC_ARG_ENABLE([werror],
    [AS_HELP_STRING([--enable-werror], [treat warnings as errors [no]])], [], [enable_werror=no])
  AC_ARG_ENABLE([asan],
    [AS_HELP_STRING([--enable-asan], [build with AddressSanitizer [no]])], [], [enable_asan=no])
  AC_ARG_ENABLE([ubsan],
    [AS_HELP_STRING([--enable-ubsan], [build with UndefinedBehaviorSanitizer [no]])],
    [], [enable_ubsan=no])
  AC_ARG_ENABLE([tsan],
    [AS_HELP_STRING([--enable-tsan], [build with ThreadSanitizer [no]])], [], [enable_tsan=no])
  AC_ARG_ENABLE([fuzzers],
    [AS_HELP_STRING([--enable-fuzzers],
      [build with both sanitizers and libFuzzer (needs CC=clang CXX=clang++), for make tests/fuzz/fuzzer @<:@no@:>@])],
    [], [enable_fuzzers=no])
  AS_IF([test "x$enable_fuzzers" = xyes], [enable_asan=yes enable_ubsan=yes])

  AS_IF([test "x$enable_asan" = xyes && test "x$enable_tsan" = xyes],
    [AC_MSG_ERROR([--enable-asan and --enable-tsan exclude each other])])

  uzip_sanitizers=
  AS_IF([test "x$enable_asan" = xyes], [uzip_sanitizers="$uzip_sanitizers -fsanitize=address"])
  AS_IF([test "x$enable_ubsan" = xyes],
    dnl An enum from a C program may hold any integer: the library looks at it, and refuses it.
    [uzip_sanitizers="$uzip_sanitizers -fsanitize=undefined -fno-sanitize=enum -fno-sanitize-recover=undefined -DUZIP_SANITIZE_UNDEFINED"])
  AS_IF([test "x$enable_tsan" = xyes], [uzip_sanitizers="$uzip_sanitizers -fsanitize=thread"])
  AS_IF([test "x$enable_fuzzers" = xyes], [
    uzip_fuzzer_flag=
    AC_LANG_PUSH([C++])
    _UZIP_FLAG_IF_WORKS([uzip_fuzzer_flag], [-fsanitize=fuzzer-no-link])
    AC_LANG_POP([C++])
    AS_IF([test -z "$uzip_fuzzer_flag"],
      [AC_MSG_ERROR([--enable-fuzzers needs clang: ./configure CC=clang CXX=clang++ --enable-fuzzers])])
    AS_VAR_APPEND([uzip_sanitizers], [" $uzip_fuzzer_flag"])
  ])
  AS_IF([test -n "$uzip_sanitizers"],
    [uzip_sanitizer_flags="$uzip_sanitizers -fno-omit-frame-pointer"],
    [uzip_sanitizer_flags=])

  UZIP_CPPFLAGS=
  AS_IF([test "x$enable_debug" = xyes],
    [uzip_build_summary="debug, assertions on"
     DEBUG_BUILD=1
     uzip_optimize="-O0 -g"],
    [uzip_build_summary="release"
     DEBUG_BUILD=
     uzip_optimize=
     UZIP_CPPFLAGS="-DNDEBUG"])
  AS_IF([test -n "$uzip_sanitizers"], [AS_VAR_APPEND([uzip_build_summary], [",$uzip_sanitizers"])])
  AS_IF([test "x$enable_werror" = xyes], [AS_VAR_APPEND([uzip_build_summary], [", -Werror"])])

  dnl autoconf's own default, -O2 -g, would stand after ours and win.
  AS_IF([test -n "$uzip_optimize"], [
    CFLAGS=`AS_ECHO([" $CFLAGS "]) | $SED 's/ -O@<:@0-9sgz@:>@* / /g; s/^ *//; s/ *$//'`
    CXXFLAGS=`AS_ECHO([" $CXXFLAGS "]) | $SED 's/ -O@<:@0-9sgz@:>@* / /g; s/^ *//; s/ *$//'`
  ])

  AC_LANG_PUSH([C])
  UZIP_CFLAGS="$uzip_optimize -Wall -Wextra"
  AS_IF([test "x$enable_werror" = xyes], [AS_VAR_APPEND([UZIP_CFLAGS], [" -Werror"])])
  AS_VAR_APPEND([UZIP_CFLAGS], [" $uzip_sanitizer_flags"])
  AC_LANG_POP([C])

  AC_LANG_PUSH([C++])
  UZIP_CXXFLAGS="$CXX20_FLAGS -pthread $uzip_optimize -Wall -Wextra"
  AS_IF([test "x$enable_werror" = xyes], [AS_VAR_APPEND([UZIP_CXXFLAGS], [" -Werror"])])
  _UZIP_FLAG_IF_WORKS([UZIP_CXXFLAGS], [-fvisibility=hidden])
  _UZIP_FLAG_IF_WORKS([UZIP_CXXFLAGS], [-fvisibility-inlines-hidden])
  dnl A fused multiply-add rounds once, so the bits of a reduction would depend on the kernel.
  _UZIP_FLAG_IF_WORKS([UZIP_CXXFLAGS], [-ffp-contract=off])
  AS_VAR_APPEND([UZIP_CXXFLAGS], [" $uzip_sanitizer_flags"])
  AC_LANG_POP([C++])

  AC_SUBST([DEBUG_BUILD])
  AC_SUBST([UZIP_CPPFLAGS])
  AC_SUBST([UZIP_CFLAGS])
  AC_SUBST([UZIP_CXXFLAGS])
  AC_SUBST([UZIP_LDFLAGS], [$uzip_sanitizer_flags])
  AM_CONDITIONAL([SANITIZED], [test -n "$uzip_sanitizers"])
  AM_CONDITIONAL([FUZZERS], [test "x$enable_fuzzers" = xyes])
])

dnl _UZIP_ISA(name, flags): sets uzip_have_<name>.
AC_DEFUN([_UZIP_ISA], [
  uzip_isa_$1=
  AS_IF([test "x$host_cpu" = xx86_64], [_UZIP_FLAG_IF_WORKS([uzip_isa_$1], [$2])])
  AS_IF([test -n "$uzip_isa_$1"], [uzip_have_$1=yes], [uzip_have_$1=no])
])

dnl Flags for the kernels that are chosen at run time.  Whoever dispatches to a kernel must find
dnl every feature named here in the processor.
AC_DEFUN([UZIP_ISA_FLAGS], [
  AC_LANG_PUSH([C++])
  _UZIP_ISA([avx2], [-mavx2 -mbmi -mbmi2 -mlzcnt -mpopcnt -mf16c])
  _UZIP_ISA([avx512], [-mavx2 -mbmi -mbmi2 -mlzcnt -mpopcnt -mf16c -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vbmi -mavx512vbmi2 -mavx512bitalg])
  AC_LANG_POP([C++])
  AC_SUBST([AVX2_CXXFLAGS], [$uzip_isa_avx2])
  AC_SUBST([AVX512_CXXFLAGS], [$uzip_isa_avx512])
  AM_CONDITIONAL([HAVE_AVX2_FLAGS], [test "x$uzip_have_avx2" = xyes])
  AM_CONDITIONAL([HAVE_AVX512_FLAGS], [test "x$uzip_have_avx512" = xyes])
  AS_IF([test "x$uzip_have_avx2" = xyes],
    [AC_DEFINE([UZIP_HAVE_AVX2_KERNELS], [1], [The AVX2 kernels are compiled in.])])
  AS_IF([test "x$uzip_have_avx512" = xyes],
    [AC_DEFINE([UZIP_HAVE_AVX512_KERNELS], [1], [The AVX-512 kernels are compiled in.])])
])

AC_DEFUN([UZIP_VERSION_SCRIPT], [
  AC_LANG_PUSH([C])
  AC_CACHE_CHECK([whether the linker takes a version script], [uzip_cv_version_script], [
    AS_ECHO(["UZIPCOLL_0 { global: uzip_*; local: *; };"]) > conftest.map
    uzip_saved_ldflags="$LDFLAGS"
    LDFLAGS="$LDFLAGS -Wl,--version-script=conftest.map"
    AC_LINK_IFELSE([AC_LANG_PROGRAM()], [uzip_cv_version_script=yes], [uzip_cv_version_script=no])
    LDFLAGS="$uzip_saved_ldflags"
    rm -f conftest.map
  ])
  AC_LANG_POP([C])
  AM_CONDITIONAL([HAVE_VERSION_SCRIPT], [test "x$uzip_cv_version_script" = xyes])
])
