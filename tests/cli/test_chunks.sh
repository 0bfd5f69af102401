# fusedlogp score: neither chunks of rows nor the number of threads change a bit, and the summary says what was done.
. "$(dirname "$0")/setup.sh"
make_tensors

for dtype in bf16 f32; do
    all="--backend cpu --hidden hidden-$dtype.npy --weight weight-$dtype.npy --bias bias-f32.npy --target target-i64.npy --quiet"
    fusedlogp score $all --out whole.npy --lse whole-lse.npy --argmax whole-argmax.npy --entropy whole-entropy.npy
    for rows in 1 2 7 16 36 37 1000; do
        fusedlogp score $all --chunk-rows $rows --threads $((rows % 3 + 1)) --out part.npy --lse part-lse.npy --argmax part-argmax.npy \
            --entropy part-entropy.npy
        for result in "" -lse -argmax -entropy; do check_same "$dtype$result in chunks of $rows rows" whole$result.npy part$result.npy; done
        rm -f part*.npy
    done
done

fusedlogp score --backend cpu --hidden hidden-bf16.npy --weight weight-bf16.npy --target target-i64.npy --chunk-rows 10 --json >summary.json
value() { json_value summary.json "$1"; }
check_equal "JSON counts rows, tokens and the chunk" 37,37,10 "$(value rows),$(value tokens),$(value chunk_rows)"
check_match "JSON names the problem" '"problem": "linear_logp:bf16:n10:d24:v101' summary.json
check_equal "... and the path" cpu "$(value path)"
wanted=$(awk -F, 'NR > 1 { sum += $3 } END { if (NR > 1) printf "%.17g", sum / (NR - 1) }' plain.csv)
check_numbers "the mean is that of fp64" 'b != 0 && (a / b - 1) ^ 2 <= 1e-12' "$(value mean_logp)" "$wanted"
check_numbers "the perplexity is its exponential" '(b / exp(-a) - 1) ^ 2 <= 1e-20' "$(value mean_logp)" "$(value perplexity)"
check_numbers "JSON holds the times" 'a > 0 && b > 0' "$(value seconds)" "$(value plan_seconds)"

check_no_match "JSON has no entropy that was not asked for" entropy summary.json
fusedlogp score --backend cpu --hidden hidden-bf16.npy --weight weight-bf16.npy --target ignoring-i64.npy --ignore-index -7 --entropy entropy.csv \
    --json >summary.json
wanted=$(paste -d, ignoring.csv ignoring-entropy.csv |
    awk -F, 'NR > 1 && $2 != -7 { sum += $5; rows++ } END { if (rows == 36) printf "%.17g", sum / rows }')
check_numbers "the mean entropy is that of fp64, of the rows that are scored" 'b != 0 && (a / b - 1) ^ 2 <= 1e-12' "$(value mean_entropy)" "$wanted"

fusedlogp score --backend cpu --hidden hidden-bf16.npy --weight weight-bf16.npy --target target-i64.npy --entropy entropy.csv >summary.txt 2>messages
for line in "tokens         37 of 37 rows" "mean log-prob  -" "perplexity     " "mean entropy   " "device         CPU" "path           cpu" "time           "; do
    check_match "the summary has '$line'" "^$line" summary.txt
done
check "no progress in a pipe" "$(cat messages 2>&1)"
check_no_match "... and no colour" "$(printf '\033')" summary.txt
finish
