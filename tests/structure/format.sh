# Every C file and every template is formatted as .clang-format says, by release 14, because other releases break some lines elsewhere.
. "$top_srcdir/tests/cases.sh"
cd "$top_srcdir" || exit 1
formatter=${FUSEDLOGP_CLANG_FORMAT:-clang-format}
version=$("$formatter" --version 2>/dev/null)

files=$(find bench runtime templates tests python \( -name '*.[ch]' -o -name '*.cuh' -o -name '*.[ch]pp' \) ! -path 'tests/host/kernels/*' ! -name embedded.c)
programs=$(find bench examples python tests -name '*.py')
long_lines() { awk 'length($0) > 160 { print FILENAME ":" FNR ": " length($0) " characters" }' "$@" /dev/null; }
check "there are Python files" "$(test "$(echo "$programs" | wc -l)" -gt 30 || echo "found $programs")"
check "no line of a Python file has more than 160 characters" "$(long_lines $programs)"
check "a longer line is seen" "$(test -n "$(printf '%161s' x | long_lines -)" || echo 'it was not')"
check "there are files" "$(test "$(echo "$files" | wc -l)" -gt 300 || echo "found $files")"
case $version in
*' version 14.'*)
    check "they are formatted" "$("$formatter" --dry-run --Werror $files 2>&1 | grep -E '^[^ ]+:[0-9]+:[0-9]+: ' | sed 's/ \[-W.*//' | head -n 40)"
    # The check itself must see a line that is not formatted.
    example=$(mktemp -d) || exit 1
    trap 'rm -rf "$example"' EXIT
    cp .clang-format "$example"
    echo 'int  one;' >"$example/one.c"
    check "a line that is not formatted is seen" "$("$formatter" --dry-run --Werror "$example/one.c" >/dev/null 2>&1 && echo 'it was not')"
    ;;
*) skip "they are formatted" "wanted clang-format 14, got ${version:-none}" ;;
esac
finish
