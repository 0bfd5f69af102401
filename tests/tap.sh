#!/bin/sh
# Runs one test program and writes one TAP stream of its cases: cmocka writes a stream a group, and Automake wants one.
# usage: tap.sh PROGRAM [ARGUMENT ...]. Exit status 77 without a failed case: the program could not run here, a skip. A program that plans cases and runs none
# has failed: a setting chose cases that do not exist. Where none are planned, as by some shell tests, the exit status decides.
# $FUSEDLOGP_TESTS_LEFT_OUT: names of programs, between spaces, that are not run, which is said as a skip.
CMOCKA_MESSAGE_OUTPUT=TAP
export CMOCKA_MESSAGE_OUTPUT
name=$(basename "$(for word in "$@"; do :; done; echo "$word")")

case " ${FUSEDLOGP_TESTS_LEFT_OUT:-} " in
*" $name "*)
    printf '1..1\nok 1 - %s # SKIP left out by FUSEDLOGP_TESTS_LEFT_OUT\n' "$name"
    exit 0
    ;;
esac

# The log's last comment: the seconds of the processor, the program's and the system's (tests/slowest lists programs by them).
{ "$@" 2>&1; echo "tap-exit-status $?"; times; } | awk -v name="$name" '
    function result(word, text) {
        cases++
        if (word == "not ok") failed++
        print word " " cases " - " text
        fflush()
    }
    /^1\.\.[0-9]+/ { planned = 1; if (/# *(SKIP|skip)/) { sub(/^[^#]*/, ""); skips = $0 } ; next }
    /^(not )?ok( |$)/ {
        word = /^not / ? "not ok" : "ok"
        sub(/^(not )?ok */, "")
        sub(/^[0-9]+[ \t]*/, "")
        sub(/^-[ \t]*/, "")
        # cmocka marks a skipped case as failed: "not ok 3 # SKIP name".
        if (/^# *SKIP/) word = "ok"
        result(word, $0)
        next
    }
    ended { seconds = $0; next }
    /^tap-exit-status / { status = $2; ended = 1; next }
    /tap-exit-status [0-9]+$/ { status = $NF; ended = 1; sub(/tap-exit-status [0-9]+$/, "") } # behind an unfinished line
    /^#/ { print; next }
    { print "# " $0 }
    END {
        if (status == 77 && !failed) result("ok", name " # SKIP exit status 77")
        else if (skips != "" && !cases) result("ok", name " " skips)
        else if (status != 0 && !failed) result("not ok", name ": exit status " status)
        else if (!cases && planned) result("not ok", name ": ran no case")
        else if (!cases) result("ok", name)
        print "# processor: " seconds
        print "1.." cases
    }'
