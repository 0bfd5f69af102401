# fusedlogp score: rows that come out as NaN are counted, the first is named with the reason, and --strict fails.
. "$(dirname "$0")/setup.sh"
make_tensors
score() { fusedlogp score --backend cpu --weight weight-f32.npy --target target-i32.npy "$@"; }
value() { json_value summary.json "$1"; }

# A .npy has 128 bytes of header; a row of hidden states 24 floats, one of logits 101.
put() { # FILE BYTES OFFSET: four bytes, little endian
    printf "$2" | dd of="$1" bs=1 seek=$((128 + $3)) conv=notrunc 2>/dev/null
}
not_a_number='\000\000\300\177' infinity='\000\000\200\177'
cp hidden-f32.npy nan.npy
for row in 7 20 36; do put nan.npy "$not_a_number" $((4 * (24 * row + 5))); done

score --hidden nan.npy --out nan.csv --json >summary.json 2>messages
check_equal "rows that are NaN are no failure" 0 $?
check_equal "... and are said" "fusedlogp: warning: 3 of 37 scored rows are NaN; the first is row 7: its hidden state holds values that are not finite" \
    "$(cat messages)"
check_equal "JSON counts them and has the first" 3,7,0 "$(value nan_rows),$(value first_nan_row),$(value infinite_rows)"
check_equal "... and no mean" null,null "$(value mean_logp),$(value perplexity)"
check_equal "the result has them" "7 20 36" "$(awk -F, 'NR > 1 && $3 ~ /nan/ { print $1 }' nan.csv | xargs)"
score --hidden nan.npy >summary.txt 2>/dev/null
check_match "so has the summary" '^NaN  *3 rows, the first is row 7$' summary.txt
printf 'mean log-prob  nan\nperplexity     nan\n' >wanted.txt
grep -E '^(mean log-prob|perplexity)' summary.txt >means.txt
check_same "... with means that are none, without a sign" wanted.txt means.txt
score --hidden nan.npy --entropy entropy.csv >summary.txt 2>/dev/null
check_match "... that of entropies, too" '^mean entropy   nan$' summary.txt
check_equal "nor is there a sign in the result" "7,27,nan" "$(grep '^7,' nan.csv)"
for i in 0 1; do score --hidden nan.npy --out parts.csv --shard $i/2 --quiet 2>/dev/null; done
fusedlogp merge --out merged.csv parts.csv.shard-0-of-2 parts.csv.shard-1-of-2 >summary.txt
grep -E '^(mean log-prob|perplexity)' summary.txt >means.txt
check_same "merge prints the same means" wanted.txt means.txt
check_same "... and writes the same result" nan.csv merged.csv
score --hidden nan.npy --quiet 2>messages
check_match "--quiet says it too" 'the first is row 7' messages

score --hidden nan.npy --strict --quiet --out strict.csv 2>messages
check_equal "--strict fails" 4 $?
check_match "... and says why" '^fusedlogp: 3 of 37 scored rows are NaN; the first is row 7: ' messages
check_same "... with the same result" nan.csv strict.csv
score --hidden nan.npy --strict --json >summary.json 2>/dev/null
check_equal "... with --json too" 4,3 "$?,$(value nan_rows)"
if [ -w /dev/full ]; then
    score --hidden nan.npy --strict >/dev/full 2>messages
    check_equal "... and keeps its exit status where the summary is lost" 4 $?
    check_match "... which is told too" 'standard output cannot be written' messages
fi
score --hidden hidden-f32.npy --strict --json >summary.json 2>messages
check_equal "--strict of sound rows holds" 0,0,null "$?,$(value nan_rows),$(value first_nan_row)"
check "... without a word" "$(cat messages 2>&1)"

# Row 5 is ignored, so a NaN in it does not count.
cp hidden-f32.npy ignored.npy
put ignored.npy "$not_a_number" $((4 * 24 * 5))
fusedlogp score --backend cpu --hidden ignored.npy --weight weight-f32.npy --target ignoring-i64.npy --ignore-index -7 --strict --quiet \
    --lse ignored.csv 2>messages
check_equal "an ignored row may be NaN" 0 $?
check "... without a word" "$(cat messages 2>&1)"

cp bias-f32.npy bias.npy
put bias.npy "$not_a_number" 8
score --hidden hidden-f32.npy --bias bias.npy --quiet 2>messages
check_match "a bias that is NaN is told from a row" '37 of 37 scored rows are NaN; the first is row 0: its logits are not finite, for weight or bias' messages
cp logits-f32.npy logits.npy
put logits.npy "$infinity" $((4 * (101 * 9 + 100)))
fusedlogp score --backend cpu --logits logits.npy --target target-i32.npy --quiet 2>messages
check_match "a row of logits" '1 of 37 scored rows are NaN; the first is row 9: its logits hold values that are not finite' messages
fusedlogp score --backend cpu --logits logits.npy --target target-i32.npy --vocab 100 --strict --quiet 2>messages
check_equal "... behind the vocabulary does not count" 0 $?

# -inf is a valid result: the token cannot occur.
first=$(awk -F, '$1 == 0 { print $2 }' plain.csv)
cp bias-f32.npy masked.npy
put masked.npy '\000\000\200\377' $((4 * first))
rows=$(awk -F, -v token="$first" 'NR > 1 && $2 == token { rows++ } END { print rows }' plain.csv)
score --hidden hidden-f32.npy --bias masked.npy --strict --json >summary.json 2>messages
check_equal "a token that a bias of -inf rules out is no NaN" "0,0,$rows" "$?,$(value nan_rows),$(value infinite_rows)"
finish
