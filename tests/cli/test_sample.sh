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
    check_equal "the sample, backend $1" "exit status 0, messages:" "exit status $code, messages:$(cat "$work/messages")"
    check_equal "... scores every token" "$(expected tokens)" "$(json_value "$work/$1.json" tokens)"
    for mean in mean_logp mean_entropy; do
        check_numbers "... with the $mean of fp64" 'b != 0 && (a / b - 1) ^ 2 <= 1e-12' "$(json_value "$work/$1.json" $mean)" "$(expected $mean)"
    done
    check_lines "... and writes a line a token" $(($(expected tokens) + 1)) "$work/$1.csv"
}
check_backend cpu
check_backend auto
check_numbers "the head beats the unigram by half" 'a > 1 && a < b / 2' "$(expected perplexity)" "$(expected unigram_perplexity)"
check_lines "the vocabulary has a line a word" "$(expected vocab)" "$data/vocab.txt"
check_numbers "the sample takes 2 MiB at most" 'a > 0 && a <= 2 * 1024 * 1024' "$(cat "$data"/* | wc -c)"
finish
