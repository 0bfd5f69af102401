"""Times scoring and cross-entropy on the CPU in turn with PyTorch's: cpu_peers.py CPU_CALL [N,D,V ...] [--threads T] [--rounds R] [--json FILE]

CPU_CALL is the program built from bench/cpu_call.c. PyTorch computes cross_entropy of the product hidden @ weight.T, in fp32 or
in bf16, and its gradients. A ratio is PyTorch's CPU seconds over ours in the same round; its median and range over the rounds are printed.

The file of --json says which processor it was, what of it PyTorch uses ("cpu_capability": by torch alone; ONEDNN_MAX_CPU_ISA limits oneDNN's products), and
what FUSEDLOGP_CPU_BF16 allows us."""

import argparse
import json
import os
import statistics
import subprocess
import time

import torch
from torch.nn.functional import cross_entropy

from provenance import add_commit, provenance


def clocks():
    return time.perf_counter(), time.process_time()


class Ours:
    def __init__(self, program, problem, threads):
        self.process = subprocess.Popen([program, problem, str(threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def seconds(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return tuple(float(word) for word in self.process.stdout.readline().split())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Theirs:
    def __init__(self, shape, gradients, softmax):
        rows, hidden, vocab = shape
        torch.manual_seed(0)
        self.hidden = torch.randn(rows, hidden).bfloat16().requires_grad_(gradients)
        self.weight = (torch.randn(vocab, hidden) * 0.05).bfloat16().requires_grad_(gradients)
        self.target = torch.randint(0, vocab, (rows,))
        self.softmax = softmax

    def seconds(self):
        self.hidden.grad = self.weight.grad = None
        start = clocks()
        logits = (self.hidden @ self.weight.T).to(self.softmax)
        if self.hidden.requires_grad:
            cross_entropy(logits, self.target).backward()
        else:
            cross_entropy(logits, self.target, reduction="none")
        return tuple(after - before for before, after in zip(start, clocks()))


def compare(options, shape, name, problem):
    ours = Ours(options.cpu_call, problem, options.threads)
    peers = {"fp32 softmax": Theirs(shape, name != "scoring", torch.float32), "bf16 softmax": Theirs(shape, name != "scoring", torch.bfloat16)}
    rounds = [[ours.seconds()] + [peer.seconds() for peer in peers.values()] for _ in range(options.rounds + 1)][1:]
    ours.close()
    wall, cpu = (statistics.median(one[0][i] for one in rounds) for i in (0, 1))
    print(f"{problem}: {name} {cpu:.3f} CPU s, {wall:.3f} s")
    found = {"problem": problem, "operation": name, "cpu_seconds": cpu, "seconds": wall, "ratios": {}}
    for i, peer in enumerate(peers):
        ratios = sorted(one[i + 1][1] / one[0][1] for one in rounds)
        found["ratios"][peer] = {"median": statistics.median(ratios), "least": ratios[0], "most": ratios[-1]}
        print(f"    PyTorch {torch.__version__}, {peer}: {statistics.median(ratios):.2f} [{ratios[0]:.2f} .. {ratios[-1]:.2f}]", flush=True)
    return found


def processor():
    """The processor and the extensions for 16-bit products that it has, as Linux says them."""
    with open("/proc/cpuinfo") as file:
        lines = dict(line.split(":", 1) for line in file if ":" in line)
    lines = {name.strip(): value.strip() for name, value in lines.items()}
    return {"name": lines.get("model name"), "extensions": [flag for flag in lines.get("flags", "").split() if flag in ("avx512_bf16", "amx_bf16")]}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cpu_call")
    parser.add_argument("shapes", nargs="*", metavar="N,D,V")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", metavar="FILE")
    add_commit(parser)
    options = parser.parse_intermixed_args()
    torch.set_num_threads(options.threads)
    results = []
    for text in options.shapes or ["512,1024,32000", "512,4096,32000"]:
        shape = rows, hidden, vocab = [int(word) for word in text.split(",")]
        size = f"bf16:n{rows}:d{hidden}:v{vocab}"
        results.append(compare(options, shape, "scoring", f"linear_logp:{size}"))
        results.append(compare(options, shape, "cross-entropy with both gradients", f"linear_cross_entropy:{size}:gh_bf16:gw_bf16"))
    if options.json:
        variables = {name: os.environ.get(name) for name in ("ONEDNN_MAX_CPU_ISA", "FUSEDLOGP_CPU_BF16")}
        peer = {"cpu_capability": torch.backends.cpu.get_cpu_capability(), **variables}
        with open(options.json, "w") as file:
            json.dump({**provenance(options.commit, "cpu"), "processor": processor(), **peer, "threads": options.threads, "results": results}, file, indent=1)


if __name__ == "__main__":
    main()
