#!/usr/bin/env python3
"""Times what one call costs the host, eager, under torch.compile and as a replayed CUDA graph: fusedlogp's functions beside torch.nn.functional's own.

usage: overheads.py [--case N,D,V] [--device cuda] [--modes eager,compile,graph] [--rounds 7] [--calls 50] [--json FILE]

Inputs are small, so that the host and not the device takes the time. Printed are microseconds per call: the least of some rounds' means. The host does not
wait for the device within a round, only between rounds. The columns are a forward without gradients, one that autograd records, and one with its backward.
Rows that begin with "logits" are given the logits; all others begin with hidden [N, D] and weight [V, D]. "operator" is torch.ops.fusedlogp.linear_logp,
without the Python function around it. The mode "graph" (on a GPU only) captures each column's eager call and is the host's time of replaying it, as long as
the device keeps up.
"""

import argparse
import json
import sys
import time

import torch

import fusedlogp
from provenance import add_commit, provenance

functional = torch.nn.functional


def bare(hidden, weight, target):
    return torch.ops.fusedlogp.linear_logp(hidden, weight, None, target, None, 1.0, 0.0, -100, False, False, False, 0)[0]


# name -> function of (hidden or logits, weight, target)
CALLS = {
    "logits: F.cross_entropy": lambda logits, weight, target: functional.cross_entropy(logits, target),
    "F.linear and F.cross_entropy": lambda hidden, weight, target: functional.cross_entropy(functional.linear(hidden, weight), target),
    "fusedlogp.linear_cross_entropy": lambda hidden, weight, target: fusedlogp.linear_cross_entropy(hidden, weight, target),
    "fusedlogp.linear_logp": lambda hidden, weight, target: fusedlogp.linear_logp(hidden, weight, target),
    "operator": bare,
    "logits: fusedlogp.logits_logp": lambda logits, weight, target: fusedlogp.logits_logp(logits, target),
}


def steps(function, values, target):
    """(name, function without arguments) of each column."""
    leaves = [value.detach().requires_grad_() for value in values]

    def without():
        with torch.no_grad():
            return function(*values, target)

    def backward():
        for leaf in leaves:
            leaf.grad = None
        loss = function(*leaves, target)
        (loss if loss.dim() == 0 else loss.sum()).backward()

    return ("no grad", without), ("forward", lambda: function(*leaves, target)), ("and backward", backward)


def wait(device):
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def microseconds(call, device, rounds, calls):
    for _ in range(3):
        call()
    least = float("inf")
    for _ in range(rounds):
        wait(device)
        start = time.perf_counter()
        for _ in range(calls):
            call()
        least = min(least, (time.perf_counter() - start) / calls)
    wait(device)
    return least * 1e6


def replayed(call):
    """Captures the call as a CUDA graph and returns the function that replays it. Its gradients are in the graph's memory."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay


def row_of(name, mode, problem, arguments):
    hidden, weight, target, logits = problem
    function = CALLS[name]
    if mode == "compile":
        torch._dynamo.reset()
        function = torch.compile(function, fullgraph=True)
    values = (logits, weight) if name.startswith("logits") else (hidden, weight)
    calls = steps(function, values, target)
    if mode == "graph":
        calls = [(column, replayed(call)) for column, call in calls]
    times = {column: microseconds(call, arguments.device, arguments.rounds, arguments.calls) for column, call in calls}
    return {"call": name, "mode": mode, "microseconds": times}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", default="16,64,256", help="N,D,V")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--modes", help="of eager, compile and graph, between commas; without it all that the device has")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--calls", type=int, default=50, help="of each round")
    parser.add_argument("--json", help="a file for the results")
    add_commit(parser)
    arguments = parser.parse_args()
    rows, width, vocab = (int(part) for part in arguments.case.split(","))
    torch.manual_seed(0)
    hidden = torch.randn(rows, width, device=arguments.device).bfloat16()
    weight = torch.randn(vocab, width, device=arguments.device).bfloat16()
    problem = hidden, weight, torch.randint(0, vocab, (rows,), device=arguments.device), hidden @ weight.t()
    modes = arguments.modes or ("eager,compile,graph" if arguments.device.startswith("cuda") else "eager,compile")
    print(f"{'us a call':31} {'':8} {'no grad':>9} {'forward':>9} {'and backward':>13}")
    everything = []
    for mode in modes.split(","):
        for name in CALLS:
            try:
                row = row_of(name, mode, problem, arguments)
            except Exception as error:  # an error of the compiler: it is reported, and the others go on
                row = {"call": name, "mode": mode, "missing": f"{type(error).__name__}: {(str(error) or ' ').splitlines()[0]}"}
                print(f"{name:31} {mode:8} not measured: {row['missing']}")
            else:
                print(f"{name:31} {mode:8} " + " ".join(f"{value:{width}.1f}" for value, width in zip(row["microseconds"].values(), (9, 9, 13))))
            everything.append(row)
            sys.stdout.flush()
    if arguments.json:
        with open(arguments.json, "w") as file:
            found = {"binding": fusedlogp.info()["binding"], "case": arguments.case, "rows": everything}
            json.dump({**provenance(arguments.commit, arguments.device), **found}, file, indent=1)


if __name__ == "__main__":
    main()
