# Under a locale with a decimal comma the programs, the benchmark's plot and quickstart write the same as under "C".
. "$(dirname "$0")/setup.sh"
make_tensors
LOCPATH=$work/locale
export LOCPATH
mkdir "$LOCPATH"
localedef -i de_DE -f UTF-8 "$LOCPATH/de_DE.UTF-8" >/dev/null 2>&1
if [ "$(LC_ALL=de_DE.UTF-8 locale decimal_point 2>/dev/null)" != , ]; then
    skip "a locale with a decimal comma" "localedef could not make one"
    finish
fi

# both NAME COMMAND...: checks that standard output and standard error have the same bytes in both locales, and are not empty.
both() {
    name=$1
    shift
    LC_ALL=C "$@" >c.txt 2>&1
    LC_ALL=de_DE.UTF-8 "$@" >de.txt 2>&1
    check_same "$name" c.txt de.txt
}
score() { fusedlogp score --backend cpu --hidden hidden-f32.npy --weight weight-f32.npy --target target-i32.npy "$@"; }
without_times() { "$@" | sed '/time  /d; /seconds"/d'; }

both "score's summary" without_times score --temperature 0.7 --softcap 3.5
check_match "... has decimal points" '^perplexity  *[0-9]+\.[0-9]+$' de.txt
both "... in JSON" without_times score --temperature 0.7 --json
both "... in CSV" score --quiet --out /dev/stdout
ln -s /dev/stdout out.json
both "results in JSON" score --quiet --out out.json
both "a refused number" score --temperature 0,7
check_match "... is the one with the comma" "got '0,7', wanted a number from 2\^-64 to 2\^64" de.txt
both "info" fusedlogp info
both "... in JSON" fusedlogp info --json
both "the list of variants" fusedlogp_gen --list --arch sm_90a --d 64
fusedlogp_gen --emit c --arch sm_90a --d 64 --quiet
LC_ALL=de_DE.UTF-8 fusedlogp_gen --emit de --arch sm_90a --d 64 --quiet
check_numbers "kernels are emitted" 'a > 10' "$(ls de | wc -l)"
check "... the same bytes" "$(diff -r c de 2>&1)"

cat >results.json <<'END'
{"date": "2026-01-02", "cases": [{"problem": "logits_logp:bf16:n64:v1000", "baseline": "reading", "regimes":
 {"burst": {"ratio": {"median": 0.9875, "p10": 0.95, "p90": 1.04}}, "sustained": {"ratio": {"median": 1.0125, "p10": 1, "p90": 1.1}}}}]}
END
plot() { "$build/bench/fusedlogp_bench" plot results.json /dev/stdout; }
both "the benchmark's plot" plot
check_match "... has decimal points" '>0\.98[78]<' de.txt

if command -v bash >/dev/null; then
    mkdir sample
    ln -s "$build/fusedlogp" sample/fusedlogp
    quickstart() { bash -c '. "$1" && build=$2 && score_sample | tail -n 1' quickstart "$here/../../quickstart" "$work/sample"; }
    both "quickstart's last line" quickstart
    check_match "... has a decimal point" '^unigram  *241\.[0-9]+ is the perplexity' de.txt
else
    skip "quickstart's last line" "no bash"
fi
finish
