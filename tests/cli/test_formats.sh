# fusedlogp score: every type, layout and file format of the inputs and of the results.
. "$(dirname "$0")/setup.sh"
make_tensors
score() { fusedlogp score --backend cpu --quiet "$@"; }

# Allowed: 24 products and a sum of 101 exponentials in fp32 round to a few units of 2^-24; 1e-6 is the library's promise.
tolerance=1e-6
for dtype in bf16 f16 f32; do
    score --hidden hidden-$dtype.npy --weight weight-$dtype.npy --target target-i32.npy --out $dtype.csv
    check "$dtype from .npy: fp64 within $tolerance" "$(differences plain.csv $dtype.csv $tolerance)"
    file=all-$dtype.safetensors
    score --hidden $file:hidden --weight $file:weight --target $file:target --out st-$dtype.csv
    check_same "$dtype from safetensors: the same" $dtype.csv st-$dtype.csv
    score --hidden hidden-$dtype.npy --weight turned-$dtype.npy --layout dv --target target-i64.npy --out dv-$dtype.csv
    check "$dtype [D, V]: fp64 within $tolerance" "$(differences plain.csv dv-$dtype.csv $tolerance)"
    for bias in bf16 f32; do
        score --hidden hidden-$dtype.npy --weight weight-$dtype.npy --target target-i32.npy --bias bias-$bias.npy --vocab 90 \
            --temperature 0.7 --softcap 3 --out options.$dtype.csv
        check "$dtype, $bias bias, temperature, softcap, padded vocabulary" "$(differences options.csv options.$dtype.csv $tolerance)"
    done
done
plain="--hidden hidden-f32.npy --weight weight-f32.npy"
score $plain --target ignoring-i64.npy --ignore-index -7 --out ignoring.out.csv
check "an ignored row is 0 and the others are as before" "$(differences ignoring.csv ignoring.out.csv $tolerance)"

score $plain --target target-i32.npy --out out.json --lse lse.csv --argmax argmax.csv
check_equal "JSON has every row" 37,37,37 "$(json_value out.json rows),$(json_value out.json logp),$(json_value out.json target)"
for row in 0 17 36; do
    check_equal "JSON and CSV hold the same number in row $row" "$(awk -F, -v row=$row '$1 == row { print $3 }' f32.csv)" \
        "$(json_value out.json logp.$row | awk '{ printf "%.9g", $1 }')"
done
check_equal "lse has a line a row" "row,lse,38" "$(head -1 lse.csv),$(wc -l <lse.csv)"
check "argmax lies in the vocabulary" "$(awk -F, 'NR > 1 && !($2 ~ /^[0-9]+$/ && $2 < 101) { print } END { if (NR != 38) print NR " lines" }' argmax.csv)"
score $plain --target target-i32.npy --entropy entropy.csv
check "entropy: fp64 within $tolerance" "$(differences plain-entropy.csv entropy.csv $tolerance)"
score --hidden hidden-bf16.npy --weight weight-bf16.npy --target target-i32.npy --bias bias-bf16.npy --vocab 90 --temperature 0.7 --softcap 3 \
    --entropy options.entropy.csv
check "... with a bias, temperature, softcap, padded vocabulary" "$(differences options-entropy.csv options.entropy.csv $tolerance)"
score $plain --target ignoring-i64.npy --ignore-index -7 --entropy ignoring.entropy.csv
check "... of ignored rows too" "$(differences ignoring-entropy.csv ignoring.entropy.csv $tolerance)"
score $plain --target target-i32.npy --out beside.csv --entropy entropy.json
check_same "... changes no log-probability" f32.csv beside.csv
check_equal "... has every row in JSON" 37,37 "$(json_value entropy.json rows),$(json_value entropy.json entropy)"
score $plain --target target-i32.npy --out out.npy
check_equal "a .npy holds 37 floats behind 128 bytes" $((128 + 4 * 37)) "$(wc -c <out.npy)"
check_match "... of which its header tells" "'descr': '<f4', 'fortran_order': False, 'shape': \(37,\)" out.npy
score $plain --target target-i32.npy --argmax argmax.npy
check_match "argmax in a .npy is int32" "'descr': '<i4', 'fortran_order': False, 'shape': \(37,\)" argmax.npy
check_equal "... with the tokens of the CSV" "$(tail -n +2 argmax.csv | cut -d, -f 2 | xargs)" "$(tail -c +129 argmax.npy | od -An -v -td4 | xargs)"
check "a .npy has the numbers of the CSV" "$(
    tail -c +129 out.npy | od -An -v -tf4 -w4 >values
    tail -n +2 f32.csv | paste -d, - values | awk -F, '
        NF != 4 { print "rows differ: " $0; next }
        { error = $4 / $3 - 1; if (!(error < 1e-7 && error > -1e-7)) print } # od prints 8 digits or more
        END { if (NR != 37) print NR " rows" }')"
