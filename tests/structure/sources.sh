# The Makefile's lists and the tree agree: a file that is not listed is neither built, tested nor distributed.
. "$top_srcdir/tests/cases.sh"
cd "$top_srcdir" || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

unlisted() { # FILE...
    for file in "$@"; do
        grep -qE "(^|[[:space:]=])$file([[:space:]]|\$)" Makefile.am || echo "$file is not in Makefile.am"
    done
}
check "every C file of the runtime is listed" "$(unlisted $(find runtime -name '*.[ch]' ! -name embedded.c))"
check "every C file of the benchmark is listed" "$(unlisted $(find bench -name '*.[ch]'))"
check "every file of the Python package and its tests is listed" "$(unlisted $(find python examples/python tests/python bench/*.py -type f ! -name '*.pyc' ! -path '*.egg-info/*' ! -path 'python/build/*' ! -name '*.so'))"
check "every C test is listed" "$(unlisted $(find tests -name 'test_*.c' | sed 's/\.c$//'))"
# A helper is listed as a source file, or by its name without .c as a program.
for file in $(find tests -name '*.[ch]' ! -name 'test_*'); do
    if [ -n "$(unlisted "$file")" ] && [ -n "$(unlisted "${file%.c}")" ]; then echo "$file is not in Makefile.am"; fi
done >"$work/helpers"
check "every helper of the tests is listed" "$(cat "$work/helpers")"
check "every file of the host machine is listed" "$(unlisted $(find tests/host -name '*.[ch]pp'))"
check "every Lua test is listed" "$(unlisted $(find tests/gen -name 'test_*.lua'))"
check "every shell test is listed" "$(unlisted $(find tests -name '*.sh' ! -name tap.sh ! -name cases.sh))"
# For a folder in EXTRA_DIST, `make dist` also takes the folder of this name in the build directory. Objects in the archive would then pass for built ones.
check "no distributed folder is one that the build writes to" "$(sed -n '/^EXTRA_DIST = /,/[^\\]$/s/^\t\([^ ]*\).*/\1/p' Makefile.am | while read -r entry; do
    if [ -d "$entry" ] && [ -d "$top_builddir/$entry" ] && ! [ "$top_builddir/$entry" -ef "$entry" ]; then echo "$entry"; fi
done)"
finish
