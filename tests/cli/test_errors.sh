# fusedlogp score: for an input that does not fit, the message says which it is, what it got and what it wanted, and nothing is written.
. "$(dirname "$0")/setup.sh"
make_tensors
score() { fusedlogp score --backend cpu --out never.csv "$@"; }
hidden=hidden-f32.npy weight=weight-f32.npy target=target-i32.npy

check_fails "a file that is missing" 1 "--hidden: none.npy: No such file" score --hidden none.npy --weight $weight --target $target
check_fails "a name without a format" 4 "--hidden: hidden.bin: wanted a name that ends in" score --hidden hidden.bin --weight $weight --target $target
check_fails "a tensor that is missing" 4 "no tensor named lm_head; it holds: target, hidden, weight, bias" \
    score --hidden $hidden --weight all-f32.safetensors:lm_head --target $target
check_fails "several tensors and no name" 4 "the file holds several" score --hidden $hidden --weight all-f32.safetensors --target $target
check_fails "integer hidden states" 4 "--hidden: got i32 [37], wanted bf16, fp16 or fp32" score --hidden $target --weight $weight --target $target
check_fails "float targets" 4 "--target: got f32 [101], wanted integers" score --hidden $hidden --weight $weight --target bias-f32.npy
{ cat $hidden | head -c 128; printf '\177\177\177\177'; tail -c +133 $hidden; } >huge.npy # 3.4e38 in row 0
check_fails "hidden states that the weight's type does not hold" 4 "--hidden: row 0 holds 3.39615e+38, which is too large for f16 as the weight has" \
    score --hidden huge.npy --weight weight-f16.npy --target $target
{ head -c 128 target-u64.npy; printf '\377\377\377\377\377\377\377\377'; tail -c +137 target-u64.npy; } >huge-u64.npy
check_fails "a target beyond 63 bits" 4 "--target: huge-u64.npy: element 0 is 18446744073709551615, wanted at most 9223372036854775807" \
    score --hidden $hidden --weight $weight --target huge-u64.npy
{ head -c 128 target-i16.npy; printf '\377\177'; tail -c +131 target-i16.npy; } >huge-i16.npy
check_fails "a short target outside the vocabulary" 4 "--target: row 0 is 32767, wanted 0 to 100" score --hidden $hidden --weight $weight --target huge-i16.npy
check_fails "floats of 8 bytes" 4 "--hidden: wide.npy: dtype '<f8', wanted <f4, <f2, <V2 (bf16) or integers" \
    eval "sed 's/<f4/<f8/' $hidden >wide.npy; score --hidden wide.npy --weight $weight --target $target"
check_fails "targets without the batch" 4 "--target: got i32 [37], wanted [4, 9] as --hidden has" score --hidden batch-f32.npy --weight $weight --target $target
check_fails "targets of another batch" 4 "--target: got u16 [9, 4], wanted [4, 9] as --hidden has" \
    score --hidden batch-f32.npy --weight $weight --target turned-tokens-u16.npy --shift
check_fails "targets of a batch that the states lack" 4 "--target: got u16 [4, 9], wanted [37] as --hidden has" \
    score --hidden $hidden --weight $weight --target tokens-u16.npy
check_fails "a vector as weight" 4 "--weight: got f32 [101], wanted 2 dimensions" score --hidden $hidden --weight bias-f32.npy --target $target
check_fails "another hidden size" 4 "--weight: got f32 [101, 24] in layout vd, which does not fit --hidden, f32 [37, 23]" \
    score --hidden narrow-f32.npy --weight $weight --target $target
check_fails "the other layout" 4 "--weight: got f32 [101, 24] in layout dv" score --hidden $hidden --weight $weight --layout dv --target $target
check_fails "too few targets" 4 "--target: got 36 rows, wanted 37" score --hidden $hidden --weight $weight --target fewer-i32.npy
check_fails "a short bias" 4 "--bias: got 100 values, wanted 101" score --hidden $hidden --weight $weight --target $target --bias short-f32.npy
check_fails "a vocabulary beyond the weight" 4 "--vocab: got 102, wanted 1 to the weight's 101" \
    score --hidden $hidden --weight $weight --target $target --vocab 102
check_fails "a negative target" 4 "--target: row 5 is -7, wanted 0 to 100 or the ignore index -100" \
    score --hidden $hidden --weight $weight --target ignoring-i64.npy
first=$(awk -F, 'NR > 1 && $2 >= 50 { print "row " $1 " is " $2; exit }' plain.csv)
check_fails "a target beyond --vocab" 4 "--target: $first, wanted 0 to 49" score --hidden $hidden --weight $weight --target $target --vocab 50
head -c 1000 $hidden >cut.npy
check_fails "a truncated .npy" 4 "--hidden: cut.npy: truncated: the shape takes 3552 bytes and the file holds 872" \
    score --hidden cut.npy --weight $weight --target $target
head -c 1000 all-f32.safetensors >cut.safetensors
check_fails "a truncated safetensors" 4 "cut.safetensors: truncated" score --hidden $hidden --weight cut.safetensors:weight --target $target
sed 's/<f4/>f4/' $hidden >big.npy
check_fails "big endian" 4 "big endian" score --hidden big.npy --weight $weight --target $target
sed 's/False/True /' $hidden >fortran.npy
check_fails "Fortran order" 4 "Fortran order" score --hidden fortran.npy --weight $weight --target $target
check "none of these wrote a result" "$(ls never.csv 2>/dev/null)"

check_fails "a result in a folder that is missing" 1 "none/out.csv" \
    fusedlogp score --backend cpu --hidden $hidden --weight $weight --target $target --out none/out.csv
echo old >kept.csv
check_fails "a failure keeps the old result" 4 "--bias" \
    fusedlogp score --backend cpu --hidden $hidden --weight $weight --target $target --bias short-f32.npy --out kept.csv
check_equal "... as it was" old "$(cat kept.csv)"
if [ "$(fusedlogp info --json >info.json; json_value info.json devices)" = 0 ]; then
    check_fails "a GPU path without a GPU says why" 3 libcuda fusedlogp score --backend sm_90a --hidden $hidden --weight $weight --target $target
else
    check_fails "a device that is not there" 3 "--device: got 99" \
        fusedlogp score --device 99 --hidden $hidden --weight $weight --target $target
fi

# ---- the benchmark, whose cases are read before it looks for a device
check_fails "a case that is none, beside one that is" 2 "n64:bogus: problem \"linear_logp:bf16:n64:bogus\": part 4: got \"bogus\", wanted d<hidden>" \
    "$build/bench/fusedlogp_bench" --no-start --cases n64:d64:v64,n64:bogus
for case in linear_logp_backward:bf16:n1:d64:v64:gw_f16 linear_cross_entropy:f32:n1:d64:v64 logits_logp:f16:n1:v64 scale:bf16:n0:d8 weighted_sum:f16:n8:d8; do
    check_fails "a case that the baseline of ${case%%:*} does not have" 2 "case $case: wanted" "$build/bench/fusedlogp_bench" --no-start --cases $case
done
finish
