# tests/device/package runs configure again if a package that the tests need has been installed since, and only then.
. "$top_srcdir/tests/cases.sh"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/tree/tests/device" "$work/bin"
cp "$top_srcdir/tests/device/package" "$work/tree/tests/device"

# A configure that writes the file for which the script looks and a line for each run, and a make that builds nothing.
printf '#!/bin/sh\ntouch config.status\nchmod +x config.status\necho ran >>"%s/runs"\n' "$work" >"$work/tree/configure"
printf '#!/bin/sh\nexit 1\n' >"$work/bin/make"
printf '#!/bin/sh\n[ -e "%s/cmocka" ] && echo 1.1.7\n' "$work" >"$work/bin/pkg-config"
chmod +x "$work/tree/configure" "$work/bin/make" "$work/bin/pkg-config"
touch -d '2001-01-01' "$work/tree/configure"
: >"$work/runs"
package() { (cd "$work/tree" && PATH=$work/bin:$PATH sh tests/device/package) >"$work/output" 2>&1; }

check_runs_of_configure() { # NAME COUNT
    package
    check_equal "$1" "$2 runs of configure" "$(wc -l <"$work/runs") runs of configure"
}
check_runs_of_configure "the first time it configures, without cmocka" 1
check_runs_of_configure "... and keeps that" 1
touch "$work/cmocka"
check_runs_of_configure "when cmocka has come it configures anew" 2
check_runs_of_configure "... once" 2
touch -d '+1 hour' "$work/tree/configure"
check_runs_of_configure "another configure runs too" 3
finish
