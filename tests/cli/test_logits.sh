# fusedlogp score --logits: scores logits that have been computed already.
. "$(dirname "$0")/setup.sh"
make_tensors
score() { fusedlogp score --backend cpu "$@"; }
logits="--logits logits-f32.npy --target target-i32.npy"

# Allowed: 1e-6, the library's promise. The logits themselves are exact.
score $logits --quiet --out plain.out.csv --lse lse.csv --argmax argmax.csv
check "log-probabilities: fp64 within 1e-6" "$(differences plain.csv plain.out.csv 1e-6)"
score --logits biased-f32.npy --target target-i64.npy --vocab 90 --temperature 0.7 --softcap 3 --quiet --out options.out.csv
check "temperature, softcap, padded rows" "$(differences options.csv options.out.csv 1e-6)"
score --logits logits-f32.npy --target ignoring-i64.npy --ignore-index -7 --quiet --out ignoring.out.csv
check "an ignored row is 0 and the others are as before" "$(differences ignoring.csv ignoring.out.csv 1e-6)"
score $logits --chunk-rows 5 --quiet --out chunks.csv
check_same "chunks change no bit" plain.out.csv chunks.csv
score --hidden hidden-f32.npy --weight weight-f32.npy --target target-i32.npy --quiet --argmax argmax.head.csv
check_same "the most probable tokens are those of hidden and weight" argmax.head.csv argmax.csv
score $logits --quiet --entropy entropy.csv
check "entropy: fp64 within 1e-6" "$(differences plain-entropy.csv entropy.csv 1e-6)"
check_equal "lse has a line a row" "row,lse,38" "$(head -1 lse.csv),$(wc -l <lse.csv)"
score $logits --json >summary.json
check_equal "the summary names the problem" logits_logp:f32:n37:v101:align4:target_i32:cpu "$(json_value summary.json problem)"

check_fails "logits beside a weight" 2 "--logits: wanted without --weight" score $logits --weight weight-f32.npy
check_fails "logits and --exact" 2 "--logits: wanted without --exact" score $logits --exact
check_fails "logits without targets" 2 "--target is missing" score --logits logits-f32.npy
check_fails "a vector of logits" 4 "--logits: got f32 [101], wanted 2 or 3 dimensions" score --logits bias-f32.npy --target target-i32.npy
check_fails "too few targets" 4 "--target: got 36 rows, wanted 37 as --logits has" score --logits logits-f32.npy --target fewer-i32.npy
check_fails "a vocabulary beyond the rows" 4 "--vocab: got 102, wanted 1 to the row's 101" score $logits --vocab 102
check_fails "a target beyond --vocab" 4 "wanted 0 to 9 or" score $logits --vocab 10
finish
