# What the tests of the programs share: where the programs are, a folder to work in, a private kernel cache, and comparisons.
here=$(cd "$(dirname "$0")" && pwd) || exit 1
build=$(cd "${FUSEDLOGP_BUILD:-${top_builddir:-build}}" && pwd) || exit 1
. "$here/../cases.sh"
data=$here/../../examples/data
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
FUSEDLOGP_CACHE_DIR=$work/cache
FUSEDLOGP_SYSTEM_CACHE=
export FUSEDLOGP_CACHE_DIR FUSEDLOGP_SYSTEM_CACHE
LC_ALL=C
export LC_ALL

# The timeout keeps a program that waits for ever, such as for a reader of a pipe, from blocking the tests.
fusedlogp() { timeout 300 "$build/fusedlogp" "$@"; }
fusedlogp_gen() { "$build/fusedlogp-gen" "$@"; }
json_value() { "$build/tests/cli/json_value" "$@"; }

# record ROWS [DEVICE [TUNING [SECONDS [DATE [LIBRARY]]]]]: a tuning's record. $numerics, $templates and $selection replace these fields if they are set.
record() {
    cat <<END
fusedlogp record 2
problem: linear_logp:bf16:n$1:d2048:v131072
arch: sm_90a
numerics: ${numerics:-linear_logp.r3.bf16.s132}
templates: ${templates:-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef}
selection: ${selection:-fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210}
device: ${2:-NVIDIA H200}
multiprocessors: 132
l2_bytes: 62914560
power_limit_w: 700
mig: none
driver: 580
nvrtc: a1b2c3
tuning: ${3:-tile.bm=128,tile.group=8}
regime: sustained
seconds: ${4:-0.00125}
default_seconds: 0.00131
ratio: 0.954
ratio_low: 0.951
ratio_high: 0.956
predicted_seconds: 0.00119
workspace_bytes: 4325376
rounds: 24
ended: settled
date: ${5:-2026-11-22}
library: ${6:-0.1.0}
END
}

make_tensors() {
    "$build/tests/cli/make_tensors" "$work" || exit 1
    cd "$work" || exit 1
}

# check_fails NAME CODE TEXT COMMAND...: exit status CODE, TEXT in the message, and nothing on standard output.
check_fails() {
    name=$1 code=$2 text=$3
    shift 3
    "$@" >"$work/stdout" 2>"$work/stderr"
    got=$?
    wrong=
    [ $got = "$code" ] || wrong="exit status $got, wanted $code"
    grep -qF -- "$text" "$work/stderr" || wrong="$wrong
no '$text' in: $(cat "$work/stderr")"
    [ ! -s "$work/stdout" ] || wrong="$wrong
standard output: $(cat "$work/stdout")"
    check "$name" "$wrong"
}

# Prints the lines that differ between two CSV files row,...,value with the same columns. Values may differ by the tolerance, relative to the larger of |value|
# and 1.
differences() { # WANTED GOT TOLERANCE
    paste -d, "$1" "$2" | awk -F, -v header="$(head -1 "$1")" -v tolerance="$3" '
        NR == 1 { columns = split(header, names, ","); if ($0 != header "," header) print "header: " $0; next }
        NF != 2 * columns { print "columns: " $0; next }
        { for (i = 1; i < columns; i++) if ($i != $(i + columns)) print "rows differ: " $0 }
        { wanted = $columns; error = $NF - wanted; if (error < 0) error = -error; size = wanted < 0 ? -wanted : wanted; if (size < 1) size = 1 }
        !(error <= tolerance * size) { print "row " $1 ": got " $NF ", wanted " wanted }
        END { if (NR < 2) print "no rows" }'
}
