#!/usr/bin/env python3
"""Predicts or times calls with the vocabulary sharded over several GPUs (docs/scaling.md): efficiency = time of one GPU / (ranks x time of the ranks).

usage: scaling.py [--shards FILE]... [--model FILE] [--set NAME=VALUE]... [--json FILE] [--svg FILE]
       scaling.py --measure [--device cpu] [--case N,D,V]... [--ranks N]... [--rounds N] [--left N]... [--registered] [--json FILE]

--shards names results of fusedlogp_bench whose cases at V, V / 2, V / 4, .. are the times of a shard. The time of a shard that was not measured is taken
in proportion to the smallest larger shard or, where there is none, from the model's rates; the table says which. --set changes a parameter of the model
(bench/scaling_model.json), as nvlink_gb_s=420.

--measure times the same calls on this machine's GPUs, each a rank over nccl, with process_group= of the Python package, beside one GPU and the prediction.
By default it takes the model's cases, on as many GPUs as each of the model's layouts of one node has; numbers of ranks for which there are too few GPUs are
reported and left out. A step is measured serial, and with the all-reduce of grad_hidden beside the last product of grad_weight, which then leaves some
multiprocessors to nccl: --left names how many. All calls of a case take turns in each round, and a step's rounds are compared with the serial step's.
--registered lets torch register its memory with nccl. --device cpu takes processes over gloo: this shows that it runs and measures nothing, and its steps
are all serial.
"""

import argparse
import json
import os
import random
import re
import statistics
import sys
import tempfile
import time

# The matrix products of a call, of 2 N D V operations each. In SERIAL steps the all-reduce of grad_hidden follows the last product of grad_weight, in all
# others it overlaps that product.
SERIAL = "step, serial"
BESIDE = "step, %d left"
PRODUCTS = {"forward": 1, "step": 4, SERIAL: 4}
PROBLEM = re.compile(r"(linear_logp|linear_logp\+linear_logp_backward):bf16:n(\d+):d(\d+):v(\d+)(:gh_bf16:gw_bf16)?$")


class Model:
    def __init__(self, text, changes=()):
        self.cases, self.layouts, self.published = text["cases"], text["layouts"], text["published"]
        self.numbers = {name: float(value["value"]) for name, value in text.items() if isinstance(value, dict) and "value" in value}
        for name, value in changes:
            if name not in self.numbers:
                raise SystemExit(f"--set {name}: wanted one of {', '.join(sorted(self.numbers))}")
            self.numbers[name] = value

    def __getitem__(self, name):
        return self.numbers[name]


def measured_times(results):
    """{(what, N, D, V): us} from results of fusedlogp_bench: medians of the sustained regime, since a trainer's GPU is busy."""
    times = {}
    for case in results["cases"]:
        match = PROBLEM.match(case["problem"])
        if match and "sustained" in case.get("regimes", {}):
            what = "forward" if match[1] == "linear_logp" else "step"
            times[what, int(match[2]), int(match[3]), int(match[4])] = 1000.0 * case["regimes"]["sustained"]["ours_ms"]["median"]
    return times


def shard_time(model, times, what, case, ranks):
    """(us of one rank's shard without communication, its source): measured, in proportion to the smallest larger measured shard, or from the model's rates."""
    rows, hidden, vocab = case
    call = "forward" if what == "forward" else "step"
    entries = vocab // ranks
    known = {v: us for (c, n, d, v), us in times.items() if (c, n, d) == (call, rows, hidden)}
    if vocab in known and entries in known:
        return known[entries], "measured"
    larger = [v for v in known if entries < v < vocab]
    if vocab in known and larger:
        return known[min(larger)] * entries / min(larger) + model["shard_fixed_us"], f"from {min(larger)} entries"
    return PRODUCTS[what] * 2.0 * rows * hidden * (vocab / ranks) / model[call + "_tflop_s"] / 1e6 + model["shard_fixed_us"], "assumed"