# A float array [37] cannot be a weight. The message says that, which shows that the file was read.
check_fails "... and is read back" 4 "--weight: got f32 [37], wanted 2 dimensions" score --hidden hidden-f32.npy --weight out.npy --target target-i32.npy

score --hidden none-f32.npy --weight weight-f32.npy --target none-i32.npy --out none.csv
check_equal "no rows give an empty result" "row,target,logp" "$(cat none.csv)"
fusedlogp score --backend cpu $plain --target nothing-i32.npy --ignore-index -7 --json >nothing.json
check_equal "all rows ignored: no mean" 0,null "$(json_value nothing.json tokens),$(json_value nothing.json mean_logp)"
check "quiet prints nothing" "$(score $plain --target target-i32.npy --out quiet.csv 2>&1)"
check_same "... and works" f32.csv quiet.csv

# ---- other types
for type in u8 i8 u16 i16 u32 u64 i64; do
    score $plain --target target-$type.npy --out $type.csv
    check_same "targets of $type" f32.csv $type.csv
done
for pair in "f32 bf16" "bf16 f32" "f16 f32" "f32 f16"; do
    set -- $pair
    score --hidden hidden-$1.npy --weight weight-$2.npy --target target-i32.npy --out converted.csv 2>messages
    check_same "$1 states under a $2 weight" $2.csv converted.csv
    check_match "... with a word" "--hidden: converted from $1 to $2 as the weight has, which holds every value exactly" messages
done
{ head -c 128 hidden-f32.npy; printf '\001\000\200\077'; tail -c +133 hidden-f32.npy; } >fine.npy # 1 + 2^-23 in row 0
score --hidden fine.npy --weight weight-bf16.npy --target target-i32.npy --chunk-rows 5 --out rounded.csv 2>messages
check_match "rounding is told" "warning: --hidden: converted from f32 to bf16 as the weight has; 1 of 888 values were rounded" messages
check_equal "... and changes that row alone" "$(tail -n +3 bf16.csv | cksum)" "$(tail -n +3 rounded.csv | cksum)"

# ---- sequences
for from in "--hidden batch-f32.npy --weight weight-f32.npy" "--hidden batch-bf16.npy --weight weight-bf16.npy" "--logits batch-logits-f32.npy"; do
    score $from --target tokens-u16.npy --out batch.csv
    head -37 plain.csv >first.csv
    check "[B, T] with ${from##*/}" "$(differences first.csv batch.csv $tolerance)"
    score $from --target tokens-u16.npy --shift --out batch.csv
    check "... shifted" "$(differences shifted.csv batch.csv $tolerance)"
done
score --hidden batch-f32.npy --weight weight-f32.npy --target tokens-u16.npy --shift --out batch.npy --argmax batch-argmax.npy
check_match "results have the shape of the targets" "'shape': \\(4, 9\\), }" batch.npy
check_match "... every one" "'shape': \\(4, 9\\), }" batch-argmax.npy
score --hidden sequence-bf16.npy --weight weight-bf16.npy --target sequence-u8.npy --shift --out sequence.csv
head -10 shifted.csv >first.csv
check "one sequence" "$(differences first.csv sequence.csv $tolerance)"

# Names of folders and tensors may hold what ends a file's name.
mkdir odd.safetensors:folder
cp all-f32.safetensors odd.safetensors:folder
cp hidden-f32.npy all-f32.safetensors:hidden.npy
file=odd.safetensors:folder/all-f32.safetensors
score --hidden $file:hidden --weight $file:weight --target $file:target --out odd.csv
check_same "a folder with the extension in its name" f32.csv odd.csv
score --hidden all-f32.safetensors:hidden.npy --weight $file:weight --target $file:target --out odd.csv
check_same "a file with another's name in its own" f32.csv odd.csv
rm all-f32.safetensors:hidden.npy
check_fails "a tensor whose name ends as a file's is looked for in its file" 4 "no tensor named hidden.npy" \
    score --hidden all-f32.safetensors:hidden.npy --weight $file:weight --target $file:target --out never.csv
finish
