# Help, versions and wrong command lines of fusedlogp and fusedlogp-gen.
. "$(dirname "$0")/setup.sh"
version=$(sed -n 's/^#define FLP_VERSION_[A-Z]* \([0-9]*\)$/\1/p' "$here/../../runtime/fusedlogp.h" | paste -sd.)
some="--hidden h.npy --weight w.npy --target t.npy"

check_output() { # NAME TEXT COMMAND...: exit status 0 and TEXT on standard output
    name=$1 text=$2
    shift 2
    output=$("$@" 2>&1)
    check "$name" "$(case $?,$output in 0,*"$text"*) ;; *) echo "$output" ;; esac)"
}
check_output "fusedlogp --version" "fusedlogp $version" fusedlogp --version
check_output "fusedlogp-gen --version" "fusedlogp-gen $version" fusedlogp_gen --version
check_output "fusedlogp --help names the commands" "score    log-probabilities" fusedlogp --help
check_output "fusedlogp score --help names the options" "--chunk-rows=N" fusedlogp score --help
check_output "... of every result" "--entropy=FILE" fusedlogp score --help
check_output "fusedlogp -h" "score    log-probabilities" fusedlogp -h
check_output "fusedlogp score -h" "--chunk-rows=N" fusedlogp score -h
check_output "fusedlogp info -h" "--json" fusedlogp info -h
check_output "fusedlogp-gen -h" "--arch=ARCH" fusedlogp_gen -h
fusedlogp_gen --list --arch sm_90a --d 64 --dtype fp16,fp32 >"$work/fp.txt"
fusedlogp_gen --list --arch sm_90a --d 64 --dtype f16,f32 >"$work/f.txt"
check_same "fp16 is f16" "$work/f.txt" "$work/fp.txt"
check_output "fusedlogp merge --help" "--out=FILE" fusedlogp merge --help
check_output "fusedlogp tune --help" "--budget=SECONDS" fusedlogp tune --help
check_output "... what may take longer than --hang" "ten times as long" sh -c "'$build/fusedlogp' tune --help | tr -s ' \n' ' '"
for variable in CACHE_DIR SYSTEM_CACHE RECORDS_DIR SYSTEM_RECORDS CPU_BF16 SOURCE_DIR NVRTC_PATH; do
    check "fusedlogp(1) has FUSEDLOGP_$variable" "$(grep -qE "^\\.It Ev .*FUSEDLOGP_$variable( |\$)" "$here/../../man/fusedlogp.1" || echo 'it has not')"
done
check_output "fusedlogp records --help" "--older-than=DAYS" fusedlogp records --help
check_output "fusedlogp info --help" "--json" fusedlogp info --help
check_output "fusedlogp-gen --help names the options" "--arch=ARCH" fusedlogp_gen --help
codes=$(sed -n 's/^ *FLP_EXIT_[A-Z_]* = \([0-9]*\).*/\1/p' "$here/../../runtime/cli/console.h")
check "there are exit codes" "$(test "$(echo "$codes" | wc -l)" -ge 5 || echo "found $codes")"
for code in $codes; do
    check "a manual explains exit status $code" "$(cat "$here"/../../man/*.1 | grep -qx ".It $code" || echo "no .It $code")"
done

check_fails "no command" 2 "wanted a command" fusedlogp
for program in "fusedlogp tune" "fusedlogp_gen --list --arch sm_90a"; do
    check_fails "$program: a problem that is none is a wrong command line" 2 "got 4 parts, wanted at least" $program --problem linear_logp:bf16:n33:d72
