#!/bin/sh
# Runs the device tests of tests/device/package on the machine with the GPU, then small ones under the sanitizers, and sums up.
# usage: tests/device/run.sh [--no-tests | --no-sanitizers]     Whole outputs: ${OUT:-build-device}/*.log
set -u
cd "$(dirname "$0")/../.." || exit 1
tests=yes sanitizers=yes
case ${1:-} in
    --no-tests) tests=no ;;
    --no-sanitizers) sanitizers=no ;;
    '') ;;
    *) sed -n '3s/^# //p' "$0" >&2; exit 2 ;;
esac
logs=${OUT:-build-device}
# Those that have a --quick part for the sanitizers.
programs='test_linear_logp_device test_linear_logp_backward_device test_shards_device test_linear_cross_entropy_device test_logits_logp_device test_weighted_sum_device test_scale_device'
FUSEDLOGP_CACHE_DIR=${FUSEDLOGP_CACHE_DIR-$PWD/build-device/cache}
export FUSEDLOGP_CACHE_DIR
# A copied tree may come with other modes, and the library refuses a directory that others may write to.
mkdir -p "$FUSEDLOGP_CACHE_DIR" && chmod -R go-w "$FUSEDLOGP_CACHE_DIR"
summary=
failed=0

note() { # TEXT: a line of the summary
    summary="$summary$1
"
}

run_tests() {
    timeout 420 tests/device/run-package >"$logs/tests.log" 2>&1
    status=$?
    grep -B 3 -A 3 '^not ok' "$logs/tests.log" | tail -n 60
    [ $status = 0 ] || failed=1
    note "tests: exit status $status; $(tail -n 1 "$logs/tests.log")"
}

sanitize() { # TOOL PROGRAM
    log=$logs/$1-$2.log options= sets=
    # A cluster's kernel of logits has 78 barriers in each block: more than synccheck follows by itself, which ends in a launch failure.
    [ "$1" != synccheck ] || options='--num-cuda-barriers 4096'
    # A ticket is read before it is set.
    [ "$1" != initcheck ] || sets=FUSEDLOGP_TEST_SETS_TICKETS=1
    timeout 200 env $sets "$sanitizer" --tool "$1" $options --error-exitcode 99 --print-limit 10 "build-device/$2" --quick --seconds 190 >"$log" 2>&1
    status=$?
    if [ $status = 0 ]; then
        note "$1, $2: clean; $(grep -c '  OK \]' "$log") tests"
    else
        failed=1
        grep -v '  OK \]' "$log" | head -n 30
        note "$1, $2: exit status $status (99: the tool found errors, 124: out of time); $(tail -n 1 "$log")"
    fi
}

# The kernels first, without the tool, so that it meets none of NVRTC's work.
sanitize_program() { # PROGRAM
    timeout 100 "build-device/$1" --quick >"$logs/quick-$1.log" 2>&1 || { failed=1; note "$1: quick tests fail: $(tail -n 1 "$logs/quick-$1.log")"; }
    for tool in memcheck racecheck synccheck initcheck; do sanitize $tool "$1"; done
}

find_sanitizer() {
    for candidate in "$(command -v compute-sanitizer)" "${CUDA_HOME:-}/bin/compute-sanitizer" /usr/local/cuda/bin/compute-sanitizer; do
        if [ -x "$candidate" ]; then echo "$candidate"; return; fi
    done
}

[ $tests = no ] || run_tests
if [ $sanitizers = yes ]; then
    sanitizer=$(find_sanitizer)
    if [ -n "$sanitizer" ]; then
        for program in $programs; do sanitize_program "$program"; done
    else
        failed=1
        note "compute-sanitizer was not found"
    fi
fi
printf '%s' "$summary"
[ $failed = 0 ]
