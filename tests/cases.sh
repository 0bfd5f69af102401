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

skip() {
    cases=$((cases + 1))
    echo "ok $cases - $1 # SKIP $2"
}

finish() {
    echo "1..$cases"
    [ "$failures" = 0 ]
    exit
}
