# The example that trains a language model: a short run learns, and what it saves is what fusedlogp score reads.
. "$(dirname "$0")/setup.sh"
compile() {
    "$build/libtool" --quiet --mode=link ${CC:-cc} ${CFLAGS:-} -O2 -I "$here/../../runtime" "$here/../../examples/train_lm.c" -o "$work/train_lm" \
        "$build/libfusedlogp.la" -lm
}
check_runs "the example builds" compile
check_runs "... and runs" sh -c "'$work/train_lm' '$data' '$work/model.safetensors' 40 >'$work/report'"
perplexity() { sed -n "s/^step $1:.*held-out perplexity //p" "$work/report"; }
check_numbers "it starts from the frequency of each word" 'a > 200 && a < 300' "$(perplexity 0)"
check "the loss falls" "$(sed -n 's/^step .* loss \([0-9.]*\),.*/\1/p' "$work/report" |
    awk 'NR > 1 && !($1 < last) { print } { last = $1 } END { if (NR != 4) print NR " reports" }')"
check_numbers "so does the held-out perplexity" 'b > 1 && b < 0.9 * a' "$(perplexity 0)" "$(perplexity 40)"
check_match "the bigram head's stands beside it" "the bigram head's is 67\\.6051" "$work/report"

model=$work/model.safetensors
check_runs "fusedlogp score reads the model" sh -c "'$build/fusedlogp' score --backend cpu --hidden '$model:hidden' --weight '$model:weight' \
    --bias '$model:bias' --target '$model:target' --out '$work/logp.csv' --json >'$work/score.json'"
# Printed with four decimals.
check_numbers "... and finds the same perplexity" '(exp(-a) - b) ^ 2 < 1e-6' "$(json_value "$work/score.json" mean_logp)" \
    "$(sed -n 's/^held-out perplexity \([0-9.]*\);.*/\1/p' "$work/report")"
finish
