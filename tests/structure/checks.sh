# The shell tests compare files and values by the functions of tests/cases.sh, which fail if a file or a value is missing.
. "$top_srcdir/tests/cases.sh"
cd "$top_srcdir" || exit 1

# Prints checks that may pass by mistake: `check NAME "$(grep ... || cat FILE)"` passes if FILE is empty, and awk prints nothing for an empty value.
silent() { # FILE...
    grep -nE '^[^#]*check "[^"]*" "\$\(.*\|\| *\{? *(cat|head|tail|ls|wc|sed) ' "$@" /dev/null
    grep -nE '^[^#]*check "[^"]*" "\$\(awk [^|]*BEGIN \{ *(if|error)' "$@" /dev/null
    grep -nE '^[^#]*check "[^"]*" "\$\((cmp|grep) [^|]*(\.txt|\.csv|\.json|\.npy|messages)' "$@" /dev/null
}
scripts=$(find tests -name '*.sh' ! -path tests/structure/checks.sh)
check "no check of the shell tests holds for want of a file" "$(silent $scripts)"

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
for form in '[ "$x" = 1 ] || cat out.json' "awk -v a=1 'BEGIN { if (!(a > 0)) print a }'" 'grep x info.txt' 'cmp a.npy b.npy'; do
    printf 'check "a name" "$(%s)"\n' "$form" >"$work/form.sh"
    check "the form '$form' is seen" "$([ -n "$(silent "$work/form.sh")" ] || echo 'it was not')"
done

# The functions to use in their place fail for a missing file, an empty one and an empty value, and pass where they should.
: >"$work/empty"
echo word >"$work/word"
holds() { ( "$@" >"$work/output"; [ "$failures" = 0 ] ); }
fails() { # ASSERTION...
    check "$1 fails: $(echo "$*" | sed "s|$work/||g")" "$(failures=0; if holds "$@"; then echo "it held"; fi)"
}
passes() {
    check "$1 holds: $(echo "$*" | sed "s|$work/||g")" "$(failures=0; holds "$@" || cat "$work/output")"
}
for file in missing empty; do
    fails check_file name "$work/$file"
    fails check_match name . "$work/$file"
    fails check_match name '' "$work/$file"
    fails check_no_match name x "$work/$file"
    fails check_same name "$work/$file" "$work/$file"
    fails check_same name "$work/word" "$work/$file"
    fails check_lines name 1 "$work/$file"
done
fails check_match name other "$work/word"
fails check_no_match name wor "$work/word"
fails check_equal name '' ''
fails check_equal name 1 ''
fails check_equal name 1 2
fails check_numbers name 'a > 0' ''
fails check_numbers name 'a >= 0' text
fails check_numbers name 'a < b' 1 ''
fails check_numbers name 'a < b' 2 1
fails check_numbers name 'a < b' 1 nan
passes check_file name "$work/word"
passes check_match name '^w.*d$' "$work/word"
passes check_no_match name x "$work/word"
passes check_same name "$work/word" "$work/word"
passes check_lines name 1 "$work/word"
passes check_equal name 1 1
passes check_numbers name 'a < b && b < c' -1e-3 0.5 .75

# What tests/tap.sh makes of a program's output: a program that ran nothing has not passed.
outcome() { # OUTPUT STATUS
    printf 'printf "%s"\nexit %s\n' "$1" "$2" >"$work/program.sh"
    sh tests/tap.sh sh "$work/program.sh" | grep -E '^(not )?ok' | sed 's/ 1 - .*SKIP.*/ skip/; s/ 1 .*//'
}
check_equal "a program's cases are told" "ok" "$(outcome '1..1\nok 1 - a case\n' 0)"
check_equal "a program without cases is judged by its status" "ok" "$(outcome 'words\n' 0)"
check_equal "and fails by it" "not ok" "$(outcome 'words\n' 1)"
check_equal "a program that plans no case has failed" "not ok" "$(outcome '1..0\n' 0)"
check_equal "a program that runs none of its cases has failed" "not ok" "$(outcome '1..2\n' 0)"
check_equal "a program that says why it runs none is skipped" "ok skip" "$(outcome '1..0 # SKIP no device\n' 0)"
check_equal "a program that cannot run is skipped" "ok skip" "$(outcome '' 77)"
finish
