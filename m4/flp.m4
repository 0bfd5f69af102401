dnl The checks that configure.ac is made of.

dnl FLP_COMPILER_FLAGS(VARIABLE, FLAGS): VARIABLE is FLAGS where the compiler and linker take all of them, else empty.
AC_DEFUN([FLP_COMPILER_FLAGS], [
  AC_MSG_CHECKING([whether $CC takes $2])
  flp_saved_cflags=$CFLAGS
  CFLAGS="$CFLAGS $2"
  AC_LINK_IFELSE([AC_LANG_PROGRAM()], [$1="$2"; AC_MSG_RESULT([yes])], [$1=; AC_MSG_RESULT([no])])
  CFLAGS=$flp_saved_cflags
  AC_SUBST([$1])
])

dnl FLP_PKG_ANY(PREFIX, MODULES, VERSION, NAME): the first of several pkg-config names that is there; an error without one.
AC_DEFUN([FLP_PKG_ANY], [
  AC_ARG_VAR([$1_CFLAGS], [compiler flags for $4, instead of pkg-config's])
  AC_ARG_VAR([$1_LIBS], [linker flags for $4, instead of pkg-config's])
  AC_MSG_CHECKING([for $4])
  AS_IF([test -n "$$1_LIBS"], [AC_MSG_RESULT([$$1_LIBS])], [
    flp_module=
    for flp_candidate in $2; do
      AS_IF([$PKG_CONFIG --exists "$flp_candidate $3"], [flp_module=$flp_candidate; break])
    done
    AS_IF([test -z "$flp_module"],
      [AC_MSG_RESULT([no])
       AC_MSG_ERROR([$4 was not found. pkg-config knows none of: $2 ($3)])])
    $1_CFLAGS=`$PKG_CONFIG --cflags "$flp_module"`
    $1_LIBS=`$PKG_CONFIG --libs "$flp_module"`
    AC_MSG_RESULT([$flp_module])
  ])
])

dnl FLP_CUDA_HEADERS: where cuda.h, nvrtc.h and nvml.h are installed, a test compares them with our own declarations.
AC_DEFUN([FLP_CUDA_HEADERS], [
  CUDA_CPPFLAGS=
  for flp_directory in "$CUDA_HOME" "$CUDA_PATH" /usr/local/cuda; do
    AS_IF([test -n "$flp_directory" && test -f "$flp_directory/include/cuda.h"],
      [CUDA_CPPFLAGS="-isystem $flp_directory/include"; break])
  done
  flp_saved_cppflags=$CPPFLAGS
  CPPFLAGS="$CPPFLAGS $CUDA_CPPFLAGS"
  AC_CHECK_HEADER([cuda.h], [CUDA_CPPFLAGS="$CUDA_CPPFLAGS -DHAVE_CUDA_H=1"])
  AC_CHECK_HEADER([nvrtc.h], [CUDA_CPPFLAGS="$CUDA_CPPFLAGS -DHAVE_NVRTC_H=1"])
  AC_CHECK_HEADER([nvml.h], [CUDA_CPPFLAGS="$CUDA_CPPFLAGS -DHAVE_NVML_H=1"])
  CPPFLAGS=$flp_saved_cppflags
  AC_SUBST([CUDA_CPPFLAGS])
])

dnl FLP_HOST_MACHINE: whether the C++ compiler can build the host machine, a GPU simulator that runs kernels on the CPU, and the kernels. The machine sees the
dnl kernels' accesses through the calls that the thread sanitizer inserts; the memory that they access is under the address sanitizer.
AC_DEFUN([FLP_HOST_MACHINE], [
  AC_LANG_PUSH([C++])
  AC_MSG_CHECKING([whether $CXX builds the host machine])
  have_host_machine=no
  flp_saved_cxxflags=$CXXFLAGS
  CXXFLAGS="$CXXFLAGS -std=gnu++17 -fsanitize=thread"
  AC_COMPILE_IFELSE([AC_LANG_PROGRAM([], [static_assert(__builtin_bit_cast(int, 1.0f) != 0, "");])], [have_host_machine=yes])
  CXXFLAGS="$flp_saved_cxxflags -std=gnu++17 -fsanitize=address"
  AS_IF([test $have_host_machine = yes],
    [AC_LINK_IFELSE([AC_LANG_PROGRAM([[
      #include <sanitizer/asan_interface.h>
      #include <ucontext.h>
    ]], [[ucontext_t context; return getcontext(&context) + (__asan_region_is_poisoned(0, 1) != 0);]])], [], [have_host_machine=no])])
  CXXFLAGS=$flp_saved_cxxflags
  AC_MSG_RESULT([$have_host_machine])
  AC_LANG_POP([C++])
  AS_IF([test $have_host_machine = no], [AC_MSG_WARN([no C++17 compiler with sanitizers: the tests in tests/host are skipped])])
  WARNING_CXXFLAGS="-Wall -Wextra"
  AS_IF([test "x$enable_werror" = xyes], [WARNING_CXXFLAGS="$WARNING_CXXFLAGS -Werror"])
  AC_SUBST([WARNING_CXXFLAGS])
])
