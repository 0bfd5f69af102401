#!/usr/bin/env python3
"""Times a training step of a model of half a billion parameters with the head's loss computed by eager torch, by torch.compile and by fusedlogp.

usage: model_step.py [--batch 4] [--length 2048] [--layers 24] [--width 896] [--vocab 151936] [--device cuda] [--rounds 5] [--frozen] [--json FILE]

The model is a decoder of plain torch modules (RMS norms, attention with grouped keys and rotary positions, a gated MLP of 5.43 widths, bf16, random
weights) whose embedding is tied to its head. A step is the forward and backward of the mean loss of the next token, without an optimizer. The ways of
computing the loss take turns. The table has the median time of a step, torch's peak memory beyond parameters and gradients, the loss, and how far the
embedding's gradient is from that of the first way, which is eager by default. With --frozen, embedding and head get no gradient.
"""

import argparse
import json
import statistics
import time

import torch
from torch import nn

import fusedlogp
from provenance import add_commit, provenance

functional = nn.functional
HEAD = 64  # entries of a head of attention


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.heads = max(width // HEAD, 1)
        self.size = width // self.heads
        self.groups = 2 if self.heads % 2 == 0 else 1
        self.queries = nn.Linear(width, width)
        self.keys_values = nn.Linear(width, 2 * self.groups * self.size)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x, turn):
        batch, length, width = x.shape
        queries = self.queries(x).view(batch, length, self.heads, self.size).transpose(1, 2)
        keys, values = self.keys_values(x).view(batch, length, 2 * self.groups, self.size).transpose(1, 2).chunk(2, 1)
        repeats = self.heads // self.groups
        keys, values = keys.repeat_interleave(repeats, 1), values.repeat_interleave(repeats, 1)
        mixed = functional.scaled_dot_product_attention(turn(queries), turn(keys), values, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        inner = int(width * 4864 / 896) // 8 * 8
        self.norms = nn.ModuleList(nn.RMSNorm(width) for _ in range(2))
        self.attention = Attention(width)
        self.gate_up, self.down = nn.Linear(width, 2 * inner, bias=False), nn.Linear(inner, width, bias=False)

    def forward(self, x, turn):
        x = x + self.attention(self.norms[0](x), turn)
        gate, up = self.gate_up(self.norms[1](x)).chunk(2, -1)
        return x + self.down(functional.silu(gate) * up)


class Decoder(nn.Module):
    def __init__(self, layers, width, vocab):
        super().__init__()
        self.embedding = nn.Embedding(vocab, width)
        nn.init.normal_(self.embedding.weight, std=2 / width**0.5)
        self.blocks = nn.ModuleList(Block(width) for _ in range(layers))
        self.norm = nn.RMSNorm(width)

    def forward(self, tokens):
        size = self.blocks[0].attention.size
        speeds = 1e6 ** -(torch.arange(0, size, 2, device=tokens.device) / size)
        angles = torch.arange(tokens.shape[1], device=tokens.device)[:, None] * speeds
        x = self.embedding(tokens)
        cosines, sines = angles.cos().to(x.dtype), angles.sin().to(x.dtype)

        def turn(part):
            a, b = part.chunk(2, -1)
            return torch.cat([a * cosines - b * sines, b * cosines + a * sines], -1)

        for block in self.blocks:
            x = block(x, turn)
        return self.norm(x)


def eager(hidden, weight, labels):
    logits = functional.linear(hidden, weight).float()
    return functional.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())


def fused(hidden, weight, labels):
    return fusedlogp.linear_cross_entropy(hidden, weight, labels, shift=True)


WAYS = {"eager": lambda: eager, "compile": lambda: torch.compile(eager), "fusedlogp": lambda: fused}


def step(model, loss_of, tokens):
    model.zero_grad(set_to_none=True)
    loss = loss_of(model(tokens), model.embedding.weight, tokens)
    loss.backward()
    return float(loss.detach())


