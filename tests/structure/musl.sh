# The library compiles against musl's headers, if musl-gcc (musl-tools) is there. The headers of Lua and nettle are copied to a folder for it.
. "$top_srcdir/tests/cases.sh"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
if ! command -v musl-gcc >/dev/null; then
    skip "the library with musl" "no musl-gcc"
    finish
    exit
fi
mkdir "$work/include"
for flag in $(pkg-config --cflags-only-I lua5.4 2>/dev/null) -I/usr/include/lua5.4; do cp -R "${flag#-I}"/. "$work/include" 2>/dev/null; done
cp -R /usr/include/nettle "$work/include" 2>/dev/null
find /usr/include -name 'lua5.4-deb-multiarch.h' -exec cp {} "$work/include" \;
files=$(cd "$top_srcdir" && find runtime -name '*.c' ! -path 'runtime/cli/*' ! -name embedded.c | sort)
wrong=$(for file in $files; do
    musl-gcc -std=gnu11 -fsyntax-only -Wall -Wextra -Werror -I"$work/include" -I"$top_srcdir/runtime" -I"$top_srcdir/templates" \
        '-DFUSEDLOGP_NVRTC_DIR=""' '-DFUSEDLOGP_SYSTEM_CACHE_DIRS=""' '-DFUSEDLOGP_SYSTEM_RECORDS_DIRS=""' "$top_srcdir/$file" 2>&1 || echo "$file"
done)
check_numbers "there are files" 'a > 50' "$(echo "$files" | wc -l)"
check "every file of the library compiles with musl" "$wrong"
finish
