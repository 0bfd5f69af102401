# What configure refuses and leaves out: 32 bits with a reason; --disable-programs builds the library alone.
. "$top_srcdir/tests/cases.sh"
source=$(cd "$top_srcdir" && pwd) || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
if [ ! -x "$source/configure" ]; then
    skip "configure" "it is not there"
    finish
    exit
fi
flp_cv_64_bit=no "$source/configure" >output 2>&1
check_equal "32 bits are refused" 1 $?
check_match "... with the reason" "addresses of fewer than 64 bits, and fusedlogp needs 64" output

# Here configure asks the compiler, where the case before set the answer by hand.
printf '#!/bin/sh\nexec %s "$@" -Dsizeof=3+0*sizeof\n' "${CC:-cc}" >narrow
chmod +x narrow
CC=$work/narrow "$source/configure" >output 2>&1
check_match "... where a compiler says so" "addresses of fewer than 64 bits" output

# Here pkg-config does not find jansson.
mkdir bin
printf '#!/bin/sh\ncase "$*" in *jansson*) exit 1 ;; esac\nexec %s "$@"\n' "$(command -v "${PKG_CONFIG:-pkg-config}")" >bin/pkg-config
chmod +x bin/pkg-config
PKG_CONFIG=$work/bin/pkg-config "$source/configure" -C >output 2>&1
check_match "the programs take jansson" "jansson \\(libjansson-dev\\) was not found" output
check_runs "--disable-programs does not" env PKG_CONFIG="$work/bin/pkg-config" "$source/configure" -C --disable-programs
check_equal "... and builds the library, header and pkg-config file alone" "fusedlogp.pc libfusedlogp.la" \
    "$(make -n install 2>/dev/null | grep -oE 'libfusedlogp\.la|fusedlogp\.pc|bin/fusedlogp[a-z-]*|fusedlogp[a-z-]*\.1' | sort -u | paste -sd ' ' -)"
# make -n, because make check would first build the library.
make -n check >output 2>&1
check_match "make check comes to what says why there are no tests" "was told --disable-programs" output
make tests-are-missing >output 2>&1
check_equal "... and fails" 2 $?
check_match "... with the reason" "^make check: .* was told --disable-programs" output
finish