def gather_us(model, layout, row_bytes, rows):
    """us of an all-gather to which each rank gives rows * row_bytes bytes: within a node they go by NVLink, between nodes by InfiniBand."""
    within, nodes = layout["gpus_per_node"], layout["nodes"]
    given = row_bytes * rows
    time = model["nvlink_latency_us"] + given * (within * nodes - nodes) / model["nvlink_gb_s"] / 1e3
    if nodes > 1:
        time += model["infiniband_latency_us"] + given * (nodes - 1) / model["infiniband_gb_s"] / 1e3
    return time


def reduce_us(model, layout, total_bytes):
    """us of an all-reduce: reduce-scatter in the node, all-reduce of each GPU's part between nodes, all-gather in the node, one after another."""
    within, nodes = layout["gpus_per_node"], layout["nodes"]
    time = model["nvlink_latency_us"] + 2.0 * (within - 1) / within * total_bytes / model["nvlink_gb_s"] / 1e3
    if nodes > 1:
        time += model["infiniband_latency_us"] + 2.0 * (nodes - 1) / nodes * total_bytes / within / model["infiniband_gb_s"] / 1e3
    return time


def exchange_us(model, layout, case):
    """us that a forward takes besides the shard's own work: the all-gather of the partial results, and the merge, which reads them."""
    ranks = layout["nodes"] * layout["gpus_per_node"]
    merge = model["merge_us"] + case[0] * model["partial_bytes"] * ranks / model["memory_gb_s"] / 1e3
    return gather_us(model, layout, model["partial_bytes"], case[0]) + merge


