"""Trains a small causal language model of transformers twice, with its own loss and with fusedlogp's, and compares losses and memory.

usage: train_causal_lm.py [--steps 50] [--device cpu] [--dtype float32]

The one change: the decoder gives its hidden states, and fusedlogp.linear_cross_entropy takes them with lm_head's weight, so that the logits [B, T, V]
are never there.
"""

import argparse
import copy

import torch
from transformers import LlamaConfig, LlamaForCausalLM

import fusedlogp


def model_of(dtype, device):
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=2048,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=128,
        tie_word_embeddings=True,
    )
    return LlamaForCausalLM(config).to(device=device, dtype=dtype)


def batches(steps, device):
    """Sequences that can be learned: the next token is a multiple of this one. A few labels are ignored."""
    generator = torch.Generator().manual_seed(1)
    for _ in range(steps):
        tokens = torch.empty(4, 64, dtype=torch.long)
        tokens[:, 0] = torch.randint(1, 2048, (4,), generator=generator)
        for t in range(1, 64):
            tokens[:, t] = tokens[:, t - 1] * 5 % 2039
        labels = tokens.clone()
        labels[:, :3] = -100
        yield tokens.to(device), labels.to(device)


def eager_loss(model, tokens, labels):
    return model(input_ids=tokens, labels=labels, use_cache=False).loss


def fused_loss(model, tokens, labels):
    hidden = model.model(input_ids=tokens, use_cache=False).last_hidden_state
    return fusedlogp.linear_cross_entropy(hidden, model.lm_head.weight, labels, shift=True)


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


def train(model, loss, steps, device):
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    losses = []
    for tokens, labels in batches(steps, device):
        optimizer.zero_grad()
        value = loss(model, tokens, labels)
        value.backward()
        optimizer.step()
        losses.append(float(value.detach()))
    return losses


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16"))
    arguments = parser.parse_args()
    dtype = getattr(torch, arguments.dtype)
    start = model_of(dtype, arguments.device)
    tokens, labels = next(batches(1, arguments.device))
    eager_peak, fused_peak = (peak_of(start, loss, tokens, labels) for loss in (eager_loss, fused_loss))
    eager = train(copy.deepcopy(start), eager_loss, arguments.steps, arguments.device)
    fused = train(copy.deepcopy(start), fused_loss, arguments.steps, arguments.device)
    largest = max(abs(a - b) / max(abs(a), 1) for a, b in zip(eager, fused))
    print(f"loss of step 1 and {arguments.steps}: eager {eager[0]:.6f}, {eager[-1]:.6f}; fused {fused[0]:.6f}, {fused[-1]:.6f}")
    print(f"largest relative difference of a step: {largest:.2e}")
    what = "memory of a step" if arguments.device != "cpu" else "largest tensor of a forward"
    print(f"{what}: eager {eager_peak / 2**20:.2f} MiB, fused {fused_peak / 2**20:.2f} MiB")
    # Two runs part by a rounding of each parameter and step: half a unit of the dtype, which steps add up.
    allowed = arguments.steps * torch.finfo(dtype).eps
    if largest > allowed:
        raise SystemExit(f"the losses differ by {largest:.2e}, allowed {allowed:.2e}")
    if fused_peak >= eager_peak:
        raise SystemExit("the fused loss takes no less memory")


if __name__ == "__main__":
    main()