def difference(model, kept):
    """How far the embedding's gradient (the first norm's where the embedding is frozen) is from the first way's, relative to that."""
    weight = model.embedding.weight if model.embedding.weight.requires_grad else model.blocks[0].norms[0].weight
    gradient = weight.grad.float()
    kept.setdefault("gradient", gradient.clone())
    return float((gradient - kept["gradient"]).norm() / kept["gradient"].norm())


def start(model, name, tokens, kept):
    """(loss function, results so far): the first step compiles and warms up, the second is measured by torch's memory counters."""
    loss_of = WAYS[name]()
    result = {"way": name, "loss": step(model, loss_of, tokens), "gradient": difference(model, kept), "seconds": []}
    result["memory"] = None
    if tokens.is_cuda:
        model.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        step(model, loss_of, tokens)
        gradients = sum(p.grad.numel() * p.grad.element_size() for p in model.parameters() if p.grad is not None)
        result["memory"] = torch.cuda.max_memory_allocated() - before - gradients
    return loss_of, result


def timed(model, loss_of, tokens):
    if tokens.is_cuda:
        torch.cuda.synchronize()
    begin = time.perf_counter()
    step(model, loss_of, tokens)  # its loss is read, which waits for the forward
    if tokens.is_cuda:
        torch.cuda.synchronize()
    return time.perf_counter() - begin


def measure(arguments):
    torch.manual_seed(0)
    with torch.device(arguments.device):
        model = Decoder(arguments.layers, arguments.width, arguments.vocab).to(torch.bfloat16)
        tokens = torch.randint(0, arguments.vocab, (arguments.batch, arguments.length))
    model.embedding.weight.requires_grad_(not arguments.frozen)
    kept, running, results = {}, [], []
    for name in arguments.ways.split(","):
        try:
            running.append(start(model, name, tokens, kept))
            results.append(running[-1][1])
        except (RuntimeError, torch.OutOfMemoryError) as error:  # out of memory, or an error of the compiler: it is reported, and the other ways go on
            results.append({"way": name, "missing": f"{type(error).__name__}: {(str(error) or ' ').splitlines()[0]}"})
    for _ in range(arguments.rounds):
        for loss_of, result in running:
            result["seconds"].append(timed(model, loss_of, tokens))
    for _, result in running:
        result["seconds"] = statistics.median(result["seconds"])
    return sum(p.numel() for p in model.parameters()), results


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in (("batch", 4), ("length", 2048), ("layers", 24), ("width", 896), ("vocab", 151936), ("rounds", 5)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--ways", default=",".join(WAYS), help="names of " + ", ".join(WAYS))
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--frozen", action="store_true")
    parser.add_argument("--json", help="a file for the results")
    add_commit(parser)
    arguments = parser.parse_args()
    unknown = [name for name in arguments.ways.split(",") if name not in WAYS]
    if unknown:
        parser.error(f"--ways: got {', '.join(unknown)}, wanted names of {', '.join(WAYS)}")
    parameters, results = measure(arguments)
    print(f"{parameters / 1e6:.0f} M parameters, {arguments.batch * arguments.length} tokens{', frozen head' if arguments.frozen else ''}")
    print(f"{'':10} {'ms':>9} {'MiB':>9} {'loss':>9} {'gradient':>9}")
    for result in results:
        if "missing" in result:
            print(f"{result['way']:10} not measured: {result['missing']}")
            continue
        memory = "-" if result["memory"] is None else f"{result['memory'] / 2**20:.0f}"
        print(f"{result['way']:10} {result['seconds'] * 1e3:9.2f} {memory:>9} {result['loss']:9.5f} {result['gradient']:9.1e}")
    if arguments.json:
        with open(arguments.json, "w") as file:
            found = {"arguments": vars(arguments), "parameters": parameters, "results": results}
            json.dump({**provenance(arguments.commit, arguments.device), **found}, file, indent=1)


if __name__ == "__main__":
    main()
