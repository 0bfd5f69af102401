#!/usr/bin/env python3
"""Compares fusedlogp's linear cross entropy with others: eager torch, torch.compile, torch's linear_cross_entropy, Liger, cut-cross-entropy, quack.

usage: peers.py [--case N,D,V]... [--peers NAME,...] [--frozen] [--device cuda] [--rounds 10] [--json FILE]

Each peer that can be imported computes the mean loss of the same bf16 inputs and its gradients (with --frozen, the one by hidden alone). Peers take turns,
so that they see the same clocks. The table has the median time of forward and backward, the memory that a step takes beyond its inputs and gradients
(by torch's counter; none on the CPU), and the relative errors of the loss, of 64 rows of grad_hidden and of 64 rows of grad_weight against fp64. A peer
that cannot be imported, or fails, is reported with the reason.
"""

import argparse
import json
import statistics
import sys
import time

import torch

from provenance import add_commit, provenance

CHECKED = 64
CASES = ["8192,4096,128256", "4096,2048,131072"]


# ---- the peers: each is made once and gives loss(hidden, weight, target)


def eager():
    return lambda hidden, weight, target: torch.nn.functional.cross_entropy((hidden @ weight.t()).float(), target)


def compiled():
    return torch.compile(eager())


def torchs_own():
    function = getattr(torch.nn.functional, "linear_cross_entropy", None)
    if function is None:
        raise ImportError(f"torch {torch.__version__} has no torch.nn.functional.linear_cross_entropy")
    return lambda hidden, weight, target: function(hidden, weight, target)


def liger():
    from liger_kernel.transformers import LigerFusedLinearCrossEntropyLoss

    loss = LigerFusedLinearCrossEntropyLoss()
    return lambda hidden, weight, target: loss(weight, hidden, target)


def cut():
    from cut_cross_entropy import linear_cross_entropy

    return lambda hidden, weight, target: linear_cross_entropy(hidden, weight, target)


def quack():
    from quack.linear_cross_entropy import chunked_linear_cross_entropy

    return lambda hidden, weight, target: chunked_linear_cross_entropy(hidden, weight, target)


def ours():
    import fusedlogp

    return fusedlogp.linear_cross_entropy


def ours_with_room():
    """fusedlogp with as much memory as the logits take: all exponentials are saved, which needs three products in place of four."""
    import fusedlogp

    def loss(hidden, weight, target):
        budget = hidden.shape[0] * ((weight.shape[0] + hidden.shape[1]) * 2 + 4096)
        return fusedlogp.linear_cross_entropy(hidden, weight, target, memory_budget=budget)

    return loss


PEERS = {
    "fusedlogp": ours,
    "fusedlogp-saved": ours_with_room,
    "eager": eager,
    "compile": compiled,
    "torch": torchs_own,
    "liger": liger,
    "cut": cut,
    "quack": quack,
}


# ---- inputs, and what they should give