def exposed_us(model, layout, what, case, step):
    """us that the all-reduce of grad_hidden adds to a step: it overlaps grad_weight's product of the last chunk, on multiprocessors taken from that product."""
    rows, hidden, vocab = case
    ranks = layout["nodes"] * layout["gpus_per_node"]
    if what == "forward":
        return 0.0
    reduction = reduce_us(model, layout, rows * hidden * model["grad_hidden_bytes"])
    if what == SERIAL:
        return reduction
    chunks = -(-(vocab // ranks) // int(model["chunk_columns"]))
    room = step / PRODUCTS["step"] / chunks
    under = min(reduction, room)
    slower = under * model["multiprocessors_for_nccl"] / model["multiprocessors"]
    return reduction - under + slower


def predict(model, times, what, case, layout):
    ranks = layout["nodes"] * layout["gpus_per_node"]
    one, _ = shard_time(model, times, what, case, 1)
    part, source = shard_time(model, times, what, case, ranks)
    if source == "assumed":
        one = shard_time(model, {}, what, case, 1)[0]
    added = exchange_us(model, layout, case) + exposed_us(model, layout, what, case, part)
    rows, hidden, vocab = case
    return {
        "case": case,
        "what": what,
        "layout": layout["name"],
        "ranks": ranks,
        "one_us": one,
        "shard_us": part,
        "added_us": added,
        "shard_efficiency": one / (ranks * part),
        "efficiency": one / (ranks * (part + added)),
        "shard_from": source,
        "partials_bytes": int(rows * model["partial_bytes"] * (ranks - 1)),
        "grad_hidden_bytes": int(rows * hidden * model["grad_hidden_bytes"]) if what != "forward" else 0,
    }


def predict_all(model, times):
    return [predict(model, times, what, case, layout) for case in model.cases for what in PRODUCTS for layout in model.layouts]


def published(model, layout):
    figures = model.published.get(layout)
    return "" if figures is None else "%.2f" % figures[0] if figures[0] == figures[1] else "%.2f to %.2f" % tuple(figures)


def table(model, lines):
    columns = "N, D, V | what | on | one GPU | a shard | communication | shard efficiency | efficiency | published | a shard's time"
    text = [f"| {columns} |", "|" + "---|" * len(columns.split(" | "))]
    for line in lines:
        text.append("| %d, %d, %d | %s | %s | %.2f ms | %.2f ms | %.0f us | %.2f | **%.2f** | %s | %s |" % (
            *line["case"], line["what"], line["layout"], line["one_us"] / 1000, line["shard_us"] / 1000, line["added_us"], line["shard_efficiency"],
            line["efficiency"], published(model, line["layout"]), line["shard_from"]))  # fmt: skip
    return "\n".join(text)


def picture(lines):
    """Efficiency over ranks, a line for each case and call."""
    groups = {}
    for line in lines:
        groups.setdefault((tuple(line["case"]), line["what"]), []).append((line["ranks"], line["efficiency"]))
    most = max(line["ranks"] for line in lines)
    at = lambda ranks, value: (60 + 400 * (ranks - 1) / max(most - 1, 1), 20 + 250 * (1.0 - value) / 0.5)
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" width="760" height="320" font-family="sans-serif" font-size="12">',
        '<rect width="760" height="320" fill="white"/>',
    ]
    for tenth in range(5, 11):
        y = at(1, tenth / 10)[1]
        parts.append(f'<path d="M60 {y:.1f}H460" stroke="#ddd"/><text x="30" y="{y + 4:.1f}">{tenth / 10:.1f}</text>')
    for ranks in sorted({line["ranks"] for line in lines}):
        parts.append(f'<text x="{at(ranks, 1)[0] - 4:.1f}" y="290">{ranks}</text>')
    parts.append('<text x="220" y="310">GPUs</text>')
    for number, ((case, what), points) in enumerate(sorted(groups.items())):
        color = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#7f7f7f", "#bcbd22")[number % 8]
        path = " ".join("%.1f,%.1f" % at(*point) for point in [(1, 1.0), *sorted(points)])
        label = ", ".join(map(str, case))
        parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts[-1] += f'<text x="475" y="{40 + 20 * number}" fill="{color}">{what}: {label}</text>'
    return "\n".join([*parts, "</svg>"]) + "\n"


# ---- measured


def timed(device, call):
    """us of one call; on a GPU the mean of several in a row, before which the GPU is kept busy so that the host is ahead of it."""
    import torch

    if device == "cpu":
        begun = time.perf_counter()
        call()
        return 1e6 * (time.perf_counter() - begun)
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda._sleep(2000000)
    begin.record()
    for _ in range(4):
        call()
    end.record()
    end.synchronize()
    return 1e3 * begin.elapsed_time(end) / 4


def inputs_of(case, rank, ranks, device):
    """(hidden, weight, target) of this rank's shard."""
    import torch

    rows, hidden, vocab = case
    torch.manual_seed(0)
    entries = vocab * (rank + 1) // ranks - vocab * rank // ranks
    make = lambda *shape: torch.randn(*shape, dtype=torch.bfloat16, device=device)
    x, target = make(rows, hidden).requires_grad_(), torch.randint(0, vocab, (rows,), device=device)
    return x, (make(entries, hidden) * (2 / hidden**0.5)).requires_grad_(), target


def calls_of(case, group, rank, ranks, device, left):
    """{what: call}: the calls on one GPU ("one: ..."), those on the ranks, and each part of the ranks' calls by itself ("alone: ...")."""
    import fusedlogp
    import torch
    import torch.distributed as distributed

    whole, shard = inputs_of(case, 0, 1, device), inputs_of(case, rank, ranks, device)
    sums = torch.zeros(case[0], case[1], device=device)
    partials = torch.zeros(case[0], 8, device=device)
    gathered = torch.zeros(case[0] * ranks, 8, device=device)

    def forward(inputs, process_group):
        with torch.no_grad():
            fusedlogp.linear_logp(*inputs, process_group=process_group)

    def step(inputs, process_group):
        inputs[0].grad = inputs[1].grad = None
        fusedlogp.linear_logp(*inputs, process_group=process_group).sum().backward()

    calls = {
        "one: forward": lambda: forward(whole, None),
        "one: step": lambda: step(whole, None),
        "forward": lambda: forward(shard, group),
        SERIAL: lambda: step(shard, fusedlogp.VocabParallel(group, multiprocessors_for_exchange=None)),
    }
    for count in left:
        calls[BESIDE % count] = lambda parallel=fusedlogp.VocabParallel(group, multiprocessors_for_exchange=count): step(shard, parallel)
    alone = (shard[0], shard[1], shard[2] % shard[1].shape[0])
    calls["alone: shard's forward"] = lambda: forward(alone, None)
    calls["alone: all-gather"] = lambda: distributed.all_gather_into_tensor(gathered, partials, group=group)
    calls["alone: all-reduce"] = lambda: distributed.all_reduce(sums, group=group)
    return calls


def serve(rank, ranks, device, cases, rounds, left, registered, folder):
    """The process of a rank. Rank 0 writes {what: us of the slowest rank in each round} of each case."""
    if registered:
        os.environ["TORCH_NCCL_USE_TENSOR_REGISTER_ALLOCATOR_HOOK"] = "1"
    import torch
    import torch.distributed as distributed

    if device == "cuda":
        torch.cuda.set_device(rank)
    distributed.init_process_group("nccl" if device == "cuda" else "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=ranks)
    found = []
    for case in cases:
        calls = calls_of(case, distributed.group.WORLD, rank, ranks, device, left)
        for call in calls.values():
            timed(device, call)
        order, shuffled = list(calls), random.Random(0)  # the same on all ranks
        times = {what: [] for what in calls}
        for _ in range(rounds):
            shuffled.shuffle(order)
            for what in order:
                distributed.barrier()
                times[what].append(timed(device, calls[what]))
        slowest = torch.tensor(list(times.values()), dtype=torch.float64, device=device)
        distributed.all_reduce(slowest, op=distributed.ReduceOp.MAX)
        found.append(dict(zip(times, slowest.tolist())))
        del calls
    if rank == 0:
        with open(os.path.join(folder, "times"), "w") as file:
            json.dump(found, file)
    distributed.barrier()
    distributed.destroy_process_group()


def compared(model, case, ranks, device, times):
    """The table's lines of a case: the medians of the rounds and, of a step, the median of its ratios to the serial step of the same round."""
    layout, lines = {"name": f"{ranks} ranks", "nodes": 1, "gpus_per_node": ranks}, []
    for what, rounds in times.items():
        if ": " in what:
            continue
        call = "forward" if what == "forward" else "step"
        one, slowest = statistics.median(times["one: " + call]), statistics.median(rounds)
        line = {"case": case, "what": what, "ranks": ranks, "device": device, "one_us": one, "ranks_us": slowest, "efficiency": one / (ranks * slowest),
                "predicted": predict(model, {}, what if what in PRODUCTS else "step", case, layout)["efficiency"]}  # fmt: skip
        if call == "step":
            ratios = sorted(serial / here for serial, here in zip(times[SERIAL], rounds))
            line["faster"] = {"median": statistics.median(ratios), "low": ratios[len(ratios) // 4], "high": ratios[-1 - len(ratios) // 4]}
        lines.append(line)
    return lines


def measure(model, device, cases, counts, rounds, left, registered):
    """(the table's lines of each case, call and number of ranks; for each case and number of ranks the us of a call's parts)."""
    import torch

    here = torch.cuda.device_count() if device == "cuda" else max(counts)
    lines, parts = [], []
    for ranks in counts:
        if ranks > here:
            print(f"{ranks} ranks: left out, there are {here} GPUs", file=sys.stderr)
            continue
        with tempfile.TemporaryDirectory() as folder:
            how = "spawn" if device == "cuda" else "fork"  # fork: nothing has used torch's threads yet, so the children need not load it again
            given = (ranks, device, cases, rounds, left, registered, folder)
            torch.multiprocessing.start_processes(serve, given, nprocs=ranks, start_method=how)
            with open(os.path.join(folder, "times")) as file:
                found = json.load(file)
        for case, times in zip(cases, found):
            lines += compared(model, case, ranks, device, times)
            parts.append({"case": case, "ranks": ranks, **{what[7:]: statistics.median(times[what]) for what in times if what.startswith("alone: ")}})
    return lines, parts


def measured_table(lines):
    columns = "N, D, V | what | ranks | one | the slowest rank | efficiency | the model, by its rates | faster than serial"
    text = [f"| {columns} |", "|" + "---|" * len(columns.split(" | "))]
    for line in lines:
        faster = "%.3f (%.3f to %.3f)" % tuple(line["faster"][at] for at in ("median", "low", "high")) if "faster" in line else ""
        times = line["one_us"] / 1000, line["ranks_us"] / 1000
        text.append("| %d, %d, %d | %s | %d | %.2f ms | %.2f ms | **%.2f** | %.2f | %s |" % (
            *line["case"], line["what"], line["ranks"], *times, line["efficiency"], line["predicted"], faster))  # fmt: skip
    return "\n".join(text)


def parts_text(parts):
    """A line for each case and number of ranks: the times of the parts of its calls."""
    name = lambda part: "%d, %d, %d on %d ranks, alone: " % (*part["case"], part["ranks"])
    return "\n".join(name(part) + ", ".join("%s %.0f us" % item for item in part.items() if item[0] not in ("case", "ranks")) for part in parts)


def three_numbers(text):
    numbers = text.split(",")
    if len(numbers) != 3 or not all(number.isdigit() and int(number) > 0 for number in numbers):
        raise argparse.ArgumentTypeError(f"{text!r}: wanted N,D,V")
    return [int(number) for number in numbers]


def change(text):
    name, _, value = text.partition("=")
    try:
        return name, float(value)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: wanted NAME=VALUE") from None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shards", action="append", default=[], help="results of fusedlogp_bench with a shard's times")
    parser.add_argument("--model", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "scaling_model.json"))
    parser.add_argument("--set", action="append", default=[], type=change, metavar="NAME=VALUE", help="a parameter of the model")
    parser.add_argument("--measure", action="store_true", help="time it here instead")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="of --measure")
    parser.add_argument("--case", action="append", type=three_numbers, metavar="N,D,V", help="of --measure, instead of the model's")
    parser.add_argument("--ranks", action="append", type=int, help="of --measure, instead of the model's layouts of one node")
    parser.add_argument("--rounds", type=int, default=20, help="of --measure")
    parser.add_argument("--left", action="append", type=int, help="of --measure: multiprocessors left to nccl beside the product, instead of 0, 4, 8 and 16")
    parser.add_argument("--registered", action="store_true", help="of --measure: torch registers its memory with nccl")
    parser.add_argument("--json", help="write what was predicted or measured")
    parser.add_argument("--svg", help="plot it")
    arguments = parser.parse_args()
    with open(arguments.model) as file:
        model = Model(json.load(file), arguments.set)
    if arguments.measure:
        counts = arguments.ranks or [layout["gpus_per_node"] for layout in model.layouts if layout["nodes"] == 1]
        left = [0, 4, 8, 16] if arguments.left is None else arguments.left
        lines, parts = measure(model, arguments.device, arguments.case or model.cases, counts, arguments.rounds, left, arguments.registered)
        if not lines:
            raise SystemExit("--measure: nothing was measured")
        print(measured_table(lines))
        print(parts_text(parts))
        if arguments.json:
            with open(arguments.json, "w") as file:
                json.dump({"measured": lines, "parts": parts, "registered": arguments.registered}, file, indent=1)
                file.write("\n")
        return
    times = {}
    for path in arguments.shards:
        with open(path) as file:
            times.update(measured_times(json.load(file)))
    lines = predict_all(model, times)
    print(table(model, lines))
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"parameters": model.numbers, "shards": arguments.shards, "predicted": lines}, file, indent=1)
            file.write("\n")
    if arguments.svg:
        with open(arguments.svg, "w") as file:
            file.write(picture(lines))


if __name__ == "__main__":
    try:
        main()
        sys.stdout.flush()
    except BrokenPipeError:  # whoever reads the output, as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
