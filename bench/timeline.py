#!/usr/bin/env python3
"""Shows when each kernel of a step begins and ends, and draws it.

usage: timeline.py [STEP ...] [--window BEGIN,END] [--json FILE] [--svg FILE] [--commit TEXT]
       timeline.py --read FILE [STEP ...] [--window BEGIN,END] [--svg FILE]

A step is KIND:N:D:V, of a kind from this list, in bf16:

  loss    linear_cross_entropy and its gradients
  frozen  the same with a weight that has no gradient
  pair    linear_logp and its gradients

Launches of one stream overlap (programmatic dependent launch). PyTorch's profiler sees that; a profiler that runs one kernel at a time, as ncu does, counts
neither what lies under another kernel nor what passes between two. A kernel begins when its first block does: it may then wait for the kernel before it. Times
are microseconds from the step's first kernel. With --window, only kernels between BEGIN and END are shown. --read takes them from what --json wrote, and needs
neither a GPU nor PyTorch.
"""

import argparse
import html
import json
import math
import sys

KINDS = "loss", "frozen", "pair"
STEPS = "frozen:4096:2048:131072", "loss:1024:2048:131072"
WARM_UP = 5
WIDTH, LABELS, LANE, HEAD = 1200, 30, 22, 46  # of a drawing, in pixels: the whole, its margins, a lane, and what stands above and below the lanes
LETTER = 6.5  # the width of a letter
COLOURS = {"tile": "#4878a8", "product": "#c07038", "small": "#888888"}


def parsed(step):
    kind, *sizes = step.split(":")
    if kind not in KINDS or len(sizes) != 3 or not all(size.isdecimal() and int(size) > 0 for size in sizes):
        raise argparse.ArgumentTypeError(f"got {step}, wanted KIND:N:D:V with a kind of {', '.join(KINDS)}")
    return step


def window(text):
    try:
        begin, end = map(float, text.split(","))
    except ValueError:
        begin = end = math.nan
    if not begin < end:
        raise argparse.ArgumentTypeError(f"got {text}, wanted BEGIN,END with BEGIN < END")
    return begin, end


def runner(step):
    """A function that runs the step once."""
    import torch

    import fusedlogp

    kind, *sizes = step.split(":")
    rows, width, vocab = map(int, sizes)
    torch.manual_seed(0)
    hidden = torch.randn(rows, width, device="cuda", dtype=torch.bfloat16).requires_grad_()
    weight = (torch.randn(vocab, width, device="cuda", dtype=torch.bfloat16) / width**0.5).requires_grad_(kind != "frozen")
    target = torch.randint(0, vocab, (rows,), device="cuda")

    def run():
        hidden.grad = weight.grad = None
        if kind == "pair":
            fusedlogp.linear_logp(hidden, weight, target).sum().backward()
        else:
            fusedlogp.linear_cross_entropy(hidden, weight, target).backward()

    return run


def kernels_of(step):
    """[{name, begin, end}] of the step, in the order in which they begin."""
    import torch

    run = runner(step)
    for _ in range(WARM_UP):
        run()
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        run()
        torch.cuda.synchronize()
    events = [event for event in profile.events() if event.device_type == torch.autograd.DeviceType.CUDA]
    events.sort(key=lambda event: event.time_range.start)
    first = events[0].time_range.start
    return [{"name": event.name, "begin": event.time_range.start - first, "end": event.time_range.end - first} for event in events]


def short(name):
    """Without what all kernels of the library have in common, and without the arguments of a template."""
    return name.split("<")[0].removeprefix("void ").removeprefix("flp_").removeprefix("linear_logp_")


def within(kernels, span):
    return [kernel for kernel in kernels if span is None or (kernel["end"] > span[0] and kernel["begin"] < span[1])]


def print_step(step, kernels, span):
    print(f"{step}: {kernels[-1]['end']:.1f} us, {len(kernels)} kernels")
    for kernel in within(kernels, span):
        print(f"{kernel['begin']:10.1f} {kernel['end']:10.1f} {kernel['end'] - kernel['begin']:9.1f}  {short(kernel['name'])}")


def lanes_of(kernels):
    """The lane of each kernel: the first that no kernel before it still uses."""
    ends, lanes = [], []
    for kernel in kernels:
        lane = next((lane for lane, end in enumerate(ends) if end <= kernel["begin"]), len(ends))
        ends[lane:] = [kernel["end"], *ends[lane + 1 :]]
        lanes.append(lane)
    return lanes, len(ends)


def colour(name):
    if "matrix_product" in name:
        return COLOURS["product"]
    return COLOURS["tile"] if any(part in name for part in ("save_exp", "grad_logits", "linear_logp_bf16")) else COLOURS["small"]


