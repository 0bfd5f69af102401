# fusedlogp score --model gives the loss of transformers, for tiny random models of several families, whose states the program of docs/scoring.md saves.
. "$(dirname "$0")/setup.sh"

python=$(find_python "${FUSEDLOGP_TRANSFORMERS_PYTHON:-}" torch transformers)
if [ -z "$python" ]; then
    skip "the loss of transformers" "no Python with torch and transformers (FUSEDLOGP_TRANSFORMERS_PYTHON names one)"
    finish
    exit
fi
awk '/^```/ { inside = 0 } inside; /^```python transformers states.py/ { inside = 1 }' "$here/../../docs/scoring.md" >"$work/states.py"
check_file "the program of docs/scoring.md" "$work/states.py"
cd "$work" || exit 1

# Writes folders with a model and its states, tokens [3, 17], and labels of which some are ignored; prints the losses that transformers computes from both.
cat >models.py <<'END'
import os
import runpy
import sys

import numpy
import torch
from transformers import (Gemma2Config, Gemma2ForCausalLM, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, PhiConfig, PhiForCausalLM)

torch.manual_seed(0)
small = dict(vocab_size=211, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2)
models = {
    "llama": LlamaForCausalLM(LlamaConfig(**small)),
    "llama-bf16": LlamaForCausalLM(LlamaConfig(**small)).to(torch.bfloat16),
    "llama-tied": LlamaForCausalLM(LlamaConfig(**small, tie_word_embeddings=True)),
    "gemma2": Gemma2ForCausalLM(Gemma2Config(**small, head_dim=16, final_logit_softcapping=0.5)),
    "gpt2": GPT2LMHeadModel(GPT2Config(vocab_size=211, n_embd=64, n_layer=2, n_head=4, n_positions=32)),
    "phi": PhiForCausalLM(PhiConfig(**{**small, "num_key_value_heads": 4})),
}
tokens = torch.randint(0, 211, (3, 17))
labels = tokens.clone()
labels[1, 5:9] = -100
numpy.save("tokens.npy", tokens.numpy().astype(numpy.uint16))
numpy.save("labels.npy", labels.numpy())
for name, model in models.items():
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(8)  # logits of a few units
        if model.lm_head.bias is not None:
            model.lm_head.bias.normal_()
    model.eval().save_pretrained(name, max_shard_size="40KB" if name == "llama" else "5GB")
    os.chdir(name)
    sys.argv = ["states.py", ".", "../tokens.npy"]
    program = runpy.run_path("../states.py")
    os.chdir("..")
    with torch.no_grad():
        if model.dtype == torch.float32:
            losses = [model(input_ids=tokens, labels=wanted).loss.item() for wanted in (tokens, labels)]
        else:  # transformers rounds such logits to bf16, which is not what is compared: its loss of the same states and head in fp32
            exact = type(model).from_pretrained(name, dtype=torch.float32).eval()
            logits = exact.lm_head(torch.cat(program["states"]).float())
            losses = [exact.loss_function(logits=logits, labels=wanted, vocab_size=211).item() for wanted in (tokens, labels)]
    print(name, *losses)
END
"$python" models.py >losses.txt 2>messages || sed "s/^/# /" messages
check_lines "models and their losses" 6 losses.txt
while read -r name wanted wanted_labels; do
    fusedlogp score --backend cpu --model "$name" --hidden "$name/states.safetensors" --target tokens.npy --shift --json >summary.json
    # Allowed: 2e-6. Both sum 48 losses of a few units in fp32, from fp32 logits.
    check_numbers "$name: the loss of transformers" 'b > 0 && (a / b + 1) ^ 2 <= 4e-12' "$(json_value summary.json mean_logp)" "$wanted"
    check_equal "... of every token but the first of each sequence" 48 "$(json_value summary.json tokens)"
    fusedlogp score --backend cpu --model "$name" --hidden "$name/states.safetensors" --target labels.npy --shift --json >summary.json
    check_numbers "$name: with labels that are ignored" 'b > 0 && (a / b + 1) ^ 2 <= 4e-12' "$(json_value summary.json mean_logp)" "$wanted_labels"
done <losses.txt
check_match "one of the models lay in shards" weight_map llama/model.safetensors.index.json
finish
