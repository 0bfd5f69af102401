# fusedlogp score --model: the head of a model in the Hugging Face layout, in one file and in shards.
. "$(dirname "$0")/setup.sh"
make_tensors
score() { fusedlogp score --backend cpu --quiet "$@"; }
tolerance=1e-6

model() { # NAME CONFIG FILE: a folder with config.json and that file as model.safetensors
    mkdir "$1" && printf '%s\n' "$2" >"$1/config.json" && cp "$3" "$1/model.safetensors"
}
sizes='"hidden_size": 24, "vocab_size": 101'
model tied "{$sizes, \"tie_word_embeddings\": true}" tied.safetensors
model unsaid "{$sizes}" both.safetensors
model said "{$sizes, \"tie_word_embeddings\": true}" both.safetensors
model multimodal "{\"text_config\": {$sizes, \"final_logit_softcapping\": 2.0}}" multimodal.safetensors
model gpt2 '{"model_type": "gpt2", "n_embd": 24, "vocab_size": 101}' gpt2.safetensors
model granite "{$sizes, \"logits_scaling\": 4.0, \"tie_word_embeddings\": true}" tied.safetensors
model sharded "{$sizes, \"tie_word_embeddings\": false}" other.safetensors
mv sharded/model.safetensors sharded/model-00001-of-00002.safetensors
cp head.safetensors sharded/model-00002-of-00002.safetensors
index='{"metadata": {"total_size": 1}, "weight_map": {"model.embed_tokens.weight": "model-00001-of-00002.safetensors",
 "lm_head.weight": "model-00002-of-00002.safetensors", "lm_head.bias": "model-00002-of-00002.safetensors"}}'
printf '%s\n' "$index" >sharded/model.safetensors.index.json

check_model() { # NAME REFERENCE HIDDEN OPTION...
    name=$1 reference=$2 hidden=$3
    shift 3
    rm -f out.csv
    score --model "$name" --hidden "$hidden" --target target-u16.npy --out out.csv "$@" 2>messages
    check "$name $*" "$(differences "$reference" out.csv $tolerance)"
}
check_model tied plain.csv hidden-bf16.npy
check_model tied capped.csv hidden-bf16.npy --softcap 2
check_model unsaid plain.csv hidden-f32.npy
check_model multimodal capped.csv hidden-bf16.npy
check_model gpt2 plain.csv hidden-f16.npy
check_model granite scaled.csv hidden-bf16.npy
check_model granite plain.csv hidden-bf16.npy --temperature 0.25
check_model sharded biased.csv hidden-bf16.npy
check_model tied/config.json plain.csv hidden-bf16.npy
check_model "$work/sharded/config.json" biased.csv hidden-bf16.npy
(cd granite && score --model config.json --hidden ../hidden-bf16.npy --target ../target-u16.npy --out ../out.csv)
check "config.json of the folder that one is in" "$(differences scaled.csv out.csv $tolerance)"
check_model sharded biased.csv hidden-f32.npy
check_match "fp32 states are converted with a word" "converted from f32 to bf16 as the weight has" messages
rm -f out.csv
score --model said --hidden hidden-bf16.npy --target target-u16.npy --out out.csv
check "a tied model's own head is not taken" "$([ -n "$(differences plain.csv out.csv 0.1)" ] || echo 'it was')"
fusedlogp score --backend cpu --model sharded --hidden hidden-bf16.npy --target target-u16.npy >summary.txt
check_match "the summary says which head it was" \
    "^head           sharded/model-00002-of-00002.safetensors:lm_head.weight with bias, vocabulary 101 of 104 rows$" summary.txt
fusedlogp score --backend cpu --model multimodal --hidden hidden-bf16.npy --target target-u16.npy --json >summary.json
check_equal "... and JSON" multimodal/model.safetensors:language_model.model.embed_tokens.weight "$(json_value summary.json weight)"

