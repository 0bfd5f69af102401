#!/bin/sh
# Links the library that the Python package loads. It contains all that it needs except the C library, Lua and nettle too; torch is found at run time.
#
# usage: CC=... [STATIC=yes] python/link.sh OUTPUT BINDING.a INTERNAL.a LUA_LIBS NETTLE_LIBS     archives of position-independent objects
# With STATIC=yes it is an error if Lua or nettle cannot be linked into it; without, they are then linked as LUA_LIBS and NETTLE_LIBS say.
set -eu
out=$1 binding=$2 internal=$3 lua=$4 nettle=$5
work=$out.parts
rm -rf "$work"
mkdir -p "$work"
trap 'rm -rf "$work"' EXIT

archive_of() { # FLAGS: the archive of the first -l, where the compiler finds one
    for flag in $1; do
        case $flag in -L*) directories="${directories:-} $flag" ;; -l*)
            found=$($CC ${directories:-} -print-file-name="lib${flag#-l}.a")
            case $found in /*) echo "$found" ;; esac
            return ;;
        esac
    done
}

# Distributions build Lua's archive for programs: its references to stdin, stdout and stderr cannot be linked into a shared library. They are redirected to
# variables of ours.
lua_archive=$(archive_of "$lua")
nettle_archive=$(archive_of "$nettle")
# The libraries that held the symbols of old_glibc.c are linked by name, because an old glibc still has them there.
old_glibc=
case $($CC -dumpmachine) in
    x86_64-*linux-gnu)
        $CC -O2 -fPIC -fno-builtin -c "$(dirname "$0")/old_glibc.c" -o "$work/old_glibc.o"
        old_glibc="$work/old_glibc.o -Wl,--no-as-needed -l:libdl.so.2 -l:libpthread.so.0 -Wl,--as-needed"
        ;;
esac
if [ -n "$lua_archive" ] && [ -n "$nettle_archive" ] && command -v objcopy >/dev/null; then
    cat >"$work/streams.c" <<'END'
#include <stdio.h>
#define HIDDEN __attribute__((visibility("hidden")))
HIDDEN FILE *flp_stdin, *flp_stdout, *flp_stderr;
__attribute__((constructor)) static void set_streams(void)
{
    flp_stdin = stdin, flp_stdout = stdout, flp_stderr = stderr;
}
END
    $CC -O2 -fPIC -c "$work/streams.c" -o "$work/streams.o"
    objcopy --redefine-sym stdin=flp_stdin --redefine-sym stdout=flp_stdout --redefine-sym stderr=flp_stderr "$lua_archive" "$work/lua.a"
    cp "$nettle_archive" "$work/nettle.a"
    if $CC -shared -o "$out" -Wl,--whole-archive "$binding" "$internal" -Wl,--no-whole-archive $old_glibc "$work/streams.o" "$work/lua.a" "$work/nettle.a" \
        -Wl,--exclude-libs,lua.a:nettle.a -Wl,-Bsymbolic -Wl,--no-undefined -lm -ldl -lpthread 2>"$work/errors"; then
        exit 0
    fi
fi
if [ "${STATIC:-no}" = yes ]; then
    echo "link.sh: Lua ($lua_archive) and nettle ($nettle_archive) do not go into a shared library" >&2
    [ ! -f "$work/errors" ] || tail -n 5 "$work/errors" >&2
    exit 1
fi
$CC -shared -o "$out" -Wl,--whole-archive "$binding" "$internal" -Wl,--no-whole-archive $old_glibc $lua $nettle -Wl,-Bsymbolic -Wl,--no-undefined -lm -ldl -lpthread
