# records/carry_over.py: which stale records get the digest of new templates, and which do not.
. "$(dirname "$0")/setup.sh"
cd "$work" || exit 1
tree=$(cd "$here/../.." && pwd)
unset FUSEDLOGP_RECORDS_DIR FUSEDLOGP_SOURCE_DIR
FUSEDLOGP_SYSTEM_RECORDS=$work/none
export FUSEDLOGP_SYSTEM_RECORDS
# Sometimes LeakSanitizer itself crashes at the end of a process that has used NVRTC. Leaks of these programs are found by the tests of each.
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
export ASAN_OPTIONS
skip_all() { # REASON
    skip "records are carried over" "$1"
    finish
    exit
}
command -v python3 >/dev/null || skip_all "no python3"
fusedlogp info --json >info.json
build_here=$(json_value info.json nvrtc.build 2>/dev/null) || skip_all "no NVRTC"
carry_over() { python3 "$tree/records/carry_over.py" --programs "$build" --records records "$@"; }

# changed NAME FILE SED: a tree whose FILE of templates or of the generator is changed.
changed() {
    mkdir "$1" && cp -R "$tree/gen" "$tree/templates" "$1" || exit 1
    chmod -R u+w "$1"
    sed "$3" "$1/$2" >"$1/sed.out" && ! cmp -s "$1/sed.out" "$1/$2" || { echo "nothing to change in $2" >&2; exit 1; }
    cp "$1/sed.out" "$1/$2"
}
# in_tree TREE COMMAND...: with the generator and templates of TREE.
in_tree() {
    FUSEDLOGP_SOURCE_DIR=$work/$1
    export FUSEDLOGP_SOURCE_DIR
    shift
    "$@"
    set -- $?
    unset FUSEDLOGP_SOURCE_DIR
    return "$1"
}
# prepare: a folder with two records of one problem, as measured with the NVRTC that is here.
prepare() {
    rm -rf records
    for file in $(grep -l '^problem: logits_logp:bf16:n4096:v131072$' "$tree"/records/*.record); do
        sed "s/^nvrtc: .*/nvrtc: $build_here/" "$file" >one.txt
        fusedlogp records import --quiet --directory records one.txt
    done
}

changed same templates/parts/types.cuh 's/^constexpr float ln_2 = /constexpr float unused = 3;\n&/; s/sizes up to 2^31 - 1/&, and no more/'
changed other templates/parts/logits_row.cuh 's/fmaf(rest, log2_e, /fmaf(rest, 2 * log2_e, /'
changed fewer gen/select/logits_logp.lua 's/{ role = "combine", .*w = 8 },$//; s/specs\[3\]/specs[2]/'

prepare
check_equal "there are records" 2 "$(find records -name '*.record' | wc -l)"
check_runs "... which are sound here" fusedlogp records lint --quiet records
check_fails "... and stale with other templates" 4 stale in_tree same fusedlogp records lint --quiet records
cp -R records before
carry_over "$tree" --new same --dry-run >out.txt
check_equal "same machine code is carried over" 0 $?
check_equal "... that of each record" 2 "$(grep -c '\.record: carried over: logits_logp:bf16:n4096:v131072$' out.txt)"
check "... which a dry run only says" "$(diff -r before records 2>&1)"
carry_over "$tree" --new same >out.txt
check_equal "... and another does" 0 $?
check_equal "... in files that replace the old ones" 2 "$(find records -name '*.record' | wc -l)"
check_runs "... which are sound there" in_tree same fusedlogp records lint --quiet records
check_equal "... and else as they were" "$(cat before/* | grep -v '^templates: ' | sort)" "$(cat records/* | grep -v '^templates: ' | sort)"
carry_over "$tree" --new same >out.txt
check_equal "a second time there is nothing to do" "0 0" "$? $(wc -l <out.txt)"

prepare
carry_over "$tree" --new other >out.txt
check_equal "other machine code is not carried over" 1 $?
check_equal "... of which it names the kernel" 2 "$(grep -c 'to be tuned again: other machine code of logits_logp\.' out.txt)"
check "... and nothing is written" "$(diff -r before records 2>&1)"
carry_over "$tree" --new other --but token_loss --dry-run >out.txt
check_equal "... nor if another kernel may differ" 1 $?
carry_over "$tree" --new other --but logits_logp --but logits_logp_cluster --but logits_logp_combine --dry-run >out.txt
check_equal "... but if these kernels may" 0 $?
carry_over "$tree" --new fewer --dry-run >out.txt
check_equal "nor are other kernels" 1 $?
check_equal "... which is said" 2 "$(grep -c 'to be tuned again: other arithmetic and kernels without a tuning: ' out.txt)"
carry_over "$tree" --new fewer --but logits_logp_cluster --dry-run >out.txt
check_equal "... nor if another may be left out" 1 $?
carry_over "$tree" --new fewer --but logits_logp_combine >out.txt
check_equal "... but if this one may" 0 $?
check_runs "... with which the records are sound there" in_tree fewer fusedlogp records lint --quiet records
carry_over fewer --new "$tree" --but logits_logp_combine >out.txt
check_equal "... and a kernel may be added" 0 $?
check_equal "... which makes them what they were" "$(cat before/* | sort)" "$(cat records/* | sort)"
prepare
carry_over same --new other >out.txt
check_equal "nor is what was stale before" 1 $?
check_match "... which is said" 'to be tuned again: it is stale in the old tree, too: ' out.txt

for file in records/*; do
    sed 's/^nvrtc: .*/nvrtc: 0123456789/' "$file" >one.txt
    fusedlogp records import --quiet --directory elsewhere one.txt
done
python3 "$tree/records/carry_over.py" --programs "$build" --records elsewhere "$tree" --new same >out.txt
check_equal "nor what another NVRTC has made" 1 $?
check_match "... which is said, too" "to be tuned again: measured with NVRTC 0123456789, and here is $build_here: " out.txt

echo nothing >records/nothing.record
carry_over "$tree" --new same >out.txt 2>err.txt
check_equal "files that are no records stop it" 3 $?
check_match "... with a message" "records: 1 files are no records" err.txt
carry_over absent >out.txt 2>err.txt
check_equal "so does a tree that is none" 2 $?
check_match "... with another" "OLD: got absent, wanted a tree with gen/ and templates/" err.txt
carry_over --help >out.txt
check_match "it says what it does" "^usage: records/carry_over.py OLD " out.txt
finish
