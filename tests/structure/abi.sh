# A program works with a library of another version. In the version of tomorrow a field is appended to every struct of the header, even to structs with which
# others begin.
. "$top_srcdir/tests/cases.sh"
today=$top_builddir/.libs/libfusedlogp.so
if [ ! -e "$today" ]; then
    skip "programs and libraries of two versions" "configured with --disable-shared"
    finish
fi
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
check_runs "a library of tomorrow builds" env MAKEFLAGS= "${MAKE:-make}" -C "$top_builddir" tests/structure/tomorrow/libfusedlogp.so
tomorrow=$top_builddir/tests/structure/tomorrow

compile() { # PROGRAM FLAG...: the program links with today's library, and finds its own when it runs
    program=$1
    shift
    ${CC:-cc} ${CFLAGS:-} -std=c11 -pedantic -Wall -Wextra -Werror "$top_srcdir/tests/structure/abi_program.c" -o "$work/$program" "$@"
}
check_runs "a program of today builds" compile today -I "$top_srcdir/runtime" "$today"
check_runs "a program of tomorrow builds" compile tomorrow -DAPPENDED -I "$tomorrow" "$today"
run() { # PROGRAM LIBRARY: its output, in a file named by both
    mkdir -p "$work/lib_$2"
    case $2 in
    today) ln -sf "$today" "$work/lib_$2/$soname" ;;
    tomorrow) ln -sf "$tomorrow/libfusedlogp.so" "$work/lib_$2/$soname" ;;
    esac
    env LD_LIBRARY_PATH="$work/lib_$2${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "$work/$1" >"$work/$1_$2" 2>&1
}
soname=$(readelf -d "$today" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')
# Compares what both programs print with one library; two builds of the library might round differently.
check_same_numbers() { # NAME LIBRARY
    grep -v '^problem\.\|^args\.\|^inputs\|^options' "$work/tomorrow_$2" >"$work/numbers"
    check_same "$1" "$work/today_$2" "$work/numbers"
}

check_runs "today's program runs with today's library" run today today
check_equal "... through every operator" 11 "$(grep -c ':f32:n3:' "$work/today_today")"
check_match "... with a finite loss" '^loss -0x' "$work/today_today"
check_runs "today's program runs with tomorrow's library" run today tomorrow
check_runs "tomorrow's program runs with today's library" run tomorrow today
check_same_numbers "... and prints the same while the new fields are 0" today
check_runs "tomorrow's program runs with tomorrow's library" run tomorrow tomorrow
check_same_numbers "... and prints what today's does with it" tomorrow

fields='problem.appended problem.backward.appended problem.backward.forward.appended args.appended inputs\[1\].appended'
for field in $fields; do
    check_match "today's library refuses $field" "^$field = 1: an argument is not acceptable: [a-z_]*: got a field that version" "$work/tomorrow_today"
    check_match "tomorrow's accepts it" "^$field = 1: success" "$work/tomorrow_tomorrow"
done
check_equal "the messages name the argument" "args args, inputs token_inputs, problem problem" \
    "$(sed -n 's/^\([a-z]*\).* = 1: an argument is not acceptable: \([a-z_]*\):.*/\1 \2/p' "$work/tomorrow_today" | sort -u | paste -sd, | sed 's/,/, /g')"
check_match "a context option that is not known is refused" '^options: an argument is not acceptable$' "$work/tomorrow_today"
finish