done
check_fails "an unknown command" 2 "no command 'train'" fusedlogp train
check_fails "an unknown option" 2 "--frobnicate" fusedlogp score --frobnicate
check_fails "a missing tensor" 2 "--weight is missing: wanted it or --model beside --hidden, or --logits alone" fusedlogp score --hidden h.npy --target t.npy
check_fails "... and another" 2 "--hidden is missing: wanted it, with --weight or --model, or --logits" fusedlogp score --target t.npy
check_fails "a word that is no option" 2 "'more': wanted options only" fusedlogp score $some more
check_fails "an unknown layout" 2 "--layout: got 'dd', wanted one of vd, dv" fusedlogp score $some --layout dd
check_fails "an unknown backend" 2 "--backend: got 'gpu'" fusedlogp score $some --backend gpu
check_fails "a temperature of 0" 2 "--temperature: got '0'" fusedlogp score $some --temperature 0
for temperature in 1e-30 5e-20 2e19 1e400 inf; do
    check_fails "a temperature of $temperature" 2 "--temperature: got '$temperature', wanted a number from 2^-64 to 2^64" \
        fusedlogp score $some --temperature $temperature
done
for temperature in 5.421010862427522e-20 18446744073709551616; do
    check_fails "one of $temperature, a bound, is taken" 1 "h.npy" fusedlogp score $some --temperature $temperature
done
check_fails "a temperature with a tail" 2 "--temperature: got '1x'" fusedlogp score $some --temperature 1x
check_fails "a softcap that is not finite" 2 "--softcap: got 'inf'" fusedlogp score $some --softcap inf
check_fails "a softcap of 1e-38" 2 "--softcap: got '1e-38', wanted a number from 2^-126 to 2^126" fusedlogp score $some --softcap 1e-38
check_fails "a plot and JSON on standard output" 2 "--plot: got '/dev/stdout' with --json, wanted a file other than standard output" \
    fusedlogp tune --untuned --plot /dev/stdout --json
check_fails "a budget that is not finite" 2 "--budget: got '1e400', wanted a finite number above 0" fusedlogp tune --probe --budget 1e400
check_fails "a vocabulary of 0" 2 "--vocab: got '0'" fusedlogp score $some --vocab 0
check_fails "a vocabulary beyond 31 bits" 2 "--vocab: got '2147483648'" fusedlogp score $some --vocab 2147483648
check_fails "an ignore index beyond 64 bits" 2 "--ignore-index" fusedlogp score $some --ignore-index 9223372036854775808
check_fails "a chunk of 0 rows" 2 "--chunk-rows: got '0'" fusedlogp score $some --chunk-rows 0
check_fails "an output that has no format" 2 "--out: got 'x.txt'" fusedlogp score $some --out x.txt
check_fails "an entropy file that has no format" 2 "--entropy: got 'x.txt'" fusedlogp score $some --entropy x.txt
check_fails "an option of info" 2 "--hidden" fusedlogp info --hidden h.npy
check_fails "fusedlogp-gen without an architecture" 2 "--arch is missing" fusedlogp_gen
check_fails "an unknown architecture" 2 "sm_1" fusedlogp_gen --list --arch sm_1
check_fails "an unknown dtype" 2 "f8" fusedlogp_gen --list --arch sm_90a --dtype f8
check_fails "a hidden size that is no number" 2 "many" fusedlogp_gen --list --arch sm_90a --d many
check_fails "an unknown word" 2 "'cash': wanted options" fusedlogp_gen cash
check_fails "an unknown cache command" 2 "'cache': wanted options" fusedlogp_gen cache burn
check_fails "--list beside --emit" 2 "exclude each other" fusedlogp_gen --list --emit "$work/x"
while IFS='|' read -r action option; do
    check_fails "$action does not ignore $option" 2 "${option%% *}: got it with $action, wanted only with" fusedlogp_gen $action $option
done <<END
cache list|--arch sm_90a
cache list|--ptx
cache clear|--jobs 2
cache clear|--token-loss mine.lua
--list|--out kernels
--list|--jobs 2
END
check_fails "--check compiles nothing" 2 "--jobs: got it with --check, wanted only with a prebuild" fusedlogp_gen --check --arch sm_90a --jobs 2
check_fails "0 jobs" 2 "--jobs: got '0'" fusedlogp_gen --arch sm_90a --jobs 0
finish
