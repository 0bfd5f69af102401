# The shipped sample: fusedlogp score reaches the perplexity that was computed in fp64.
. "$(dirname "$0")/setup.sh"
head=$data/head.safetensors
expected() { json_value "$data/expected.json" "$1"; }

# Allowed: 1e-6 relative, the library's promise for bf16 inputs.
check_backend() { # NAME
    fusedlogp score --backend "$1" --hidden "$head:hidden" --weight "$head:weight" --bias "$head:bias" --target "$head:target" \
        --out "$work/$1.csv" --entropy "$work/entropy.csv" --json >"$work/$1.json" 2>"$work/messages"
    code=$?
    if [ $code = 3 ]; then
        skip "the sample, backend $1" "$(head -1 "$work/messages")"
        return
    fi
    check "the sample, backend $1" "$([ $code = 0 ] || { echo "exit status $code"; cat "$work/messages"; })"
    check "... scores every token" "$([ "$(json_value "$work/$1.json" tokens)" = "$(expected tokens)" ] || cat "$work/$1.json")"
    for mean in mean_logp mean_entropy; do
        check "... with the $mean of fp64" "$(awk -v got="$(json_value "$work/$1.json" $mean)" -v wanted="$(expected $mean)" \
            'BEGIN { error = got / wanted - 1; if (!(error <= 1e-6 && error >= -1e-6)) print "got " got ", wanted " wanted }')"
    done
    check "... and writes a line a token" "$([ "$(wc -l <"$work/$1.csv")" = $(($(expected tokens) + 1)) ] || wc -l "$work/$1.csv")"
}
check_backend cpu
check_backend auto
check "the head beats the unigram by half" "$(awk -v head="$(expected perplexity)" -v unigram="$(expected unigram_perplexity)" \
    'BEGIN { if (!(head > 1 && head < unigram / 2)) print head, unigram }')"
check "the vocabulary has a line a word" "$([ "$(wc -l <"$data/vocab.txt")" = "$(expected vocab)" ] || wc -l "$data/vocab.txt")"
check "the sample takes 2 MiB at most" "$(cat "$data"/* | wc -c | awk '$1 > 2 * 1024 * 1024')"
finish