# ---- what is wrong with a model is named, and nothing is written
check_refused() { # NAME CODE TEXT FOLDER OPTION...
    name=$1 code=$2 text=$3 folder=$4
    shift 4
    check_fails "$name" "$code" "$text" score --model "$folder" --hidden hidden-bf16.npy --target target-u16.npy --out never.npy "$@"
}
check_refused "a folder that is missing" 1 "--model: none" none
mkdir empty
check_refused "a folder without a configuration" 1 "empty/config.json: " empty
cp tied/config.json empty
check_refused "a configuration without tensors" 1 "--model: empty: neither model.safetensors.index.json nor model.safetensors is there" empty/config.json
check_refused "a folder without tensors" 1 "--model: empty: neither model.safetensors.index.json nor model.safetensors is there" empty
model untied "{$sizes, \"tie_word_embeddings\": false}" tied.safetensors
check_refused "no head of its own" 4 "--model: untied: config.json has no tied embedding, and there is no lm_head.weight" untied
model nameless "{$sizes}" all-bf16.safetensors
check_refused "no name that is known" 4 "--model: nameless: there is no lm_head.weight and no model.embed_tokens.weight" nameless
model larger '{"hidden_size": 24, "vocab_size": 102, "tie_word_embeddings": true}' tied.safetensors
check_refused "a vocabulary beyond the weight" 4 "--model: config.json has a vocabulary of 102, and the weight 101 rows: larger/model.safetensors:" larger
model narrow '{"hidden_size": 23, "vocab_size": 101, "tie_word_embeddings": true}' tied.safetensors
check_refused "another width than the configuration's" 4 "--model: config.json has hidden states of 23, and the weight 24 columns" narrow
model integers "{$sizes}" integers.safetensors
check_refused "a weight of integers" 4 "--model: got i8 [101, 24], wanted bf16, fp16 or fp32" integers
model scaled "{$sizes, \"logits_scaling\": 4.0, \"final_logit_softcapping\": 2.0}" tied.safetensors
check_refused "scaled and capped logits" 4 "--model: scaled: logits that are scaled (by 0.25) before a softcap (of 2) are not computed here" scaled
model unknown "{$sizes, \"model_type\": \"new\", \"logits_scaling\": 4.0, \"tie_word_embeddings\": true}" tied.safetensors
check_refused "a scale of which it is not known what it does" 4 "--model: unknown: logits_scaling: got 4 with model_type \"new\", wanted a model_type" unknown
check "... and on which no kernel depends" "$(fusedlogp_gen --list --arch sm_90a --model unknown --dtype bf16 --quiet 2>&1 | grep -q linear_logp || echo none)"
model minute "{$sizes, \"logits_scaling\": 1e-15, \"tie_word_embeddings\": true}" tied.safetensors
check_refused "a scale that leaves the bounds of a temperature" 4 "--model: minute: its scale of the logits and --temperature divide them by 1e-25, wanted 2^-64" \
    minute --temperature 1e-10
cp -R sharded cut
head -c 3000 head.safetensors >cut/model-00002-of-00002.safetensors
check_refused "a truncated shard" 4 "--model: cut/model-00002-of-00002.safetensors: truncated" cut
rm cut/model-00002-of-00002.safetensors
check_refused "a shard that is missing" 1 "--model: cut/model-00002-of-00002.safetensors: No such file or directory" cut
cp other.safetensors cut/model-00002-of-00002.safetensors
check_refused "a shard without the tensor" 4 "no tensor named lm_head.weight; it holds: model.embed_tokens.weight" cut
printf '%s\n' '{"weight_map": {"lm_head.weight": "../head.safetensors"}}' >cut/model.safetensors.index.json
check_refused "a shard elsewhere" 4 "'lm_head.weight': wanted the name of a file in the same folder" cut
echo '{"weight_map": 1}' >cut/model.safetensors.index.json
check_refused "an index without a map" 4 "--model: cut/model.safetensors.index.json: wanted an object weight_map" cut
echo '{"weight_map": ' >cut/model.safetensors.index.json
check_refused "half an index" 4 "--model: cut/model.safetensors.index.json: not JSON" cut
head -c 100 tied.safetensors >tied/model.safetensors
check_refused "a truncated header" 4 "--model: tied/model.safetensors: truncated: the header has" tied
model capped "{$sizes, \"final_logit_softcapping\": 1e-300, \"tie_word_embeddings\": true}" tied.safetensors
check_refused "a softcap out of bounds" 4 "--model: capped/config.json: final_logit_softcapping: got 1e-300, wanted a number from 2^-126 to 2^126" capped
check_fails "... to fusedlogp-gen, too" 4 "capped/config.json: final_logit_softcapping: got 1e-300" fusedlogp_gen --list --arch sm_90a --model capped --dtype bf16
check "none of these wrote a result" "$(ls never.npy 2>/dev/null)"
cp sharded/config.json config.txt
cp sharded/model.safetensors.index.json index.txt
for file in config.json model.safetensors.index.json; do
    check_fails "a result over a model's $file" 2 "--out: sharded/$file is a file of --model, sharded" \
        score --model sharded --hidden hidden-bf16.npy --target target-u16.npy --out sharded/$file
    check_fails "a plot over a model's $file" 2 "--plot: sharded/$file is a file of --model, sharded" fusedlogp tune --model sharded --plot sharded/$file
done
check_fails "a plot over a model's tensors" 2 "--plot: sharded/model-00001-of-00002.safetensors is a file of --model" \
    fusedlogp tune --model sharded --plot sharded/model-00001-of-00002.safetensors
check_same "... leaves it as it was" config.txt sharded/config.json
check_same "... and the index" index.txt sharded/model.safetensors.index.json
check_fails "a weight beside a model" 2 "--model: wanted without --weight" score --model sharded --weight weight-bf16.npy --hidden h.npy --target t.npy
check_fails "a bias beside a model" 2 "--model: wanted without --bias" score --model sharded --bias bias-bf16.npy --hidden h.npy --target t.npy
check_fails "logits beside a model" 2 "--logits: wanted without --model" score --model sharded --logits l.npy --target t.npy
finish
