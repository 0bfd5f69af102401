# The shared library exports the functions that the header declares FLP_API, and nothing else. Functions that take a struct also take its size.
. "$top_srcdir/tests/cases.sh"

library=$(ls "$top_builddir"/.libs/libfusedlogp.so 2>/dev/null)
if [ -z "$library" ]; then
    skip "exports are the header's" "configured with --disable-shared"
    finish
fi

# From the preprocessor's output, because a macro declares most of them.
declared=$(${CC:-cc} -E -P -DFLP_API=EXPORTED "$top_srcdir/runtime/fusedlogp.h" | tr '\n' ' ' | sed 's/EXPORTED/\n&/g' |
    sed -n 's/^EXPORTED[^(]*[ *]\(flp_[a-z0-9_]*\)(.*/\1/p' | sort)
exported=$(${NM:-nm} -D --defined-only "$library" | awk '$2 != "A" { print $3 }' | sort)

check "the header declares functions" "$(test "$(echo "$declared" | wc -l)" -ge 10 || echo "found: $declared")"
check "every exported symbol is flp_" "$(echo "$exported" | grep -v '^flp_')"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
echo "$declared" >"$work/declared"
echo "$exported" >"$work/exported"
check "every declared function is exported" "$(comm -23 "$work/declared" "$work/exported")"
# Functions with a pointer to a struct of the header; the header gives each of its structs a typedef.
structs=$(sed -n 's/^} \(flp_[a-z_]*\);/\1/p' "$top_srcdir/runtime/fusedlogp.h" | grep -v '^flp_sizes$' | tr '\n' '|' | sed 's/|$//')
unsized=$(${CC:-cc} -E -P -DFLP_API=EXPORTED "$top_srcdir/runtime/fusedlogp.h" | tr '\n' ' ' | sed 's/EXPORTED/\n&/g' | sed -n '/^EXPORTED/s/;.*//p' |
    grep -E "($structs) \*" | grep -vE '_sized\(.*const flp_sizes \*sizes\)')
check "every exported function with a struct takes the sizes" "$unsized"
check "every exported symbol is declared" "$(comm -13 "$work/declared" "$work/exported")"
finish
