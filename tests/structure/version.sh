# One version: the header's macros, configure's and the pkg-config file's.
. "$top_srcdir/tests/cases.sh"

header=$(awk '/^#define FLP_VERSION_(MAJOR|MINOR|PATCH) / { text = text dot $3; dot = "." } END { print text }' \
    "$top_srcdir/runtime/fusedlogp.h")
same() { test "$1" = "$header" || echo "got $1, the header says $header"; }
check "configure" "$(same "$(sed -n 's/^AC_INIT(\[fusedlogp\], \[\([0-9.]*\)\].*/\1/p' "$top_srcdir/configure.ac")")"
check "pkg-config" "$(same "$(sed -n 's/^Version: //p' "$top_builddir/fusedlogp.pc")")"
check "fusedlogp --version" "$("$top_builddir/fusedlogp" --version 2>&1 | grep -qF "$header" || echo "does not print $header")"
check "fusedlogp-gen --version" "$("$top_builddir/fusedlogp-gen" --version 2>&1 | grep -qF "$header" || echo "does not print $header")"
finish
