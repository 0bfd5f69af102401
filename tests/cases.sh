# For the shell tests: cases in TAP. A test sources this, calls `check NAME LINES` for each case and ends with `finish`.
cases=0
failures=0

# The case holds where LINES, the list of what breaks it, is empty.
check() {
    cases=$((cases + 1))
    if [ -z "$2" ]; then
        echo "ok $cases - $1"
    else
        failures=$((failures + 1))
        echo "not ok $cases - $1"
        printf '%s\n' "$2" | sed 's/^/#   /'
    fi
}

# The case holds where the command succeeds; its output is shown where it does not.
check_runs() {
    name=$1
    shift
    if output=$("$@" 2>&1); then check "$name" ''; else check "$name" "${output:-exit status $?, no output}"; fi
}

# What follows fails where a file is missing or empty and where a value is: `grep ... || cat FILE` in a check would hold there.

# The file is there and holds something.
check_file() { # NAME FILE
    check "$1" "$(why_not_file "$2")"
}

why_not_file() {
    if [ ! -e "$1" ]; then echo "$1 is missing"; elif [ ! -s "$1" ]; then echo "$1 is empty"; fi
}

# Some line of the file matches the pattern (grep -E).
check_match() { # NAME PATTERN FILE
    wrong=$(why_not_file "$3")
    if [ -z "$wrong" ] && ! grep -aqE -- "$2" "$3"; then wrong="no '$2' in: $(cat "$3")"; fi
    check "$1" "$wrong"
}

# No line of a file that holds something does.
check_no_match() { # NAME PATTERN FILE
    wrong=$(why_not_file "$3")
    check "$1" "${wrong:-$(grep -nE -- "$2" "$3")}"
}

check_equal() { # NAME WANTED GOT: neither may be empty
    wrong=
    if [ -z "$2" ]; then wrong="nothing was wanted: the test is wrong"; elif [ "$2" != "$3" ]; then wrong="got '$3', wanted '$2'"; fi
    check "$1" "$wrong"
}

# Two files hold the same bytes, and some.
check_same() { # NAME FILE FILE
    wrong=$(why_not_file "$2")
    check "$1" "${wrong:-$(cmp "$2" "$3" 2>&1)}"
}

check_lines() { # NAME COUNT FILE
    check_equal "$1" "$2 lines" "$({ wc -l <"$3"; } 2>/dev/null) lines"
}

# Where EXPRESSION of awk holds of the numbers a, b and c.
check_numbers() { # NAME EXPRESSION A [B [C]]
    check "$1" "$(awk -v a="$3" -v b="${4-0}" -v c="${5-0}" '
        function number(text) { if (text !~ /^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$/) wrong = "\047" text "\047 is no number"; return text + 0 }
        BEGIN { a = number(a); b = number(b); c = number(c); if (wrong == "" && !('"$2"')) wrong = "a = " a ", b = " b ", c = " c; if (wrong != "") print wrong }' 2>&1)"
}

# Whether it is there; what loads it sees whether it works.
has_module() { # PYTHON NAME
    "$1" -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)' "$2" >/dev/null 2>&1
}

# The Python that tests of it run, one with all the modules: NAMED, which is for people, or the one that quickstart check makes, or the machine's. Else nothing.
find_python() { # NAMED MODULE ...
    named=$1
    shift
    for candidate in "$named" "${XDG_CACHE_HOME:-$HOME/.cache}/fusedlogp-tests/python/bin/python3" python3; do
        [ -n "$candidate" ] || continue
        for module; do has_module "$candidate" "$module" || continue 2; done
        echo "$candidate"
        return
    done
}

skip() {
    cases=$((cases + 1))
    echo "ok $cases - $1 # SKIP $2"
}

finish() {
    echo "1..$cases"
    [ "$failures" = 0 ]
    exit
}
