# The example that trains a language model: a short run learns, and fusedlogp score reads the model that it saves.
. "$(dirname "$0")/setup.sh"
train_lm() { "$build/examples/train_lm" "$@"; }
train_and_report() { train_lm "$data" "$work/model.safetensors" 40 >"$work/report"; }
check_runs "the example runs" train_and_report
perplexity() { sed -n "s/^step $1:.*held-out perplexity //p" "$work/report"; }
check_numbers "it starts from the frequency of each word" 'a > 200 && a < 300' "$(perplexity 0)"
check "the loss falls" "$(sed -n 's/^step .* loss \([0-9.]*\),.*/\1/p' "$work/report" |
    awk 'NR > 1 && !($1 < last) { print } { last = $1 } END { if (NR != 4) print NR " reports" }')"
check_numbers "so does the held-out perplexity" 'b > 1 && b < 0.9 * a' "$(perplexity 0)" "$(perplexity 40)"
check_match "the bigram head's stands beside it" "the bigram head's is 67\\.6051" "$work/report"

model=$work/model.safetensors
score_model() {
    fusedlogp score --backend cpu --hidden "$model:hidden" --weight "$model:weight" --bias "$model:bias" --target "$model:target" \
        --out "$work/logp.csv" --json >"$work/score.json"
}
check_runs "fusedlogp score reads the model" score_model
# The example prints the perplexity with four decimals.
check_numbers "... and finds the same perplexity" '(exp(-a) - b) ^ 2 < 1e-6' "$(json_value "$work/score.json" mean_logp)" \
    "$(sed -n 's/^held-out perplexity \([0-9.]*\);.*/\1/p' "$work/report")"

# A file that the example cannot read or write is an error, never a crash or a success.
mkdir "$work/data"
for file in vocab.txt train.txt heldout.txt expected.json; do cp "$data/$file" "$work/data"; done
check_refused() { # NAME TEXT STEPS: exit status 1, and TEXT in the message
    train_lm "$work/data" "$work/refused.safetensors" "$3" >"$work/report" 2>"$work/messages"
    check_equal "$1 is refused" 1 $?
    check_match "... and told" "$2" "$work/messages"
}
check_refused "a number of steps that is none" "1x: wanted a number of steps" 1x
: >"$work/data/train.txt"
check_refused "an empty text" "train.txt: it is empty" 1
rm "$work/data/train.txt"
check_refused "a missing text" "train.txt: No such file" 1
mkdir "$work/data/train.txt"
check_refused "a folder for a text" "train.txt: cannot be read" 1
rmdir "$work/data/train.txt"
yes '' | head -n 500000 >"$work/data/train.txt"
check_refused "a text that is too long" "train.txt: more words than there is room for" 1
echo '<verse>' >"$work/data/vocab.txt"
check_refused "a vocabulary that holds no word" "vocab.txt: wanted" 1
if [ -w /dev/full ]; then
    train_lm "$data" "$work/full.safetensors" 1 >/dev/full 2>"$work/messages"
    check_equal "a standard output that cannot be written" 1 $?
    check_match "... is told" "standard output: cannot be written" "$work/messages"
fi
finish
