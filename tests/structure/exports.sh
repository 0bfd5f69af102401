# The shared library exports the functions that the header declares FLP_API, and nothing else.
. "$top_srcdir/tests/cases.sh"

library=$(ls "$top_builddir"/.libs/libfusedlogp.so 2>/dev/null)
if [ -z "$library" ]; then
    skip "exports are the header's" "configured with --disable-shared"
    finish
fi

declared=$(awk '
    /^FLP_API / { text = ""; open = 1 }
    open { text = text " " $0 }
    open && /;/ { open = 0; if (match(text, /flp_[a-z0-9_]+\(/)) print substr(text, RSTART, RLENGTH - 1) }
' "$top_srcdir/runtime/fusedlogp.h" | sort)
exported=$(${NM:-nm} -D --defined-only "$library" | awk '$2 != "A" { print $3 }' | sort)

check "the header declares functions" "$(test "$(echo "$declared" | wc -l)" -ge 10 || echo "found: $declared")"
check "every exported symbol is flp_" "$(echo "$exported" | grep -v '^flp_')"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
echo "$declared" >"$work/declared"
echo "$exported" >"$work/exported"
check "every declared function is exported" "$(comm -23 "$work/declared" "$work/exported")"
check "every exported symbol is declared" "$(comm -13 "$work/declared" "$work/exported")"
finish
