# The embedded generator is complete, has the same bytes every time, and its file is not rewritten if nothing changed.
. "$top_srcdir/tests/cases.sh"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
embed=$top_srcdir/runtime/jit/embed.sh
mkdir -p "$work/tree/gen" "$work/tree/templates/any" "$work/tree/templates/params"
printf 'return 1\n' >"$work/tree/gen/one.lua"
printf '// \\ "quoted" \303\251\n' >"$work/tree/templates/any/two.cuh"
printf '/* three */\n' >"$work/tree/templates/params/three.h"
printf 'no source\n' >"$work/tree/templates/any/notes.txt"

check_runs "embeds a tree" sh "$embed" "$work/tree" "$work/a.c"
check_runs "in another locale and folder the bytes are the same" sh -c "
    mkdir '$work/moved' && cp -R '$work/tree/.' '$work/moved' &&
    LC_ALL=C.UTF-8 sh '$embed' '$work/moved' '$work/b.c' && cmp '$work/a.c' '$work/b.c'"
touch -d '2001-01-01' "$work/a.c"
sh "$embed" "$work/tree" "$work/a.c"
check "an unchanged tree leaves the file's time" "$(test "$work/b.c" -nt "$work/a.c" || echo 'it was written again')"
check_no_match "other files stay out" notes "$work/a.c"

digest() { sed -n 's/.*flp_embedded_digest.*"\([0-9a-f]*\)".*/\1/p' "$1"; }
expected=$({ echo 'gen/one.lua 9'; cat "$work/tree/gen/one.lua"
    echo 'templates/any/two.cuh 17'; cat "$work/tree/templates/any/two.cuh"
    echo 'templates/params/three.h 12'; cat "$work/tree/templates/params/three.h"; } | sha256sum | cut -d ' ' -f 1)
check_equal "the digest is over names, lengths and bytes" "$expected" "$(digest "$work/a.c")"
mv "$work/tree/gen/one.lua" "$work/tree/gen/uno.lua"
sh "$embed" "$work/tree" "$work/b.c"
check_match "a renamed file is embedded" uno "$work/b.c"
check "... and changes the digest" "$(test "$(digest "$work/a.c")" != "$(digest "$work/b.c")" || echo 'it did not')"
check "a tree without sources is an error" "$(sh "$embed" "$work" "$work/c.c" 2>/dev/null && echo 'it was accepted')"

missing=$(cd "$top_srcdir" && find gen templates \( -name '*.lua' -o -name '*.cuh' -o -name '*.h' \) | while read -r file; do
    grep -qF "\"$file\"" "$top_builddir/runtime/jit/embedded.c" || echo "$file"
done)
check "the library holds every file of gen/ and templates/" "$missing"
finish
