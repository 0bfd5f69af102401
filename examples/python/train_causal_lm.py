"""Trains a causal language model of transformers with its own loss and with fusedlogp's, and compares losses and memory.

usage: train_causal_lm.py [--model tiny] [--steps 50] [--device cpu] [--dtype float32] [--json FILE]

The one change: the decoder gives its hidden states, and fusedlogp.linear_cross_entropy takes them with lm_head's weight, so that the logits [B, T, V]
are never stored. Weights are random; --model 0.5b has the shape of Qwen2-0.5B, for a GPU.

How much the losses may differ is measured: a third run computes its logits and loss in fp32 by torch's own operations, with the sequences of each batch in
reverse. It differs from the model's own loss by rounding alone, which the steps carry on. fusedlogp's losses may differ by three times as much at most.
"""

import argparse
import copy
import json

import torch
import transformers
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

import fusedlogp

functional = torch.nn.functional


def tiny():
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=2048,
            hidden_size=64,
            intermediate_size=128,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=128,
            tie_word_embeddings=True,
        )
    )


def half_a_billion():
    return Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=151936,
            hidden_size=896,
            intermediate_size=4864,
            num_hidden_layers=24,
            num_attention_heads=14,
            num_key_value_heads=2,
            tie_word_embeddings=True,
        )
    )


# The function that makes a model, the sequences of a batch, the tokens of a sequence, and the learning rate.
MODELS = {"tiny": (tiny, 4, 64, 2e-3), "0.5b": (half_a_billion, 4, 2048, 1e-4)}


def model_of(name, dtype, device):
    torch.manual_seed(0)
    with torch.device(device):
        return MODELS[name][0]().to(dtype)


def batches(name, steps, device):
    """Sequences that can be learned: the next token is a multiple of this one. A few labels are ignored."""
    _, sequences, length, _ = MODELS[name]
    generator = torch.Generator().manual_seed(1)
    powers = torch.tensor([pow(5, t, 2039) for t in range(length)])
    for _ in range(steps):
        tokens = torch.randint(1, 2039, (sequences, 1), generator=generator) * powers % 2039
        labels = tokens.clone()
        labels[:, :3] = -100
        yield tokens.to(device), labels.to(device)


def eager_loss(model, tokens, labels):
    return model(input_ids=tokens, labels=labels, use_cache=False).loss


def fused_loss(model, tokens, labels):
    hidden = model.model(input_ids=tokens, use_cache=False).last_hidden_state
    return fusedlogp.linear_cross_entropy(hidden, model.lm_head.weight, labels, shift=True)


def fp32_loss(model, tokens, labels):
    hidden = model.model(input_ids=tokens.flip(0), use_cache=False).last_hidden_state[:, :-1]
    logits = hidden.float() @ model.lm_head.weight.float().t()
    return functional.cross_entropy(logits.flatten(0, 1), labels.flip(0)[:, 1:].flatten())


LOSSES = {"eager": eager_loss, "fusedlogp": fused_loss, "fp32": fp32_loss}


class LargestTensor(torch.utils._python_dispatch.TorchDispatchMode):
    """On the CPU torch has no counter of memory: this takes the largest result of any operation in the forward."""

    def __init__(self):
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for value in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(value, torch.Tensor):
                self.bytes = max(self.bytes, value.numel() * value.element_size())
        return result


def peak_of(model, loss, tokens, labels):
    """What one step takes: torch's own counter on a GPU, else the largest tensor."""
    if tokens.is_cuda:
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        loss(model, tokens, labels).backward()
        torch.cuda.synchronize()
        peak = torch.cuda.max_memory_allocated() - before
    else:
        with LargestTensor() as largest:
            loss(model, tokens, labels)
        peak = largest.bytes
    model.zero_grad()
    return peak


def train(model, loss, data, rate):
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    losses = []
    for tokens, labels in data:
        optimizer.zero_grad()
        value = loss(model, tokens, labels)
        value.backward()
        optimizer.step()
        losses.append(float(value.detach()))
    return losses


def apart(losses, others):
    """The largest difference of two losses of a step, relative to the loss where that is more than 1."""
    return max(abs(a - b) / max(abs(a), 1) for a, b in zip(losses, others))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="tiny", choices=MODELS)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16"))
    parser.add_argument("--json", help="a file for losses and memory")
    arguments = parser.parse_args()
    dtype = getattr(torch, arguments.dtype)
    start = model_of(arguments.model, dtype, arguments.device)
    data = list(batches(arguments.model, arguments.steps, arguments.device))
    memory = {name: peak_of(start, LOSSES[name], *data[0]) for name in ("eager", "fusedlogp")}
    losses = {name: train(copy.deepcopy(start), loss, data, MODELS[arguments.model][3]) for name, loss in LOSSES.items()}
    eager, fused = losses["eager"], losses["fusedlogp"]
    largest, yardstick = apart(eager, fused), apart(eager, losses["fp32"])
    print(f"loss of step 1 and {arguments.steps}: eager {eager[0]:.6f}, {eager[-1]:.6f}; fused {fused[0]:.6f}, {fused[-1]:.6f}")
    print(f"largest relative difference of a step: {largest:.2e}; by another order of eager sums {yardstick:.2e}")
    what = "memory of a step" if arguments.device != "cpu" else "largest tensor of a forward"
    print(f"{what}: eager {memory['eager'] / 2**20:.2f} MiB, fused {memory['fusedlogp'] / 2**20:.2f} MiB")
    if arguments.json:
        device = torch.cuda.get_device_name() if arguments.device.startswith("cuda") else "cpu"
        with open(arguments.json, "w") as file:
            found = {"arguments": vars(arguments), "parameters": sum(p.numel() for p in start.parameters()), "memory": memory, "losses": losses}
            json.dump({"torch": torch.__version__, "transformers": transformers.__version__, "device": device, **found}, file, indent=1)
    allowed = 3 * yardstick + torch.finfo(dtype).eps
    if largest > allowed:
        raise SystemExit(f"the losses differ by {largest:.2e}, allowed {allowed:.2e}")
    if memory["fusedlogp"] >= memory["eager"]:
        raise SystemExit("the fused loss takes no less memory")


if __name__ == "__main__":
    main()