class Problem:
    """hidden [N, D] and weight [V, D], whose logits have a standard deviation of 2, and their loss and some rows of its gradients in fp64."""

    def __init__(self, text, device, frozen):
        rows, width, vocab = (int(part) for part in text.split(","))
        torch.manual_seed(0)
        self.hidden = torch.randn(rows, width, device=device).bfloat16().requires_grad_()
        self.weight = (torch.randn(vocab, width, device=device) * (2 / width**0.5)).bfloat16().requires_grad_(not frozen)
        self.target = torch.randint(0, vocab, (rows,), device=device)
        self.rows = torch.linspace(0, rows - 1, min(CHECKED, rows), device=device).long()
        self.entries = torch.cat([self.target[: CHECKED // 2], torch.arange(min(CHECKED // 2, vocab), device=device)])
        self._solve(rows)

    def _solve(self, rows):
        hidden, weight, count = self.hidden.detach().double(), self.weight.detach().double(), float(rows)
        lse = torch.cat([torch.logsumexp(part @ weight.t(), 1) for part in hidden.split(256)])
        picked = (hidden * weight[self.target]).sum(1)
        self.loss = float((lse - picked).mean())
        derivative = torch.exp(hidden[self.rows] @ weight.t() - lse[self.rows, None])
        derivative[torch.arange(len(self.rows)), self.target[self.rows]] -= 1
        self.grad_hidden = derivative @ weight / count
        derivative = torch.exp(hidden @ weight[self.entries].t() - lse[:, None]) - (self.target[:, None] == self.entries).double()
        self.grad_weight = derivative.t() @ hidden / count

    def step(self, loss):
        self.hidden.grad = self.weight.grad = None
        value = loss(self.hidden, self.weight, self.target)
        value.backward()
        return value.detach()

    def errors(self, value):
        def relative(got, wanted):
            return float((got.double() - wanted).norm() / wanted.norm())

        found = {"loss": abs(float(value) - self.loss) / abs(self.loss), "grad_hidden": relative(self.hidden.grad[self.rows], self.grad_hidden)}
        if self.weight.requires_grad:
            found["grad_weight"] = relative(self.weight.grad[self.entries], self.grad_weight)
        return found


# ---- measuring


def seconds_of(problem, loss):
    if not problem.hidden.is_cuda:
        start = time.perf_counter()
        problem.step(loss)
        return time.perf_counter() - start
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    problem.step(loss)
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / 1e3


def memory_of(problem, loss):
    """The peak memory of a step in bytes, beyond the inputs and the gradients that it leaves; None on the CPU."""
    if not problem.hidden.is_cuda:
        return None
    problem.hidden.grad = problem.weight.grad = None
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    problem.step(loss)
    torch.cuda.synchronize()
    gradients = sum(leaf.grad.numel() * leaf.grad.element_size() for leaf in (problem.hidden, problem.weight) if leaf.grad is not None)
    return torch.cuda.max_memory_allocated() - before - gradients


def start(problem, name):
    """(loss function, results so far) of a peer; the first two steps compile and warm up."""
    loss = PEERS[name]()
    problem.step(loss)
    return loss, {"peer": name, "errors": problem.errors(problem.step(loss)), "memory": memory_of(problem, loss), "seconds": []}


def measure(problem, names, rounds):
    running, missing = [], []
    for name in names:
        try:
            running.append(start(problem, name))
        except Exception as error:  # an error of the peer: it is reported, and the others go on
            missing.append({"peer": name, "missing": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"})
    for _ in range(rounds):
        for loss, result in running:
            result["seconds"].append(seconds_of(problem, loss))
    for _, result in running:
        result["seconds"] = statistics.median(result["seconds"])
    return [result for _, result in running] + missing


def print_table(case, results):
    print(f"{case}\n  {'':15} {'ms':>10} {'MiB':>9} {'loss':>9} {'g_hidden':>9} {'g_weight':>9}")
    for result in results:
        if "missing" in result:
            print(f"  {result['peer']:15} not measured: {result['missing']}")
            continue
        memory = "-" if result["memory"] is None else f"{result['memory'] / 2**20:.0f}"
        numbers = [f"{result['errors'][key]:9.1e}" if key in result["errors"] else f"{'-':>9}" for key in ("loss", "grad_hidden", "grad_weight")]
        print(f"  {result['peer']:15} {result['seconds'] * 1e3:10.2f} {memory:>9} {' '.join(numbers)}")
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", action="append", help="N,D,V; several times for several")
    parser.add_argument("--peers", default=",".join(PEERS), help="names of " + ", ".join(PEERS))
    parser.add_argument("--frozen", action="store_true", help="the weight wants no gradient")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--json", help="a file for the results")
    add_commit(parser)
    arguments = parser.parse_args()
    names = arguments.peers.split(",")
    unknown = [name for name in names if name not in PEERS]
    if unknown or arguments.rounds < 1:
        parser.error(f"--peers: got {', '.join(unknown)}, wanted names of {', '.join(PEERS)}" if unknown else "--rounds: wanted at least 1")
    everything = []
    for case in arguments.case or CASES:
        results = measure(Problem(case, arguments.device, arguments.frozen), names, arguments.rounds)
        print_table(case + (", frozen head" if arguments.frozen else ""), results)
        everything.append({"case": case, "frozen": arguments.frozen, "results": results})
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({**provenance(arguments.commit, arguments.device), "cases": everything}, file, indent=1)


if __name__ == "__main__":
    main()
