# fusedlogp score: chunks of rows and threads change no bit, and the summary tells what happened.
. "$(dirname "$0")/setup.sh"
make_tensors

for dtype in bf16 f32; do
    all="--backend cpu --hidden hidden-$dtype.npy --weight weight-$dtype.npy --bias bias-f32.npy --target target-i64.npy --quiet"
    fusedlogp score $all --out whole.npy --lse whole-lse.npy --argmax whole-argmax.npy --entropy whole-entropy.npy
    for rows in 1 2 7 16 36 37 1000; do
        fusedlogp score $all --chunk-rows $rows --threads $((rows % 3 + 1)) --out part.npy --lse part-lse.npy --argmax part-argmax.npy \
            --entropy part-entropy.npy
        check "$dtype in chunks of $rows rows" "$(cmp whole.npy part.npy 2>&1; cmp whole-lse.npy part-lse.npy 2>&1; cmp whole-argmax.npy part-argmax.npy 2>&1
            cmp whole-entropy.npy part-entropy.npy 2>&1)"
    done
done

fusedlogp score --backend cpu --hidden hidden-bf16.npy --weight weight-bf16.npy --target target-i64.npy --chunk-rows 10 --json >summary.json
value() { json_value summary.json "$1"; }
check "JSON counts rows, tokens and the chunk" "$([ "$(value rows),$(value tokens),$(value chunk_rows)" = 37,37,10 ] || cat summary.json)"
check "JSON names problem and path" "$(case "$(value problem) $(value path)" in linear_logp:bf16:n10:d24:v101*" cpu") ;; *) cat summary.json ;; esac)"
check "the mean is that of fp64, the perplexity its exponential" "$(
    awk -F, -v mean="$(value mean_logp)" -v perplexity="$(value perplexity)" '
        NR > 1 { sum += $3 }
        END {
            wanted = sum / (NR - 1)
            if (!((mean / wanted - 1) ^ 2 <= 1e-12)) print "mean " mean ", wanted " wanted
            if (!((perplexity / exp(-mean) - 1) ^ 2 <= 1e-20)) print "perplexity " perplexity
        }' plain.csv)"
check "JSON holds the times" "$(awk -v a="$(value seconds)" -v b="$(value plan_seconds)" 'BEGIN { if (!(a > 0 && b > 0)) print a, b }')"

check "JSON has no entropy that was not asked for" "$(json_value summary.json mean_entropy 2>/dev/null)"
fusedlogp score --backend cpu --hidden hidden-bf16.npy --weight weight-bf16.npy --target ignoring-i64.npy --ignore-index -7 --entropy entropy.csv \
    --json >summary.json
check "the mean entropy is that of fp64, of the rows that are scored" "$(
    paste -d, ignoring.csv ignoring-entropy.csv | awk -F, -v mean="$(value mean_entropy)" '
        NR > 1 && $2 != -7 { sum += $5; rows++ }
        END { if (!(rows == 36 && (mean / (sum / rows) - 1) ^ 2 <= 1e-12)) print "mean " mean ", wanted " sum / rows " of " rows " rows" }')"

fusedlogp score --backend cpu --hidden hidden-bf16.npy --weight weight-bf16.npy --target target-i64.npy --entropy entropy.csv >summary.txt 2>messages
for line in "tokens         37 of 37 rows" "mean log-prob  -" "perplexity     " "mean entropy   " "device         CPU" "path           cpu" "time           "; do
    check "the summary has '$line'" "$(grep -q "^$line" summary.txt || cat summary.txt)"
done
check "no progress and no colour in a pipe" "$(cat messages; grep "$(printf '\033')" summary.txt)"
finish
