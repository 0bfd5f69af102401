# The example that trains a language model: a short run learns, and what it saves is what fusedlogp score reads.
. "$(dirname "$0")/setup.sh"
compile() {
    "$build/libtool" --quiet --mode=link ${CC:-cc} ${CFLAGS:-} -O2 -I "$here/../../runtime" "$here/../../examples/train_lm.c" -o "$work/train_lm" \
        "$build/libfusedlogp.la" -lm
}
check_runs "the example builds" compile
check_runs "... and runs" sh -c "'$work/train_lm' '$data' '$work/model.safetensors' 40 >'$work/report'"
perplexity() { sed -n "s/^step $1:.*held-out perplexity //p" "$work/report"; }
check "it starts from the frequency of each word" "$(awk -v got="$(perplexity 0)" 'BEGIN { if (!(got > 200 && got < 300)) print got }')"
check "the loss falls" "$(sed -n 's/^step .* loss \([0-9.]*\),.*/\1/p' "$work/report" |
    awk 'NR > 1 && !($1 < last) { print } { last = $1 } END { if (NR != 4) print NR " reports" }')"
check "so does the held-out perplexity" "$(awk -v first="$(perplexity 0)" -v last="$(perplexity 40)" 'BEGIN { if (!(last < 0.9 * first)) print first, last }')"
check "the bigram head's stands beside it" "$(grep -q "the bigram head's is 67.6051" "$work/report" || cat "$work/report")"

model=$work/model.safetensors
check_runs "fusedlogp score reads the model" sh -c "'$build/fusedlogp' score --backend cpu --hidden '$model:hidden' --weight '$model:weight' \
    --bias '$model:bias' --target '$model:target' --out '$work/logp.csv' --json >'$work/score.json'"
# Printed with four decimals.
check "... and finds the same perplexity" "$(awk -v mean="$(json_value "$work/score.json" mean_logp)" \
    -v wanted="$(sed -n 's/^held-out perplexity \([0-9.]*\);.*/\1/p' "$work/report")" \
    'BEGIN { error = exp(-mean) - wanted; if (!(error < 1e-3 && error > -1e-3)) print "got " exp(-mean) ", wanted " wanted }')"
finish
