# The installed library as a user finds it: make install, pkg-config, cc and run, with the shared and the static library.
. "$top_srcdir/tests/cases.sh"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
root=$work/root
check_runs "make install" env MAKEFLAGS= "${MAKE:-make}" -C "$top_builddir" install DESTDIR="$root"
for file in "$includedir/fusedlogp.h" "$libdir/pkgconfig/fusedlogp.pc" "$libdir/libfusedlogp.a" "$bindir/fusedlogp" \
    "$bindir/fusedlogp-gen" "$mandir/man1/fusedlogp.1" "$mandir/man1/fusedlogp-gen.1"; do
    check "installs $(basename "$file")" "$(test -s "$root$file" || echo "$file is missing")"
done
if [ -n "$(ls "$top_builddir"/.libs/libfusedlogp.so 2>/dev/null)" ]; then
    soname=$(readelf -d "$root$libdir/libfusedlogp.so" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')
    check "the shared library has a versioned name" "$(case $soname in libfusedlogp.so.[0-9]*) ;; *) echo "got $soname" ;; esac)"
    check "... and its file" "$(test -e "$root$libdir/$soname" || echo "$soname is missing")"
fi

flags() { # LIBDIR OPTION...: the flags that pkg-config gives for the library installed below $root
    below=$1
    shift
    env PKG_CONFIG_PATH="$root$libdir/pkgconfig" "${PKG_CONFIG:-pkg-config}" --define-variable=libdir="$below" \
        --define-variable=includedir="$root$includedir" "$@" fusedlogp
}
compile() { # OUTPUT FLAG...
    output=$1
    shift
    ${CC:-cc} ${CFLAGS:-} "$top_srcdir/examples/score.c" -o "$output" "$@"
}
answers() { # the example's own check of its numbers decides
    env LD_LIBRARY_PATH="$root$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "$1"
}
answers_training() {
    env LD_LIBRARY_PATH="$root$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "$work/train_lm" "$top_srcdir/examples/data" "$work/model" 1
}

if [ -n "${soname:-}" ]; then
    check_runs "the example builds against the shared library" compile "$work/shared" $(flags "$root$libdir" --cflags --libs)
    check_runs "... and runs" answers "$work/shared"
    check_runs "so does the one that trains" ${CC:-cc} ${CFLAGS:-} "$top_srcdir/examples/train_lm.c" -o "$work/train_lm" \
        $(flags "$root$libdir" --cflags --libs) -lm
    check_runs "... a step" answers_training
fi
mkdir "$work/static"
cp "$root$libdir/libfusedlogp.a" "$work/static"
check_runs "the example builds against the static library" compile "$work/alone" $(flags "$work/static" --static --cflags --libs)
check_runs "... and runs" answers "$work/alone"
check "... without the shared one" "$(readelf -d "$work/alone" | grep libfusedlogp)"
echo '#include <fusedlogp.h>
int main(void) { return flp_version()[0] == 0; }' >"$work/plain.c"
check_runs "the header is C11 without extensions" ${CC:-cc} -std=c11 -pedantic-errors -Wall -Wextra -Werror -fsyntax-only \
    $(flags "$root$libdir" --cflags) "$work/plain.c"
check_runs "the header is C++" ${CC:-cc} -x c++ -std=c++11 -Wall -Wextra -pedantic -Werror -fsyntax-only $(flags "$root$libdir" --cflags) "$work/plain.c"
check_runs "make uninstall" env MAKEFLAGS= "${MAKE:-make}" -C "$top_builddir" uninstall DESTDIR="$root"
check "... leaves nothing" "$(find "$root" ! -type d)"
finish