def rounded(span):
    """A distance between marks of the axis: 1, 2 or 5 times a power of ten, of which at most ten are in the span."""
    power = 10.0 ** (len(str(int(span))) - 2)
    return next(power * times for times in (1, 2, 5, 10) if span / (power * times) <= 10)


def panel(step, kernels, span, top):
    """The lines of a step's drawing, from `top` on, and its height."""
    shown = within(kernels, span)
    begin, end = span or (0, kernels[-1]["end"])
    lanes, count = lanes_of(shown)
    height = count * LANE
    scale = (WIDTH - 2 * LABELS) / (end - begin)
    lines = [f'<text x="{LABELS}" y="{top + 16}" class="title">{html.escape(step)}</text>']
    distance = rounded(end - begin)
    for number in range(math.ceil(begin / distance), math.floor(end / distance) + 1):
        x, mark = LABELS + (number * distance - begin) * scale, f"{number * distance:g} us"
        lines.append(f'<path d="M{x:.1f} {top + 24}v{height}" stroke="#dddddd"/><text x="{x:.1f}" y="{top + height + 38}" class="mark">{mark}</text>')
    for kernel, lane in zip(shown, lanes):
        left, right = max(kernel["begin"], begin), min(kernel["end"], end)
        x, y, width = LABELS + (left - begin) * scale, top + 24 + lane * LANE, max((right - left) * scale, 1)
        name = short(kernel["name"])
        tip = f"{html.escape(name)}: {kernel['begin']:.1f} .. {kernel['end']:.1f} us"
        lines.append(f'<rect x="{x:.1f}" y="{y + 2}" width="{width:.1f}" height="{LANE - 4}" fill="{colour(name)}"><title>{tip}</title></rect>')
        letters = int((width - 6) / LETTER)
        if letters >= 6:
            label = name if len(name) <= letters else name[: letters - 1] + "…"
            lines.append(f'<text x="{x + 3:.1f}" y="{y + 15}" class="kernel">{html.escape(label)}</text>')
    return lines, height + HEAD


def drawing(steps, span):
    top, body = 0, []
    for step in steps:
        lines, height = panel(step["step"], step["kernels"], span, top)
        body += lines
        top += height
    style = "text{font:11px sans-serif}.title{font-size:13px}.mark{text-anchor:middle;fill:#555}.kernel{fill:#fff}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{top}" viewBox="0 0 {WIDTH} {top}">'
    return "\n".join([head, f"<style>{style}</style>", '<rect width="100%" height="100%" fill="#fff"/>', *body, "</svg>", ""])


def measured(arguments):
    """The steps, and what --json writes."""
    import torch

    from provenance import provenance

    if not torch.cuda.is_available():
        sys.exit("timeline.py: there is no GPU whose kernels could be watched; --read shows what was recorded")
    steps = [{"step": step, "kernels": kernels_of(step)} for step in arguments.steps or STEPS]
    return steps, {**provenance(arguments.commit, "cuda:0"), "steps": steps}


def recorded(arguments):
    try:
        with open(arguments.read) as file:
            steps = json.load(file)["steps"]
    except (OSError, ValueError, LookupError, TypeError) as error:
        sys.exit(f"timeline.py: --read: got {arguments.read}, wanted a file that --json has written: {error}")
    known = {step["step"]: step for step in steps}
    missing = [step for step in arguments.steps if step not in known]
    if missing:
        sys.exit(f"timeline.py: {arguments.read}: has no {missing[0]}, but {', '.join(known)}")
    return [known[step] for step in arguments.steps] or steps


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("steps", nargs="*", type=parsed, metavar="STEP", help=f"KIND:N:D:V with a kind of {', '.join(KINDS)}; without any: {' '.join(STEPS)}")
    parser.add_argument("--window", type=window, help="BEGIN,END in microseconds: what is shown")
    parser.add_argument("--read", metavar="FILE", help="shows what --json has written")
    parser.add_argument("--json", metavar="FILE", help="a file for the results")
    parser.add_argument("--svg", metavar="FILE", help="a file for a drawing")
    parser.add_argument("--commit", help="recorded in the results")
    arguments = parser.parse_args()
    if arguments.read:
        steps = recorded(arguments)
    else:
        steps, results = measured(arguments)
        if arguments.json:
            with open(arguments.json, "w") as file:
                json.dump(results, file, indent=1)
    for step in steps:
        print_step(step["step"], step["kernels"], arguments.window)
    if arguments.svg:
        with open(arguments.svg, "w") as file:
            file.write(drawing(steps, arguments.window))


if __name__ == "__main__":
    main()
